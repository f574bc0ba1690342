// MCP Events: a section of `sources` subscribes its hook to events of an MCP server, which posts them there.
import { describe, expect, test } from 'vitest'
import { newSchema, whyNoPostgres } from '../contract/postgres-stage.ts'
import { onFileEnd } from '../file-end.ts'
import { runCommand } from './command.ts'
import { describeEngines } from './engines.ts'
import { mcpToken, startMcpServer } from './fakes/mcp-events.ts'
import { makeConfigDir } from './gateway.ts'
import { readDegradedBy, startInside } from './inside.ts'
import { editSection, mcpSecret, readRuns, toMcpConfig } from './mcp-events-stage.ts'

const created = { name: 'incident.created', arguments: { severity: 'P1' } }
const closed = { name: 'incident.closed' }

describeEngines('events of an MCP server', (start) => {
  test('an event to which the hook is subscribed is one run, however often it is posted', async () => {
    const server = await startMcpServer()
    const gateway = await start({ config: await toMcpConfig(server) })
    await expect.poll(server.live).toEqual(['incident.created'])
    server.emit('evt-1')
    server.emit('evt-2', 'incident.closed')
    await expect.poll(() => readRuns(gateway)).toEqual(['evt-1'])
    expect(await server.repeat('evt-1')).toBe(200)
    expect(await readRuns(gateway)).toEqual(['evt-1'])
    expect(server.calls[0]?.params).toMatchObject({
      ...created,
      delivery: { mode: 'webhook', secret: `whsec_${mcpSecret}` },
      cursor: null,
      ttlMs: 86_400_000,
    })
  })

  test('what happens while no gateway runs, and the subscription has ended, arrives after the next start', async () => {
    const server = await startMcpServer()
    const gateway = await start({ config: await toMcpConfig(server) })
    await expect.poll(server.live).toEqual(['incident.created'])
    server.emit('evt-1')
    await expect.poll(() => readRuns(gateway)).toEqual(['evt-1'])
    // the cursor that a renewal brings
    editSection(gateway.dir, { ttlSeconds: 3_600 })
    await expect.poll(() => server.calls.length).toBe(2)
    // the next renewal names the cursor, so the answer to this one was stored
    editSection(gateway.dir, { ttlSeconds: 7_200 })
    await expect.poll(() => server.calls.at(-1)?.params['cursor']).toBe('1')
    await gateway.stop()
    server.forget()
    server.emit('evt-2')
    const again = await start({ dir: gateway.dir })
    await expect.poll(() => readRuns(again)).toEqual(['evt-1', 'evt-2'])
    const { cursor } = server.calls.at(-1)?.params ?? {}
    expect(cursor).toBe('1')
  })

  test('a subscription is renewed before the time that the server grants ends', async () => {
    const server = await startMcpServer({ leaseMs: 4_000 })
    await start({ config: await toMcpConfig(server) })
    await expect.poll(() => server.calls.length).toBeGreaterThanOrEqual(4)
    expect(server.live()).toEqual(['incident.created'])
  })

  test('an event that the configuration no longer names is unsubscribed, also after a restart', async () => {
    const server = await startMcpServer()
    const gateway = await start({ config: await toMcpConfig(server, { events: [created, closed] }) })
    await expect.poll(() => server.live().toSorted()).toEqual(['incident.closed', 'incident.created'])
    editSection(gateway.dir, { events: [created] })
    await expect.poll(server.live).toEqual(['incident.created'])
    await gateway.stop()
    editSection(gateway.dir, { events: [closed] })
    const again = await start({ dir: gateway.dir })
    await expect.poll(server.live).toEqual(['incident.closed'])
    server.emit('evt-1')
    server.emit('evt-2', 'incident.closed')
    await expect.poll(() => readRuns(again)).toEqual(['evt-2'])
  })
})

describe('a subscription that fails', () => {
  test.each<[string, object, RegExp]>([
    ['a wrong token', { token: 'another-token' }, /^incident\.created: 127\.0\.0\.1:\d+ refused the token \(401\)/],
    ['a wrong path', { path: '/nothing' }, /has no MCP server at this URL \(404\)/],
    ['an unknown event', { events: [{ name: 'tide' }] }, /^tide: .* has no event of this name \(-32011\)\.$/],
    ['a callback that nobody answers', { callback: 'http://127.0.0.1:9/hooks/mcp-events' }, /\(connection_refused\)/],
  ])(
    '%s is a problem of the gateway, which says the cause and no secret',
    async (_, { path, ...change }: { path?: string }, why) => {
      const server = await startMcpServer()
      const url = path === undefined ? server.url : server.url.replace('/mcp', path)
      const gateway = await startInside({ config: await toMcpConfig({ url }, change) })
      const read = async () => (await readDegradedBy(gateway)).map((line) => line.replace('sources.mcp-events: ', ''))
      await expect.poll(read).toEqual([expect.stringMatching(why)])
      expect((await read()).join()).not.toContain(mcpSecret)
      expect((await read()).join()).not.toContain('another-token')
    },
  )

  test('it delays no other, and is over when it succeeds', async () => {
    const server = await startMcpServer({ offered: ['incident.closed'] })
    const gateway = await startInside({ config: await toMcpConfig(server, { events: [created, closed] }) })
    await expect.poll(server.live).toEqual(['incident.closed'])
    await expect.poll(() => readDegradedBy(gateway)).toEqual([expect.stringContaining('incident.created: ')])
    editSection(gateway.dir, { events: [closed] })
    await expect.poll(() => readDegradedBy(gateway)).toEqual([])
  })

  test('a server that fails for a while is asked again', async () => {
    const server = await startMcpServer()
    server.planAnswers({ status: 503, headers: { 'retry-after': '1' } }, 'reset', { status: 200, body: 'no JSON' })
    const gateway = await startInside({ config: await toMcpConfig(server) })
    await expect.poll(() => readDegradedBy(gateway)).toEqual([expect.stringContaining('answered 503')])
    await expect.poll(() => server.received.length).toBeGreaterThanOrEqual(2)
  })
})

test('the answers of the server may be event streams', async () => {
  const server = await startMcpServer({ streams: true })
  const gateway = await startInside({ config: await toMcpConfig(server) })
  await expect.poll(server.live).toEqual(['incident.created'])
  server.emit('evt-1')
  await expect.poll(() => readRuns(gateway)).toEqual(['evt-1'])
})

test('the end of a subscription and skipped events are runs that say so', async () => {
  const server = await startMcpServer()
  const gateway = await startInside({ config: await toMcpConfig(server) })
  await expect.poll(server.live).toEqual(['incident.created'])
  expect(await server.control({ type: 'gap', cursor: '7' })).toBe(200)
  expect(await server.control({ type: 'terminated', error: { code: -32_012, message: 'Forbidden' } })).toBe(200)
  await expect.poll(() => readRuns(gateway)).toEqual(['subscriptions', 'subscriptions'])
})

test('an event of more than 256 KiB is refused with 413, so that the server does not repeat it', async () => {
  const server = await startMcpServer()
  await startInside({ config: await toMcpConfig(server) })
  await expect.poll(server.live).toEqual(['incident.created'])
  expect(await server.control({ type: 'gap', cursor: 'x'.repeat(262_144) })).toBe(413)
})

test.skipIf(whyNoPostgres !== undefined)('of two gateways on one store, one subscribes', async () => {
  const server = await startMcpServer()
  const { url, drop } = await newSchema()
  onFileEnd(drop)
  const config = { ...(await toMcpConfig(server)), store: { url } }
  const one = await startInside({ config })
  await expect.poll(server.live).toEqual(['incident.created'])
  const other = await startInside({ config: { ...config, server: {} } })
  await one.stop()
  // the other one takes over, and renews the same subscription
  await expect.poll(() => server.calls.length).toBe(2)
  expect(server.live()).toEqual(['incident.created'])
  await other.stop()
})

test('doctor asks the server for its events, and subscribes to nothing', async () => {
  const server = await startMcpServer()
  const read = async (more: object) => {
    const dir = makeConfigDir({ config: await toMcpConfig(server, more) })
    const found = (await runCommand(['doctor', '--json'], { dir })).json()
    return found.find(({ name }) => name === 'source-mcp-events')
  }
  expect(await read({})).toMatchObject({ ok: true, detail: expect.stringContaining('accepts the token') })
  expect(await read({ events: [{ name: 'tide' }] })).toMatchObject({
    ok: false,
    detail: expect.stringContaining('has no event "tide"'),
  })
  expect(await read({ token: 'another-token' })).toMatchObject({ ok: false, detail: expect.stringContaining('(401)') })
  expect(server.live()).toEqual([])
})

test.each<[string, object, RegExp]>([
  ['a short secret', { secret: 'c2hvcnQ=' }, /sources\.mcp-events\.secret.*24 to 64 bytes/s],
  ['a callback without TLS', { callback: 'http://hooks.example.com/hooks/mcp-events' }, /callback.*https/s],
  ['a server without TLS', { url: 'http://mcp.example.com/mcp' }, /url.*https/s],
  ['no event', { events: [] }, /events/],
])('%s is an error of the configuration', async (_, change, why) => {
  const config = await toMcpConfig({ url: 'https://mcp.example.com/mcp' }, change)
  const checked = await runCommand(['check'], { dir: makeConfigDir({ config }) })
  expect(checked.code).not.toBe(0)
  expect(checked.stdout + checked.stderr).toMatch(why)
})

test('the token and the secret of the section are in no output of check', async () => {
  const config = await toMcpConfig({ url: 'https://mcp.example.com/mcp' })
  const checked = await runCommand(['check'], { dir: makeConfigDir({ config }) })
  expect(checked.code).toBe(0)
  expect(checked.stdout).not.toContain(mcpToken)
})
