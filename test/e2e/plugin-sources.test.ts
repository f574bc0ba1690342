// Sources of plugins: what the gateway fetches itself by code of an outsider.
import { once } from 'node:events'
import { beforeEach, describe, expect, test } from 'vitest'
import { readBlock } from '../pages.ts'
import { runCommand } from './command.ts'
import { type Loopback, startLoopback } from './fakes/loopback.ts'
import { gatewayToken, makeConfigDir, startGateway, writeFiles } from './gateway.ts'
import { type Inside, readDegradedBy, readStore, startInside } from './inside.ts'

const file = 'hooks/plugins/buoy.ts'

/** A source that asks for what is newer than its place. */
const source = `import { defineSource } from 'hookloom/define'
import { z } from 'zod'

export default defineSource({
  name: 'buoy',
  about: 'The heights of a buoy.',
  options: z.strictObject({ server: z.url(), token: z.string().min(8) }),
  account: ({ server }) => new URL(server).host,
  create: ({ server, token }, { fetch, place, store, log }) => ({
    everyMs: 1_000,
    async pass(signal) {
      const since = (await place()) ?? '0'
      const answer = await fetch(server + '/since/' + since, { headers: { authorization: token }, signal })
      if (answer.status === 500) throw new TypeError('the payload of an item')
      if (!answer.ok) return { problem: 'The buoy answered ' + answer.status + ' to ' + token + '.' }
      const heights = await answer.json()
      if (heights.length === 0) return
      log.info({ heights: heights.length, token }, 'heights were read with ' + token)
      await store(heights.map(({ id, cm }) => ({ key: 'buoy:' + id, payload: { cm } })), String(heights.at(-1).id))
    },
    probe: async () => ({ ok: true, detail: 'The buoy is afloat.' }),
  }),
})
`

let heights: { id: number; cm: number }[] = []
let status = 200
let server: Loopback

beforeEach(async () => {
  heights = []
  status = 200
  server = await startLoopback(({ path }) => {
    const since = Number(path.split('/').at(-1))
    return { status, body: heights.filter(({ id }) => id > since) }
  })
})

const mapping = { id: 'tides', match: { path: 'tides' }, messageTemplate: 'The tide is at {{cm}} cm.', deliver: false }
const token = 'tk_0123456789'
const toConfig = (section: object = {}, extra: object = {}) => ({
  plugins: ['./plugins/buoy.ts'],
  sources: { tides: { kind: 'buoy', server: server.url, token, ...section } },
  agents: { defaults: { heartbeat: { every: 0 } } },
  hooks: { mappings: [mapping] },
  ...extra,
})

/** The heights of all deliveries, the oldest first. */
async function readHeights({ dir }: Pick<Inside, 'dir'>): Promise<(string | undefined)[]> {
  const records = await readStore(dir, (store) => store.deliveries({ limit: 99 }))
  const inOrder = records.toSorted((one, other) => one.receivedAt - other.receivedAt)
  return inOrder.map(({ jobs }) => /The tide is at (\d+) cm/.exec(JSON.stringify(jobs))?.[1])
}

function collectLog() {
  const lines: string[] = []
  const add = (fields: object, text: string) => void lines.push(`${text} ${JSON.stringify(fields)}`)
  return { lines, log: { debug: add, info: add, warn: add, error: add } }
}

test('the source on the page works as printed', async () => {
  const page = 'src/plugins/README.md'
  const sea = await startLoopback(({ query }) => {
    const all = [120, 140, 160].map((cm, at) => ({ id: `${at + 1}`, cm }))
    return { status: 200, body: all.filter(({ id }) => id > (query.get('since') ?? '')).slice(0, 2) }
  })
  const gateway = await startInside({
    config: toConfig({}, { sources: { tides: { kind: 'buoy', url: sea.url } } }),
    files: { [file]: readBlock(page, 'ts', 'defineSource') },
  })
  await expect.poll(() => readHeights(gateway)).toEqual(['120', '140'])
  await gateway.stop()
  const again = await startInside({ dir: gateway.dir })
  await expect.poll(() => readHeights(again)).toEqual(['120', '140', '160'])
  await again.stop()
})

describe('a source of a plugin', () => {
  test('what it fetches is a delivery of its hook, once, and a restart goes on at its place', async () => {
    heights = [
      { id: 1, cm: 120 },
      { id: 2, cm: 140 },
    ]
    const gateway = await startInside({ config: toConfig(), files: { [file]: source } })
    await expect.poll(() => readHeights(gateway)).toEqual(['120', '140'])
    await gateway.stop()
    heights.push({ id: 3, cm: 160 })
    const before = server.received.length
    const again = await startInside({ dir: gateway.dir })
    await expect.poll(() => readHeights(again)).toEqual(['120', '140', '160'])
    expect(server.received[before]?.path).toBe('/since/2')
    expect(server.received[before]?.headers.authorization).toBe(token)
  })

  test('it is in check, in doctor and in the schema as other plugins are', async () => {
    const dir = makeConfigDir({ config: toConfig(), files: { [file]: source } })
    const checked = await runCommand(['check', '--json'], { dir })
    expect(checked.code).toBe(0)
    expect(checked.json()).toContainEqual(
      expect.objectContaining({ ok: true, detail: expect.stringMatching(/^builds and loads .*: source buoy$/) }),
    )
    const probed = await runCommand(['doctor', '--json'], { dir })
    expect(probed.json()).toContainEqual({ name: 'source-tides', ok: true, detail: 'The buoy is afloat.' })
    const { properties } = JSON.parse((await runCommand(['schema'], { dir })).stdout)
    expect(properties.sources.additionalProperties.oneOf.at(-1)).toMatchObject({
      properties: { kind: { const: 'buoy', description: 'The heights of a buoy.' }, server: {}, token: {} },
      required: ['kind', 'server', 'token'],
      additionalProperties: false,
    })
  })

  test.each([
    ['a wrong option', { token: 7 }, {}, /sources\.tides\.token/],
    ['an unknown key', { tokn: 'x' }, {}, /sources\.tides\.tokn is an unknown key\. Did you mean token\?/],
    ['a kind that nothing has', { kind: 'bouy' }, {}, /sources\.tides\.kind is "bouy".*Did you mean buoy\?/],
    ['the kind of a built-in source', { kind: 'gmail' }, {}, /"gmail", which is built in: its section is hooks\.gmail/],
    ['a hook that no mapping has', {}, { hooks: {} }, /hook "tides", which no mapping has\. Add one with "match"/],
    [
      'the name of a built-in hook',
      {},
      { sources: { wake: { kind: 'buoy' } } },
      /sources\.wake has the name of a built-in/,
    ],
  ])('%s is an error of the configuration that names the key', async (_, section, extra, why) => {
    const dir = makeConfigDir({ config: toConfig(section, extra), files: { [file]: source } })
    const { code, json } = await runCommand(['check', '--json'], { dir })
    const details = json().map(({ detail }) => detail)
    expect(details.join('\n')).toMatch(why)
    expect(code).toBe(78)
  })

  test('without plugins, a section of sources is an error', async () => {
    const dir = makeConfigDir({ config: toConfig({}, { plugins: [] }) })
    const { code, stdout } = await runCommand(['check'], { dir })
    expect(stdout).toContain('sources.tides.kind: expected one of "mcp-events", "relay"')
    expect(code).toBe(78)
  })

  test('a plugin cannot have the name of a built-in source', async () => {
    const dir = makeConfigDir({ config: toConfig(), files: { [file]: source.replace("'buoy'", "'gmail'") } })
    const { code, stdout } = await runCommand(['check'], { dir })
    expect(stdout).toContain('has the source "gmail", which is built in')
    expect(code).toBe(78)
  })

  test('a failure is a problem of the gateway without its secrets, until a pass is good again', async () => {
    status = 401
    const { lines, log } = collectLog()
    const files = { [file]: source.replace("' + token + '.'", "' + token, retryAfterMs: 1") }
    const gateway = await startInside({ config: toConfig(), files, log })
    await expect.poll(() => readDegradedBy(gateway)).toEqual(['sources.tides: The buoy answered 401 to ***'])
    const probed = await runCommand(['doctor'], { dir: gateway.dir })
    expect(probed.stdout).toContain('sources.tides: The buoy answered 401')
    const headers = { authorization: `Bearer ${gatewayToken}` }
    const readHealth = async () => (await fetch(`${gateway.adminUrl}/api/health`, { headers })).json()
    const problems = ['The buoy answered 401 to ***']
    expect(await readHealth()).toMatchObject({
      problems: [{ detail: 'sources.tides: The buoy answered 401 to ***' }],
      sources: [{ name: 'sources.tides', lastGoodAt: null, problems }],
    })
    heights = [{ id: 1, cm: 120 }]
    status = 200
    await expect.poll(() => readHeights(gateway)).toEqual(['120'])
    await expect.poll(() => readDegradedBy(gateway)).toEqual([])
    const lastGoodAt = expect.stringMatching(/^\d{4}-/)
    expect(await readHealth()).toMatchObject({ sources: [{ name: 'sources.tides', lastGoodAt, problems: [] }] })
    expect(lines.filter((line) => line.includes('heights were read'))).toEqual([
      'heights were read with *** {"heights":1,"token":"***"}',
    ])
    expect(lines.filter((line) => line.includes(token))).toEqual([])
  })

  test('an exception is a problem that names the plugin and its line, and not what it says', async () => {
    status = 500
    const gateway = await startInside({ config: toConfig(), files: { [file]: source } })
    await expect
      .poll(() => readDegradedBy(gateway))
      .toEqual(['sources.tides: The source hooks/plugins/buoy.ts threw a TypeError at plugins/buoy.ts:14.'])
  })

  test.each([
    ['no items', "store([{ key: '', payload: 7 }], '1')", 'stored no items: store takes [{ key, payload }]'],
    [
      'an item that its hook refuses',
      "store([{ key: 'k', payload: { text: 'x'.repeat(2e6) } }], '1')",
      'has the item "k" of over',
    ],
    ['no result', 'undefined; return 7', 'returned from pass neither nothing nor { problem:'],
    ['another host that is down', "fetch('http://127.0.0.1:1/')", '127.0.0.1:1 does not answer'],
  ])('%s is a problem that says what was expected', async (_, code, why) => {
    const files = { [file]: source.replace(/const since[^]*?String\(heights.*/, `await ${code}`) }
    const gateway = await startInside({ config: toConfig(), files })
    await expect.poll(() => readDegradedBy(gateway)).toEqual([expect.stringContaining(why)])
  })

  test('a saved source goes live, and a broken save leaves the last good version watching', async () => {
    const gateway = await startInside({ config: toConfig(), files: { [file]: source } })
    writeFiles(gateway.dir, { [file]: source.replace('payload: { cm }', 'payload: { cm: cm * 10 }') })
    await expect.poll(() => server.received.length).toBeGreaterThan(2)
    heights = [{ id: 1, cm: 12 }]
    await expect.poll(() => readHeights(gateway)).toEqual(['120'])
    writeFiles(gateway.dir, { [file]: 'export default {' })
    await expect.poll(() => readDegradedBy(gateway)).toEqual([expect.stringMatching(/does not build/)])
    heights.push({ id: 2, cm: 14 })
    await expect.poll(() => readHeights(gateway)).toEqual(['120', '140'])
  })

  test('a source that never loaded begins when it is mended', async () => {
    heights = [{ id: 1, cm: 120 }]
    const gateway = await startInside({ config: toConfig(), files: { [file]: 'export default {' } })
    expect(await readDegradedBy(gateway)).toEqual([expect.stringMatching(/does not build/)])
    expect(server.received).toEqual([])
    writeFiles(gateway.dir, { [file]: source })
    await expect.poll(() => readHeights(gateway)).toEqual(['120'])
  })

  test('an exception in its timer names the plugin and its line', async () => {
    const files = {
      [file]: source.replace('const since', "setTimeout(() => { throw new TypeError('no') }, 10)\nconst since"),
    }
    const gateway = await startGateway({ config: toConfig(), files })
    const closed = once(gateway.child, 'close')
    expect((await closed)[0]).toBe(1)
    expect(gateway.output()).toContain(
      'hooks/plugins/buoy.ts threw a TypeError at plugins/buoy.ts:12 outside of a call',
    )
  })
})
