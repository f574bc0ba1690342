// The log of a save counts the recent deliveries that it changes, and a save can wait for an operator.
import { expect, test } from 'vitest'
import type { Log } from '../../src/base/log.ts'
import { runCommand } from './command.ts'
import { gatewayToken, hookToken, post, writeFiles } from './gateway.ts'
import { readStore, startInside } from './inside.ts'

const file = 'hooks/transforms/x.ts'
const buildTransform = (text: string) =>
  `export default ({ payload: { n } }) => ({ message: n > 1 ? '${text}' : 'small' })\n`
const buildConfig = (hold: boolean) => ({
  hooks: {
    retain: 50,
    transforms: { hold },
    mappings: [{ id: 'x', match: { path: 'x' }, transform: { module: 'x.ts' }, deliver: false }],
  },
})

function createLines() {
  const lines: string[] = []
  const listeners = new Set<() => void>()
  const add = (_fields: object, text: string) => {
    lines.push(text)
    for (const listener of listeners) listener()
  }
  const log: Log = { debug: add, info: add, warn: add, error: add }
  const waitForLine = (pattern: RegExp) =>
    new Promise<string>((found) => {
      const look = () => {
        const line = lines.find((each) => pattern.test(each))
        if (line === undefined) return
        listeners.delete(look)
        found(line)
      }
      listeners.add(look)
      look()
    })
  return { log, waitForLine }
}

test('after a reload, the log says how many recent deliveries would differ', async () => {
  const { log, waitForLine } = createLines()
  const { dir, url } = await startInside({ config: buildConfig(false), files: { [file]: buildTransform('one') }, log })
  for (const n of [1, 2, 3]) await post({ url, token: hookToken }, 'x', { n })
  writeFiles(dir, { [file]: buildTransform('two') })
  expect(await waitForLine(/^x\.ts is live/)).toMatch(/^x\.ts is live \(\d+ ms\)$/)
  // the comparison ends later, perhaps after a newer save, so its line says which version it is about
  await waitForLine(/^x\.ts, as it is live: 2 of the last 3 deliveries would differ: hookloom replay$/)
  const replay = await runCommand(['replay', '--json'], { dir })
  expect(replay.json().at(-1)).toMatchObject({ compared: 'recorded', counts: { same: 1, changed: 2 } })
})

test(
  'with hooks.transforms.hold, a save that would change recent outcomes waits to be published, and any other save goes live',
  { timeout: 120_000 },
  async () => {
    const { log, waitForLine } = createLines()
    const { dir, url, adminUrl } = await startInside({
      config: buildConfig(true),
      files: { [file]: buildTransform('one') },
      log,
    })
    const readiness = async () => {
      const answer = await fetch(`${adminUrl}/readyz`, { headers: { authorization: `Bearer ${gatewayToken}` } })
      return answer.json()
    }
    for (const n of [1, 2]) await post({ url, token: hookToken }, 'x', { n })
    expect((await runCommand(['publish'], { dir })).code).toBe(65)
    writeFiles(dir, { [file]: buildTransform('two') })
    await waitForLine(/^x\.ts waits: 1 of the last 2 deliveries would differ\. "hookloom replay" shows them/)
    expect(await (await fetch(`${adminUrl}/readyz`)).json()).toMatchObject({ degraded: true, configuration: 'held' })
    expect(await readiness()).toMatchObject({ ok: true, degraded: true, held: true })
    const replay = await runCommand(['replay', '--json'], { dir })
    expect(replay.json().at(-1)).toMatchObject({ compared: 'live', counts: { same: 1, changed: 1 } })
    expect((await runCommand(['publish'], { dir })).code).toBe(0)
    expect(await readiness()).toMatchObject({ degraded: false, held: false })
    await waitForLine(/^x\.ts is live$/)
    expect((await runCommand(['replay', '--json'], { dir })).json().at(-1)).toMatchObject({ compared: 'recorded' })
    writeFiles(dir, { [file]: `// only a comment\n${buildTransform('two')}\nexport const unused = 1\n` })
    await waitForLine(/^x\.ts is live \(/)
    expect(await readiness()).toMatchObject({ degraded: false, held: false })
  },
)

test(
  'with hooks.transforms.hold, the old code keeps its environment until the save that changes it is published',
  { timeout: 120_000 },
  async () => {
    const { log, waitForLine } = createLines()
    const { hooks } = buildConfig(true)
    const { dir, url } = await startInside({
      config: { hooks: { ...hooks, transforms: { hold: true, env: ['WORD'] } } },
      files: {
        [file]: `export default ({ payload: { n } }) => ({ message: n > 1 ? process.env.WORD : 'small' })\n`,
        '.env': 'WORD=one\n',
      },
      log,
    })
    const readMessage = async (n: number) => {
      const { deliveryId } = await post({ url, token: hookToken }, 'x', { n })
      const found = await readStore(dir, (store) => store.delivery(String(deliveryId)))
      return found?.jobs[0]?.planned
    }
    expect(await readMessage(1)).toMatchObject({ action: { message: 'small' } })
    expect(await readMessage(2)).toMatchObject({ action: { message: 'one' } })
    writeFiles(dir, { '.env': 'WORD=two\n' })
    await waitForLine(/^\.env waits: 1 of the last 2 deliveries would differ\./)
    expect(await readMessage(2)).toMatchObject({ action: { message: 'one' } })
    expect((await runCommand(['replay', '--json'], { dir })).json().at(-1)).toMatchObject({ compared: 'live' })
    expect((await runCommand(['publish'], { dir })).code).toBe(0)
    expect(await readMessage(2)).toMatchObject({ action: { message: 'two' } })
  },
)
