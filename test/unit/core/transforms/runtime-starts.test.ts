// Threads that cannot be started for a while, as when the machine has no memory or no threads left. Here the environment of the threads makes
// each start fail until the test corrects it.
import { expect, test } from 'vitest'
import { silentLog } from '../../../../src/base/log.ts'
import { createStage, readResult } from './runtime-stage.ts'

const failed = 'The transform worker does not start.'

test('modules whose calls failed because no thread started are called again when threads start, and the failed starts are one line of the log', async () => {
  const errors: string[] = []
  let isBroken = false
  let starts = 0
  let onThirdStart = () => {}
  const thirdStart = new Promise<void>((resolve) => (onThirdStart = resolve))
  // read at each start of a thread
  const env = {
    get NODE_OPTIONS() {
      if (isBroken && ++starts === 3) onThirdStart()
      return isBroken ? '--no-such-option' : ''
    },
  }
  const log = { ...silentLog, error: (_: object, message: string) => void errors.push(message) }
  const modules: string[] = []
  let resolve = () => {}
  const retried = new Promise<void>((done) => {
    resolve = done
  })
  const onRetry = (module: string) => {
    modules.push(module)
    resolve()
  }
  const stage = await createStage({ env, log, workers: 1, onRetry })
  await stage.write({
    'good.ts': `export default () => 'good'`,
    'bad.ts': 'export default () => process.exit(1)',
    'idle.ts': `export default () => 'idle'`,
  })
  const { 'good.ts': good, 'bad.ts': bad } = await stage.load('good.ts', 'bad.ts', 'idle.ts')
  isBroken = true
  // ends the serving thread and the one in reserve
  while ((await readResult(bad)) !== failed);
  expect(await readResult(good)).toBe(failed)
  await thirdStart
  expect(modules).toEqual([])
  isBroken = false
  await retried
  expect(await readResult(good)).toBe('good')
  expect(modules.toSorted(), 'no call of the third module failed').toEqual(['bad.ts', 'good.ts'])
  expect(errors).toEqual(['the transform worker does not start'])
})
