// Waits for the next delivery of a hook with a session key: by HTTP, by `hookloom await`, and by the tool of `hookloom mcp`.
import { expect, test, vi } from 'vitest'
import { newSchema, whyNoPostgres } from '../contract/postgres-stage.ts'
import { onFileEnd } from '../file-end.ts'
import { runCommand } from './command.ts'
import { describeEngines } from './engines.ts'
import { makeConfigDir } from './gateway.ts'
import { type Inside, readStore, startInside } from './inside.ts'
import { connectMcp } from './mcp-client.ts'
import { bearer, type Headers, json, post, send } from './wire.ts'

const hooks = {
  mappings: [
    { id: 'pulls', match: { path: 'pulls' }, messageTemplate: '{{n}}', sessionKey: 'hook:pr:{{n}}', deliver: false },
    { id: 'later', match: { path: 'later' }, transform: { module: 'later.ts' } },
    { id: 'named', match: { path: 'named/await' }, messageTemplate: 'x', deliver: false },
  ],
}
const tokens = {
  'asks-pulls': { token: 'asks-pulls-0123456789', may: ['send:pulls/await'] },
  'sends-pulls': { token: 'sends-pulls-0123456789', may: ['send:pulls'] },
}
const broken = 'export default () => { throw new Error("not yet") }'
const mended = "export default ({ payload }) => ({ message: 'x', sessionKey: `hook:pr:${payload.n}`, deliver: false })"
const files = { 'hooks/transforms/later.ts': broken }
const config = { hooks, tokens }

async function ask({ port }: Pick<Inside, 'port'>, body: object, headers: Headers = bearer, hook = 'pulls') {
  const parts = { target: `/hooks/${hook}/await`, headers: [...json, ...headers], body: JSON.stringify(body) }
  const answer = await send(port, parts)
  const fields = JSON.parse(String(answer.body)) as Record<string, unknown>
  return { ...fields, status: answer.status, headers: answer.headers } as Record<string, unknown>
}

async function arrive({ port }: Pick<Inside, 'port'>, n: number, hook = 'pulls'): Promise<string> {
  const { body } = await post(port, `/hooks/${hook}`, { n })
  return (JSON.parse(String(body)) as { deliveryId: string }).deliveryId
}

const wait: Headers = [...bearer, ['prefer', 'wait=20']]

describeEngines('a wait for a delivery', (start) => {
  test('ends with the next delivery of the hook and the key, and not with an earlier or another one', async () => {
    const gateway = await start({ config, files })
    await arrive(gateway, 42)
    const asked = { key: 'hook:pr:42', id: 'deploy-7' }
    const first = await ask(gateway, asked)
    expect(first).toMatchObject({ ok: true, status: 202, state: 'waiting', id: 'deploy-7', key: asked.key })
    expect(first).toMatchObject({ deliveryId: null, headers: { 'retry-after': '5' } })
    const days = (Date.parse(String(first['expiresAt'])) - Date.now()) / 86_400_000
    expect(days).toBeCloseTo(14, 1)
    const waiting = ask(gateway, asked, wait)
    await arrive(gateway, 41)
    const deliveryId = await arrive(gateway, 42)
    expect(await waiting).toMatchObject({
      status: 200,
      state: 'arrived',
      deliveryId,
      headers: { 'preference-applied': 'wait=20' },
    })
    await arrive(gateway, 42)
    expect(await ask(gateway, asked)).toMatchObject({ status: 200, state: 'arrived', deliveryId })
    expect(await ask(gateway, { key: asked.key })).toMatchObject({ state: 'waiting' })
  })

  test('survives a restart, and a parked delivery ends it when its transform is mended', async () => {
    const gateway = await start({ config, files })
    const asked = { key: 'hook:pr:7', id: 'x' }
    await ask(gateway, asked, bearer, 'later')
    const deliveryId = await arrive(gateway, 7, 'later')
    expect(await ask(gateway, asked, bearer, 'later')).toMatchObject({ state: 'waiting' })
    await gateway.stop()
    const again = await start({ dir: gateway.dir, files: { 'hooks/transforms/later.ts': mended } })
    expect(await ask(again, asked, wait, 'later')).toMatchObject({ state: 'arrived', deliveryId })
  })

  test('expires', async () => {
    const gateway = await start({ config, files })
    const asked = { key: 'hook:pr:9', id: 'short', withinSeconds: 1 }
    expect(await ask(gateway, asked, wait)).toMatchObject({ status: 200, state: 'expired', deliveryId: null })
    await arrive(gateway, 9)
    expect(await ask(gateway, asked)).toMatchObject({ state: 'expired', deliveryId: null })
  })
})

test('the body, the token and the path are checked as for a hook', async () => {
  const gateway = await startInside({ config, files })
  const refuse = async (body: object, headers: Headers = bearer, hook = 'pulls') => {
    const { status, error } = await ask(gateway, body, headers, hook)
    return [status, error]
  }
  expect(await refuse({})).toEqual([400, expect.stringContaining('key: expected')])
  expect(await refuse({ key: 'a\u001fb' })).toEqual([400, expect.stringContaining('without control characters')])
  expect(await refuse({ key: 'x', id: 'a b' })).toEqual([400, expect.stringContaining('id: expected')])
  expect(await refuse({ key: 'x', withinSeconds: 2_000_000 })).toEqual([400, expect.stringContaining('withinSeconds')])
  expect((await refuse({ key: 'x'.repeat(9_000) }))[0]).toBe(413)
  expect((await refuse({ key: 'x' }, bearer, 'nothing'))[0]).toBe(404)
  expect((await refuse({ key: 'x' }, [['authorization', 'Bearer wrong']]))[0]).toBe(401)
  const bearerOf = (token: string): Headers => [['authorization', `Bearer ${token}`]]
  expect((await refuse({ key: 'x' }, bearerOf('sends-pulls-0123456789')))[0]).toBe(401)
  expect((await refuse({ key: 'x' }, bearerOf('asks-pulls-0123456789')))[0]).toBe(202)
  expect(
    (await send(gateway.port, { target: '/hooks/pulls', headers: bearerOf('asks-pulls-0123456789'), body: '{}' }))
      .status,
  ).toBe(401)
  // a mapping with this path takes the request
  expect(await ask(gateway, {}, bearer, 'named')).toMatchObject({ status: 200, runId: expect.any(String) })
})

test('hookloom await exits with 0 when the delivery came, and with 75 when it did not, and the tool of MCP waits too', async () => {
  const gateway = await startInside({ config, files })
  const { dir } = gateway
  const command = runCommand(['await', 'pulls', '--key', 'hook:pr:3', '--id', 'cli'], { dir })
  const readAwaits = () => readStore(dir, (store) => store.cursors('await/'))
  await vi.waitFor(async () => expect(await readAwaits()).toHaveLength(1), 15_000)
  const deliveryId = await arrive(gateway, 3)
  const came = await command
  expect([came.code, came.stdout]).toEqual([0, `${deliveryId} arrived\n`])
  expect(came.stderr).toContain('hookloom await pulls --key hook:pr:3 --id cli')
  const again = await runCommand(['await', 'pulls', '--key', 'hook:pr:3', '--id', 'cli', '--json'], { dir })
  expect(again.json()).toMatchObject([{ state: 'arrived', deliveryId }])
  const late = await runCommand(['await', 'pulls', '--key', 'hook:pr:1', '--timeout', '1'], { dir })
  expect([late.code, late.stdout]).toEqual([75, 'No delivery came in time.\n'])
  const agent = await connectMcp({ dir })
  expect(await agent.ask('await', { hook: 'pulls', key: 'hook:pr:3', id: 'cli' })).toMatchObject({ deliveryId })
  expect((await runCommand(['await', 'pulls', '--key', 'x'], { dir: makeConfigDir() })).code).toBe(69)
})

test.skipIf(whyNoPostgres !== undefined)('a delivery to another gateway on the store ends a wait', async () => {
  const { url, drop } = await newSchema()
  onFileEnd(drop)
  const [one, other] = await Promise.all(
    [1, 2].map(() => startInside({ config: { ...config, store: { url } }, files })),
  )
  if (one === undefined || other === undefined) throw new Error('two gateways')
  const asked = { key: 'hook:pr:5', id: 'x' }
  await ask(one, asked)
  const waiting = ask(one, asked, wait)
  const deliveryId = await arrive(other, 5)
  expect(await waiting).toMatchObject({ state: 'arrived', deliveryId })
  expect(await ask(other, asked)).toMatchObject({ state: 'arrived', deliveryId })
})
