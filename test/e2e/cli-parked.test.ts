// Many parked deliveries: with hooks.transforms.drain "ask" they wait for the operator, and are retried or dropped together.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Log, silentLog } from '../../src/base/log.ts'
import { runCommand } from './command.ts'
import { hookToken } from './gateway.ts'
import { type Inside, readStore, startInside } from './inside.ts'

const broken = `export default () => { throw new Error('broken') }\n`
const fixed = `export default ({ payload }) => payload.bad ? (() => { throw new Error('bad') })() : ({ text: 'fixed' })\n`
const toMapping = (path: string) => ({
  match: { path },
  action: 'wake',
  wakeMode: 'next-heartbeat',
  transform: { module: 'work.ts' },
})
const hooks = { mappings: [toMapping('one'), toMapping('two')], transforms: { drain: 'ask' } }

/** A log, and a function that waits for the next line that matches a pattern. */
function createLineLog() {
  let onMessage: (message: string) => void = () => {}
  const waitForLine = (pattern: RegExp) =>
    new Promise<string>((resolve) => {
      onMessage = (message) => {
        if (pattern.test(message)) resolve(message)
      }
    })
  const log: Log = { ...silentLog, info: (_, message) => onMessage(message) }
  return { log, waitForLine }
}

async function park({ url }: Inside, hook: string, payload: object): Promise<void> {
  const reply = await fetch(`${url}/${hook}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${hookToken}`, 'content-type': 'application/json' },
    body: JSON.stringify(payload),
  })
  expect(await reply.json()).toMatchObject({ status: 'parked' })
}

const readStates = async ({ dir }: Inside) =>
  (await readStore(dir, (store) => store.deliveries({ limit: 100 }))).map(({ hook, state }) => `${hook} ${state}`)

test(
  'with drain "ask", parked deliveries wait after a fix until they are retried or dropped',
  { timeout: 120_000 },
  async () => {
    const { log, waitForLine } = createLineLog()
    const gateway = await startInside({ config: { hooks }, files: { 'hooks/transforms/work.ts': broken }, log })
    const { dir } = gateway
    for (const hook of ['one', 'two', 'one']) await park(gateway, hook, {})
    await park(gateway, 'one', { bad: true })
    const waiting = waitForLine(/hookloom retry --parked/)
    writeFileSync(join(dir, 'hooks/transforms/work.ts'), fixed)
    expect(await waiting).toBe('4 parked deliveries wait. "hookloom retry --parked" runs them again.')
    expect(await readStates(gateway)).toEqual(['one parked', 'two parked', 'one parked', 'one parked'])

    const retried = await runCommand(['retry', '--parked', '--hook', 'one'], { dir })
    expect(retried.stdout).toBe('3 parked deliveries ran again: 2 are settled, 1 is parked again.\n')
    expect(await readStates(gateway)).toEqual(['one accepted', 'two parked', 'one accepted', 'one parked'])

    const nothing = await runCommand(['drop', '--parked', '--hook', 'three', '--json'], { dir })
    expect(nothing.json()).toEqual([{ dropped: 0 }])
    const dropped = await runCommand(['drop', '--parked'], { dir })
    expect(dropped.stdout).toBe('2 parked deliveries are dropped.\n')
    expect(await readStates(gateway)).toEqual(['one accepted', 'two dropped', 'one accepted', 'one dropped'])
    expect((await runCommand(['retry', '--parked', '--json'], { dir })).json()).toEqual([
      { settled: 0, stillParked: 0 },
    ])
  },
)

test.each([
  [['drop'], 'Give the id of a delivery, --parked'],
  [['drop', 'some-id', '--parked'], 'Give the id of a delivery, --parked'],
  [['drop', 'some-id', '--hook', 'one'], '--hook is only for --parked'],
  [['retry', '--parked', '--dead'], 'Give the id of a delivery or a run, --dead'],
  [['retry', '--dead', '--hook', 'one'], '--hook is only for --parked'],
])('the error of the command %j says which arguments it takes', async (args, message) => {
  const { code, stderr } = await runCommand(args, {})
  expect([code, stderr]).toEqual([64, expect.stringContaining(message)])
})
