import { beforeAll, describe, expect, test } from 'vitest'
import { runCommand } from './command.ts'
import { makeConfigDir, post } from './gateway.ts'
import { type Inside, readStore, startInside } from './inside.ts'
import { hookToken } from './gateway.ts'

const config = {
  agents: { defaults: { heartbeat: { every: 0 } } },
  hooks: {
    mappings: [
      {
        match: { path: 'parts' },
        action: 'wake',
        wakeMode: 'next-heartbeat',
        forEach: 'parts',
        textTemplate: '{{parts[0]}}',
      },
      { id: 'later', match: { path: 'later' }, transform: { module: 'later.ts' }, retain: true },
    ],
  },
}
const later = 'export default () => {\n  throw new Error("not yet")\n}\n'

/** The shortest prefix of `id` that no other id shares. */
function findShortestPrefix(id: string, others: readonly string[]): string {
  const length = Array.from(id).findIndex((_, end) => !others.some((other) => other.startsWith(id.slice(0, end))))
  return id.slice(0, length)
}

describe('an id on the command line', () => {
  let gateway: Inside
  let [several, one, parked]: string[] = []
  let ids: string[] = []

  beforeAll(async () => {
    gateway = await startInside({ config, files: { 'hooks/transforms/later.ts': later } })
    const to = { url: gateway.url, token: hookToken }
    const posted = [
      await post(to, 'parts', { parts: ['a', 'b'] }),
      await post(to, 'wake', { text: 'c', mode: 'next-heartbeat' }),
      await post(to, 'later', {}),
    ]
    ids = posted.map(({ deliveryId }) => String(deliveryId))
    ;[several, one, parked] = ids
  })

  const show = async (id: string) => {
    const { json, ...ran } = await runCommand(['show', id, '--json'], { dir: gateway.dir })
    return { ...ran, shown: json()[0]?.['deliveryId'] }
  }
  const readJobIds = async (id: string) => {
    const { json } = await runCommand(['show', id, '--json'], { dir: gateway.dir })
    return json().flatMap(({ jobs }) => (jobs as { jobId: string }[]).map(({ jobId }) => jobId))
  }
  /** All ids except those of this delivery and its runs. Ids of the same millisecond have a long common prefix. */
  const listOtherIds = async (id: string | undefined) => {
    const all = await readStore(gateway.dir, (store) => store.idsFrom({ prefix: '0', limit: 1_000 }))
    return all.filter((found) => found.id !== id && found.deliveryId !== id).map((found) => found.id)
  }

  test('hookloom show accepts the shortest prefix of an id that no other delivery shares', async () => {
    for (const id of ids)
      expect(await show(findShortestPrefix(id, await listOtherIds(id)))).toMatchObject({ code: 0, shown: id })
  })

  test('a prefix of the ids of several runs of one delivery selects the delivery', async () => {
    const jobs = await readJobIds(several ?? '')
    const [first = '', second = ''] = jobs
    const length = Array.from(first).findIndex((character, at) => character !== second[at])
    const shared = findShortestPrefix(first, await listOtherIds(several))
    expect(jobs).toHaveLength(2)
    expect(shared.length).toBeLessThanOrEqual(length)
    expect(await show(shared)).toMatchObject({ code: 0, shown: several })
  })

  test('the id "last" names the newest delivery', async () => {
    expect(await show('last')).toMatchObject({ code: 0, shown: parked })
    const { json } = await runCommand(['list', '--before', 'last', '--json'], { dir: gateway.dir })
    expect(json().map(({ deliveryId }) => deliveryId)).toEqual([several, one])
  })

  test('a command with a prefix that several deliveries share exits 65, lists these deliveries and changes nothing', async () => {
    const shared = (several ?? '').slice(0, 6)
    const readStates = () => readStore(gateway.dir, (store) => store.deliveries({ limit: 9 }))
    const before = await readStates()
    for (const command of ['show', 'retry', 'drop', 'capture']) {
      const { code, stdout, stderr } = await runCommand([command, shared], { dir: gateway.dir })
      expect({ code, stdout }).toEqual({ code: 65, stdout: '' })
      for (const id of ids) expect(stderr).toContain(id)
      expect(stderr).toContain(`"${shared}"`)
    }
    expect(await readStates()).toEqual(before)
  })

  test('hookloom list --refused --before accepts a prefix of the id of a request, or "last"', async () => {
    for (const path of ['x', 'y']) {
      await fetch(`${gateway.url}/${path}`, {
        method: 'POST',
        body: '{}',
        headers: { authorization: `Bearer ${hookToken}` },
      })
    }
    const refused = async (...more: string[]) =>
      (await runCommand(['list', '--refused', '--json', ...more], { dir: gateway.dir })).json()
    const [first, second] = await refused()
    const prefix = findShortestPrefix(String(second?.['requestId']), [String(first?.['requestId'])])
    expect(await refused('--before', prefix)).toEqual([first])
    expect(await refused('--before', 'last')).toEqual([first])
  })

  test('hookloom retry accepts a prefix of an id, and hookloom capture and drop accept "last"', async () => {
    const prefix = findShortestPrefix(parked ?? '', await listOtherIds(parked))
    const retried = await runCommand(['retry', prefix, '--json'], { dir: gateway.dir })
    expect(retried.json()).toEqual([{ deliveryId: parked, state: 'parked', jobs: [] }])
    const captured = await runCommand(['capture', 'last', '--json'], { dir: gateway.dir })
    expect(captured.json()).toMatchObject([{ deliveryId: parked, module: 'later.ts' }])
    const dropped = await runCommand(['drop', 'last', '--json'], { dir: gateway.dir })
    expect(dropped.json()).toEqual([{ deliveryId: parked, state: 'dropped' }])
  })

  test('hookloom show last exits 65 in an empty store, and says why', async () => {
    const dir = makeConfigDir()
    expect(await runCommand(['show', 'last'], { dir })).toMatchObject({
      code: 65,
      stdout: '',
      stderr: '✗ There is no delivery yet.\n',
    })
  })
})
