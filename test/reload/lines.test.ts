import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createReload } from '../../src/gateway/reload/reload.ts'
import { silentLog } from '../../src/base/log.ts'
import { baseConfig, createStage, says } from './stage.ts'

const throwing = `export default () => { throw new Error('no') }`

describe('log lines of saves', () => {
  test('a save that changes only comments is logged, and later errors name the lines of the saved file', async () => {
    const stage = await createStage({ 'x.ts': throwing })
    expect(await stage.decide('x')).toMatchObject({ problem: { message: 'transforms/x.ts threw an Error at x.ts:1.' } })
    await stage.write({ 'x.ts': `// one\n// two\n${throwing}` })
    await stage.waitForLine(/^x\.ts is live/)
    expect(await stage.decide('x')).toMatchObject({ problem: { message: 'transforms/x.ts threw an Error at x.ts:3.' } })
  })

  test('a save that changes nothing is logged, and so is a save of a file that nothing uses', async () => {
    const stage = await createStage({ 'x.ts': says('1') })
    await stage.write({ 'x.ts': says('1') })
    await stage.waitForLine(/^hooks\/transforms\/x\.ts was saved; the gateway serves the same as before\n$/)
    await stage.write({ 'later.ts': says('1') })
    await stage.waitForLine(/^hooks\/transforms\/later\.ts was saved; nothing uses it\n$/)
    expect(stage.lines.filter(({ text }) => text.includes('was saved'))).toHaveLength(2)
  })

  test('a save that does not fix an error is logged', async () => {
    const stage = await createStage({ 'x.ts': says('1') })
    await stage.write({ 'x.ts': 'export default (' })
    await stage.waitForLine(/does not build/)
    await stage.write({ 'x.ts': 'export default (' })
    const { level, text } = await stage.waitForLine(/was saved/)
    expect({ level, text }).toEqual({
      level: 'warn',
      text: expect.stringMatching(
        /^hooks\/transforms\/x\.ts was saved, but there is still a problem: transforms\/x\.ts does not build at x\.ts:1/,
      ),
    })
  })
})

test('a build that takes longer than 300 ms is logged while it runs', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const dir = await mkdtemp(join(tmpdir(), 'hookloom-live-'))
  onTestFinished(() => rm(dir, { recursive: true, force: true }))
  await writeFile(join(dir, 'hookloom.jsonc'), JSON.stringify(baseConfig))
  const lines: string[] = []
  let onBegin = () => {}
  let finish = () => {}
  const building = new Promise<void>((resolve) => (onBegin = resolve))
  const built = new Promise<void>((resolve) => (finish = resolve))
  const live = createReload({
    dir,
    env: {},
    load: async () => {
      onBegin()
      await built
      const run = async () => ({ kind: 'returned', value: {}, log: [] }) as const
      return { transforms: new Map([['x.ts#', { module: 'x.ts', hash: '1', problem: undefined, run }]]), inputs: [] }
    },
    log: { ...silentLog, info: (_facts: unknown, text?: string) => void lines.push(text ?? '') },
    clock: Date.now,
    meter: () => {},
  })
  const started = live.start()
  await building
  await vi.advanceTimersByTimeAsync(299)
  expect(lines).toEqual([])
  await vi.advanceTimersByTimeAsync(1)
  expect(lines).toEqual(['building the modules …'])
  finish()
  await started
  await live.close()
})

test(
  'the line about a broken save counts the parked deliveries that wait for the fix, and the line about the fix does not',
  { timeout: 120_000 },
  async () => {
    const stage = await createStage({ 'x.ts': says('1') }, { parkedFor: async () => 3 })
    await stage.write({ 'x.ts': 'export default (' })
    expect((await stage.waitForLine(/does not build/)).text).toMatch(
      / 3 parked deliveries will run again when it is fixed\.$/,
    )
    await stage.write({ 'x.ts': says('2') })
    expect((await stage.waitForLine(/^x\.ts is live/)).text).toMatch(/^x\.ts is live \(\d+ ms\)$/)
  },
)

test(
  'with the drain "ask", the line about a broken save names the command that runs the parked deliveries',
  { timeout: 120_000 },
  async () => {
    const config = { hooks: { ...baseConfig.hooks, transforms: { drain: 'ask' } } }
    const stage = await createStage({ 'x.ts': 'export default (' }, { config, parkedFor: async () => 3 })
    expect((await stage.waitForLine(/does not build/)).text).toMatch(
      / 3 parked deliveries wait\. When it is fixed, run "hookloom retry --parked"\.$/,
    )
    const before = stage.lines.length
    await stage.write({ 'x.ts': says('1') })
    await stage.waitForLine(/^x\.ts is live/)
    await stage.write({ 'x.ts': 'export default [' })
    await expect
      .poll(() =>
        stage.lines
          .slice(before)
          .map(({ text }) => text)
          .join('\n'),
      )
      .toMatch(/ keeps serving\. 3 parked deliveries wait\. When it is fixed, run "hookloom retry --parked"\.$/)
  },
)

test(
  'a save goes live, and a broken one is reported, while the store does not answer',
  { timeout: 120_000 },
  async () => {
    const asked: string[] = []
    const parkedFor = (module: string) => {
      asked.push(module)
      return new Promise<number>(() => {})
    }
    const stage = await createStage({ 'x.ts': says('1') }, { parkedFor })
    await stage.write({ 'x.ts': says('2') })
    await stage.waitForAnswer('x', '2')
    await stage.waitForLine(/^x\.ts is live/)
    expect(asked).toEqual([])
    await stage.write({ 'x.ts': 'export default (' })
    expect((await stage.waitForLine(/does not build/)).text).toMatch(/ The last good version keeps serving\.$/)
    expect(asked).toContain('x.ts')
    await stage.write({ 'x.ts': says('3') })
    await stage.waitForAnswer('x', '3')
  },
)

test('a gateway starts with a broken module while the store does not answer', { timeout: 120_000 }, async () => {
  const stage = await createStage({ 'x.ts': 'export default (' }, { parkedFor: () => new Promise(() => {}) })
  expect(await stage.answer('x')).toMatch(/^park/)
  await stage.write({ 'x.ts': says('1') })
  await stage.waitForAnswer('x', '1')
})
