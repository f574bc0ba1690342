// How an edit would have changed received requests: the command, and the admin port that it calls.
import { cpSync, readFileSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { ReplayReport } from '../../src/model/api/replay.ts'
import { runCommand } from './command.ts'
import { gatewayToken, hookToken, makeFolder, post as send, writeFiles } from './gateway.ts'
import { readStore, startInside } from './inside.ts'

const file = 'hooks/transforms/x.ts'
/** A transform that sets another name in each run. */
const before = `export default ({ payload: { kind } }) =>
  kind === 'old' ? null : { message: kind + ' one', name: 'at ' + process.hrtime.bigint() }\n`
const after = `export default ({ payload: { kind } }, { replay }) => {
  if (kind === 'skip') return null
  if (kind === 'throw') throw new TypeError('never')
  return { message: kind + (kind === 'field' ? ' two' : ' one'), name: 'at ' + process.hrtime.bigint(),
    ...(replay ? {} : { thinking: 'high' }) }
}\n`
const config = {
  hooks: {
    retain: 50,
    mappings: [
      { match: { path: 'x', payload: { kind: 'moved' } }, messageTemplate: 'm', deliver: false },
      { id: 'x', match: { path: 'x' }, transform: { module: 'x.ts' }, deliver: false },
    ],
  },
}
const copyWithEdit = (dir: string) => {
  const copy = makeFolder()
  cpSync(dir, copy, { recursive: true, filter: (name) => !name.includes('/state') })
  writeFiles(copy, { [file]: after })
  return copy
}

async function record(url: string, kinds: readonly string[]): Promise<void> {
  for (const kind of kinds) await send({ url, token: hookToken }, 'x', { kind }).catch(() => undefined)
}
const kinds = ['same', 'field', 'field', 'skip', 'throw', 'old', 'same']

const expected = {
  total: 7,
  counts: { same: 2, changed: 2, 'now skipped': 1, 'now parks': 1, 'now works': 1, 'now refused': 0 },
  tooLarge: [],
  notRun: 0,
  problems: [],
}

function check(report: Record<string, unknown> | undefined, compared: string): void {
  expect(report).toMatchObject({ ...expected, compared })
  // as: the last line of `replay --json`
  const { groups, unstable } = report as ReplayReport
  expect(groups.map((group) => [group.class, group.paths, group.count])).toEqual([
    ['changed', ['actions[].message'], 2],
    ['now works', ['decision'], 1],
    ['now parks', ['decision'], 1],
    ['now skipped', ['decision'], 1],
  ])
  expect(groups[0]?.example.changes).toEqual([{ path: 'actions[0].message', before: 'field one', after: 'field two' }])
  expect(groups[2]?.example.after).toMatch(/^park transform-failed: .*TypeError/)
  expect(unstable).toEqual([{ path: 'actions[].name', count: 5 }])
}

describe('hookloom replay', () => {
  test('hookloom replay classifies the effects of an edit, with and without a gateway, and changes nothing', async () => {
    const { dir, url, stop } = await startInside({ config, files: { [file]: before } })
    await record(url, kinds)
    const copy = copyWithEdit(dir)
    const readRows = async () => {
      const found = await readStore(dir, (store) => store.deliveries({ limit: 99 }))
      return found.map(({ deliveryId, state, jobs }) => [deliveryId, state, jobs.map(({ id }) => id)])
    }
    const stored = await readRows()
    const live = await runCommand(['replay', '--from', copy, '--json'], { dir })
    check(live.json().at(-1), 'live')
    expect(live.json().slice(0, -1)).toHaveLength(7)
    await stop()
    const recorded = await runCommand(['replay', '--from', copy, '--json'], { dir })
    check(recorded.json().at(-1), 'recorded')
    expect(await readRows()).toEqual(stored)
    const text = await runCommand(['replay', '--from', copy, '--fail-on', 'changed'], { dir })
    expect(text.code).toBe(70)
    expect(text.stdout).toMatch(/- field one\n\s*\+ field two/)
    expect(text.stdout).toContain('2 same (29 %), 2 changed (29 %)')
    const same = await runCommand(['replay', '--fail-on', 'changed', '--last', '3'], { dir })
    expect([same.code, same.stdout]).toEqual([0, expect.stringContaining('3 same (100 %)')])
  })

  test('a replay compares a save that is not live with the live code, and a live save with the recorded outcomes', async () => {
    const { dir, url, adminUrl } = await startInside({ config, files: { [file]: before } })
    await record(url, kinds)
    const ask = async (query = '') => {
      const headers = { authorization: `Bearer ${gatewayToken}` }
      const answer = await fetch(`${adminUrl}/api/replay${query}`, { method: 'POST', headers })
      // as: the answer of the admin port
      return [answer.status, (await answer.json()) as Record<string, unknown>] as const
    }
    const [, unchanged] = await ask()
    expect(unchanged).toMatchObject({ compared: 'recorded', total: 7, counts: { same: 7 }, drift: [] })
    // the fixture keeps the edit from going live
    const fixture = {
      request: { path: 'x', payload: { kind: 'field' } },
      expect: { decision: 'accept', actions: [{ message: 'field one' }] },
    }
    writeFiles(dir, { 'hooks/transforms/x.fixtures/f.json': JSON.stringify(fixture), [file]: after })
    const readCompared = async () => (await ask())[1]['compared']
    await expect.poll(readCompared).toBe('live')
    check((await ask())[1], 'live')
    const narrow = await runCommand(['replay', '--last', '2', '--since', '1h', '--hook', 'x', '--json'], { dir })
    expect(narrow.json().at(-1)).toMatchObject({ compared: 'live', total: 2, counts: { same: 1, 'now works': 1 } })
    // as: the answer of the admin port
    const groups = (await ask())[1]['groups'] as { class: string; deliveryIds: string[] }[]
    const ids = groups.find(({ class: name }) => name === 'changed')?.deliveryIds ?? []
    expect(ids).toHaveLength(2)
    const one = {
      total: 1,
      counts: { changed: 1 },
      groups: [{ deliveryIds: [ids[1]], example: { deliveryId: ids[1] } }],
    }
    expect((await ask(`?ids=${ids[1]}`))[1]).toMatchObject(one)
    expect((await ask('?ids=no-such'))[1]).toMatchObject({ total: 0 })
    const update = (module: string) =>
      fetch(`${adminUrl}/api/fixtures/update`, {
        method: 'POST',
        headers: { authorization: `Bearer ${gatewayToken}` },
        body: JSON.stringify({ module }),
      })
    expect([(await update('other.ts')).status, (await update('../x.ts')).status]).toEqual([400, 400])
    expect(await (await update('x.ts')).json()).toMatchObject({ updated: ['f.json'], failing: [] })
    const written = JSON.parse(readFileSync(join(dir, 'hooks/transforms/x.fixtures/f.json'), 'utf8'))
    expect(written).toMatchObject({ request: fixture.request, expect: { actions: [{ message: 'field two' }] } })
    await expect.poll(readCompared).toBe('recorded')
    check((await ask())[1], 'recorded')
    expect((await ask('?last=0'))[0]).toBe(400)
    expect((await ask('?since=tomorrow'))[0]).toBe(400)
  })
})

test('with --fail-on, a replay fails if a request was too large to be kept, because nothing compared it', async () => {
  const { dir, url } = await startInside({ config, files: { [file]: before } })
  await record(url, ['moved'])
  const runReplay = () => runCommand(['replay', '--fail-on', 'now-parks'], { dir })
  expect((await runReplay()).code).toBe(0)
  await send({ url, token: hookToken }, 'x', { kind: 'moved', pad: 'x'.repeat(262_110) })
  expect(await runReplay()).toMatchObject({
    code: 70,
    stdout: expect.stringContaining('1 request not replayable: larger than 256 KiB.'),
  })
  expect((await runCommand(['replay'], { dir })).code).toBe(0)
})

describe('a replay of broken code', () => {
  const parks = `export default ({ payload: { kind } }) => {
  if (kind === 'throw') throw new TypeError('never')
  return { message: kind }
}\n`

  test('a replay without an edit shows no difference in a parked delivery', async () => {
    const { dir, url } = await startInside({ config, files: { [file]: parks } })
    await record(url, ['same', 'throw'])
    const unchanged = await runCommand(['replay', '--fail-on', 'changed', '--json'], { dir })
    expect(unchanged.json().at(-1)).toMatchObject({ total: 2, counts: { same: 2 }, groups: [] })
    expect(unchanged.code).toBe(0)
  })

  test('a replay of a save that does not build shows its code frame instead of differences', async () => {
    const { dir, url, adminUrl } = await startInside({ config, files: { [file]: parks } })
    await record(url, ['same', 'throw', 'other'])
    writeFiles(dir, { [file]: `${parks}const = 1\n` })
    const headers = { authorization: `Bearer ${gatewayToken}` }
    await expect
      .poll(async () => (await fetch(`${adminUrl}/api/health`, { headers })).text())
      .toContain('"degraded":true')
    const broken = await runCommand(['replay', '--fail-on', 'changed', '--json'], { dir })
    const report = broken.json().at(-1)
    expect(report).toMatchObject({ compared: 'live', total: 0, groups: [] })
    expect(report?.['problems']).toEqual([
      {
        module: 'x.ts',
        detail: expect.stringContaining('transforms/x.ts does not build at x.ts:5'),
        frame: expect.stringContaining('const = 1'),
        notCompared: 3,
      },
    ])
    expect(broken.code).toBe(70)
    const text = await runCommand(['replay'], { dir })
    expect(text.stderr).toMatch(/does not build at x\.ts:5[^]*const = 1/)
    expect(text.stdout).toContain('3 requests not compared: transforms/x.ts does not load.')
    expect(text.stdout).not.toContain('now parks')
  })
})

test('hookloom show --diff shows only what differs between two deliveries', async () => {
  const { dir, url } = await startInside({ config, files: { [file]: before } })
  await record(url, ['one', 'other', 'old'])
  const [old, other, one] = (await readStore(dir, (store) => store.keptDeliveries({ limit: 9 }))).map(
    (kept) => kept.deliveryId,
  )
  const runDiff = async (...ids: string[]) =>
    (await runCommand(['show', '--diff', ...ids, '--json'], { dir })).json()[0]
  const changes = (await runDiff(one ?? '', other ?? ''))?.['changes']
  expect(changes).toEqual(
    expect.arrayContaining([
      { path: 'actions[0].message', before: 'one one', after: 'other one' },
      { path: 'payload.kind', before: 'one', after: 'other' },
    ]),
  )
  expect(await runDiff(one ?? '', one ?? '')).toEqual({ deliveryIds: [one, one], changes: [] })
  const text = await runCommand(['show', '--diff', one ?? '', old ?? ''], { dir })
  expect(text.stdout).toMatch(/decision\n\s*- accept agent: one one\n\s*\+ skip/)
  expect((await runCommand(['show', '--diff', one ?? ''], { dir })).code).toBe(64)
})

describe('replays of disconnected clients', () => {
  test('a replay does not run if its client has disconnected', async () => {
    const folder = makeFolder()
    const [calls, go] = [join(folder, 'calls'), join(folder, 'go')]
    writeFiles(folder, { go: '' })
    const code = `import { appendFileSync, existsSync } from 'node:fs'
      export default () => {
        appendFileSync(${JSON.stringify(calls)}, 'x')
        while (!existsSync(${JSON.stringify(go)}));
        return { message: 'm' }
      }\n`
    const hooks = { ...config.hooks, transforms: { timeoutMs: 30_000 } }
    const { url, adminUrl } = await startInside({ config: { hooks }, files: { [file]: code } })
    await record(url, ['one'])
    rmSync(go)
    const headers = { authorization: `Bearer ${gatewayToken}` }
    const ask = () => fetch(`${adminUrl}/api/replay`, { method: 'POST', headers })
    const first = ask()
    const left = request(`${adminUrl}/api/replay`, { method: 'POST', headers })
    const isOver = new Promise<void>((done) => left.on('error', () => {}).on('close', done))
    await new Promise<void>((done) => left.on('finish', done).end())
    // when the gateway answers this request, it has read what other connections sent before
    const waitUntilRead = () => fetch(`${adminUrl}/healthz`).then((answer) => answer.text())
    await waitUntilRead()
    left.destroy()
    await isOver
    await waitUntilRead()
    writeFiles(folder, { go: '' })
    expect((await first).status).toBe(200)
    expect((await ask()).status).toBe(200)
    // the code ran once for the original request, and twice in each of two replays
    expect(readFileSync(calls, 'utf8')).toBe('xxxxx')
  })
})
