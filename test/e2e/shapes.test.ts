// What a gateway learns about payloads, over its ports and commands.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import type { ShapeFields } from '../../src/model/api/shapes.ts'
import { silentLog } from '../../src/base/log.ts'
import { runCommand } from './command.ts'
import { describeEngines } from './engines.ts'
import { gatewayToken, hookToken, makeConfigDir, startGateway } from './gateway.ts'
import type { Inside } from './inside.ts'

const config = {
  hooks: { mappings: [{ id: 'orders', match: { path: 'orders' }, messageTemplate: '{{id}}', deliver: false }] },
}

async function send(gateway: Pick<Inside, 'url'>, payload: object): Promise<void> {
  const headers = { authorization: `Bearer ${hookToken}`, 'content-type': 'application/json' }
  const reply = await fetch(`${gateway.url}/orders`, { method: 'POST', headers, body: JSON.stringify(payload) })
  expect(reply.status).toBe(200)
}

const schemaModule = `import { defineTransform } from 'hookloom'
import { z } from 'zod'
const payload = z.object({ customer: z.object({ name: z.string().optional() }) })
export default defineTransform({ payload, run: ({ payload }) => ({ message: 'An order: ' + payload.customer.name }) })`

describeEngines('the shapes that a gateway learns', (start) => {
  test(
    'types are made from the requests of a gateway, without the e-mail addresses in them',
    { timeout: 120_000 },
    async () => {
      const gateway = await start({ config })
      for (let id = 0; id < 25; id += 1)
        await send(gateway, { id, status: 'paid', customer: { email: 'ada@example.org' } })
      await gateway.stop()
      const ran = await runCommand(['types', 'orders', '--zod'], { dir: gateway.dir })
      expect(ran).toMatchObject({ code: 0, stderr: '' })
      expect(ran.stdout).toMatch(/orders\.d\.ts {2}OrdersPayload\n.*orders\.zod\.ts {2}ordersPayload\n$/)
      const folder = join(gateway.dir, 'hooks/transforms/payloads')
      const types = readFileSync(join(folder, 'orders.d.ts'), 'utf8')
      expect(types).toContain('export type OrdersPayload = {\n  id: number\n')
      expect(types).toContain("status: 'paid' | (string & {})")
      expect(types).not.toContain('ada')
      expect(readFileSync(join(folder, 'orders.zod.ts'), 'utf8')).toContain(
        'export const ordersPayload = z.looseObject({',
      )
      const again = await runCommand(['types', '--json'], { dir: gateway.dir })
      expect(again.json()).toMatchObject([{ hook: 'orders', types: ['OrdersPayload'], isNew: false }])
    },
  )

  test('hookloom shapes lists the events, and the changes in their payloads since a given time', async () => {
    let now = Date.UTC(2026, 0, 2)
    const gateway = await start({ config, clock: () => now })
    for (let id = 0; id < 30; id += 1) {
      now += 60_000
      await send(gateway, { id, note: 'x' })
    }
    const changedAt = now
    for (let id = 0; id < 30; id += 1) {
      now += 60_000
      await send(gateway, { id: `${id}`, total: { amount: 1 } })
    }
    await gateway.stop()
    const { dir } = gateway
    const [all] = (await runCommand(['shapes', '--json'], { dir })).json()
    expect(all).toMatchObject({ hook: 'orders', source: null, event: null, requests: 60 })
    const since = new Date(changedAt + 1).toISOString()
    const changed = await runCommand(['shapes', 'orders', '--since', since], { dir })
    expect(changed.stdout).toContain('id is now sometimes string')
    expect(changed.stdout).toContain('total is new: object')
    expect(changed.stdout).not.toContain('total.amount')
    const before = new Date(changedAt - 60_000).toISOString()
    expect((await runCommand(['shapes', '--since', before], { dir })).stdout).toContain(
      'note came last then; it was in 30 of 60',
    )
    expect((await runCommand(['shapes', '--since', '2027-01-01T00:00:00Z'], { dir })).stdout).toContain(
      'Nothing changed.',
    )
  })

  test('hookloom types names a similar hook for an unknown one, and reports that no request is known yet', async () => {
    const gateway = await start({ config })
    const { dir } = gateway
    for (const command of [
      ['shapes', 'order'],
      ['list', '--hook', 'order'],
    ])
      expect((await runCommand(command, { dir })).stdout).toBe(
        'No mapping has the hook "order". Did you mean "orders"?\n',
      )
    expect((await runCommand(['shapes', 'orders'], { dir })).stdout).toBe('No request of the hook "orders" yet.\n')
    const odd = await runCommand(['list', '--hook', 'a\u001b[31m\u2028\u202eb'], { dir })
    expect(odd.stdout).toMatch(/^No mapping has the hook "a[^\p{C}\u2028]*b"\..*\n$/u)
    const filtered = ['list', '--state', 'parked', '--hook', 'orders']
    expect((await runCommand(filtered, { dir })).stdout).toBe('No delivery matches --state parked --hook orders.\n')
    expect(await runCommand(['types', 'order'], { dir })).toMatchObject({
      code: 65,
      stderr: expect.stringContaining('Did you mean "orders"?'),
    })
    expect((await runCommand(['types'], { dir })).stderr).toContain('No request is known yet')
  })

  test(
    'hookloom new makes a transform with the types of a stored delivery, and the compiler accepts both',
    { timeout: 120_000 },
    async () => {
      const gateway = await start({ config: { hooks: { ...config.hooks, retain: 10 } } })
      await send(gateway, { id: 1, order: { title: 'Three lamps', 'no name': 1 }, at: '2026-01-02T03:04:05Z' })
      await gateway.stop()
      const { dir } = gateway
      expect(await runCommand(['new', 'lamps', '--from', 'last'], { dir })).toMatchObject({
        code: 0,
        stderr: 'No request of the hook "lamps" is stored: the last one came for "orders".\n',
      })
      const root = join(dir, 'hooks/transforms')
      expect(readFileSync(join(root, 'lamps.ts'), 'utf8')).toContain(
        "import type { LampsPayload } from './payloads/lamps.ts'",
      )
      expect(readFileSync(join(root, 'payloads/lamps.d.ts'), 'utf8')).toContain('title?: string | null')
      expect(readFileSync(join(root, 'payloads/lamps.d.ts'), 'utf8')).not.toContain('Three')
      expect(await runCommand(['check', '--types'], { dir })).toMatchObject({ code: 0 })
      expect(await runCommand(['test', 'lamps'], { dir })).toMatchObject({ code: 0 })
    },
  )

  test(
    'hookloom check, a reload and the API warn about a path that no request has, and suggest a similar path',
    { timeout: 120_000 },
    async () => {
      const lines: string[] = []
      const log = { ...silentLog, warn: (_: object, text: string) => void lines.push(text) }
      const gateway = await start({ config, log })
      await send(gateway, { id: 1, customer: { address: 'x' } })
      await vi.waitUntil(async () => (await runCommand(['shapes', '--json'], { dir: gateway.dir })).stdout !== '', {
        timeout: 60_000,
      })
      const file = join(gateway.dir, 'hookloom.jsonc')
      writeFileSync(file, readFileSync(file, 'utf8').replace('{{id}}', '{{id}} {{customer.adress}}'))
      const warning =
        'messageTemplate reads "customer.adress", which is in 0 of 1 known requests. Did you mean "customer.address"?'
      await vi.waitUntil(() => lines.some((line) => line.includes(warning)), { timeout: 60_000 })
      const reply = await fetch(`${gateway.adminUrl}/api/hooks`, {
        headers: { authorization: `Bearer ${gatewayToken}` },
      })
      expect(await reply.json()).toMatchObject({
        hooks: [{ name: 'orders', mappings: [{ warnings: [warning] }] }, {}, {}],
      })
      const checked = await runCommand(['check'], { dir: gateway.dir })
      expect(checked).toMatchObject({ code: 0, stdout: expect.stringContaining(`mapping orders: ${warning}`) })
    },
  )

  test.each([
    ['template', { messageTemplate: 'An order: {{customer.name}}' }],
    ['schema', { transform: { module: 'orders.ts' } }],
  ])(
    'the operator is told about a field that a %s reads and that requests no longer have',
    { timeout: 120_000 },
    async (_, action) => {
      const printed: string[] = []
      const watched = {
        hooks: {
          ...config.hooks,
          alerts: { channel: 'console' },
          mappings: [{ id: 'orders', match: { path: 'orders' }, ...action, deliver: false }],
        },
      }
      const files = { 'hooks/transforms/orders.ts': schemaModule }
      const gateway = await start({ config: watched, files, write: ({ text }) => void printed.push(text) })
      for (let id = 0; id < 25; id += 1) await send(gateway, { id, customer: { name: 'Ada' } })
      for (let id = 25; id < 33; id += 1) await send(gateway, { id, customer: { fullName: 'Ada' } })
      const listAlerts = () => printed.filter((text) => text.includes('Hookloom: the hook'))
      await vi.waitUntil(() => listAlerts().length > 0, { timeout: 60_000 })
      expect(listAlerts()).toHaveLength(1)
      expect(listAlerts()[0]).toContain('the hook "orders": "customer.name" is missing in the last')
      expect(listAlerts()[0]).not.toContain('Ada')
    },
  )

  test(
    'the API shows the learnt shapes and, for each change, a kept request from which one call makes a fixture',
    { timeout: 120_000 },
    async () => {
      const files = { 'hooks/transforms/orders.ts': 'export default () => ({ message: "An order" })' }
      const mappings = [{ id: 'orders', match: { path: 'orders' }, transform: { module: 'orders.ts' }, deliver: false }]
      let now = Date.UTC(2026, 0, 2)
      const config = { hooks: { retain: 100, mappings } }
      const gateway = await start({ config, files, development: true, clock: () => now })
      const headers = { authorization: `Bearer ${gatewayToken}` }
      const ask = async (path: string, method = 'GET') =>
        (await (await fetch(`${gateway.adminUrl}${path}`, { method, headers })).json()) as Record<string, unknown>
      const list = async (query = '') => (await ask(`/api/shapes?hook=orders${query}`))['shapes'] as ShapeFields[]
      const until = async (requests: number) =>
        await expect.poll(async () => (await list())[0]?.requests ?? 0).toBe(requests)
      for (let id = 0; id < 10; id += 1) await send(gateway, { id, total: 1, note: 'Ada' })
      await until(10)
      now += 60_000
      const changedAt = new Date(now).toISOString()
      await send(gateway, { id: 11, total: '1 EUR', note: 'Ada' })
      await send(gateway, { id: 12, total: 2, note: 'Ada', lines: [{ title: 'Lamp' }] })
      await send(gateway, { id: 13, total: 3, note: 'Ada' })
      await until(13)

      const [shape] = await list(`&since=${changedAt}`)
      const read = async (id: string | null | undefined) =>
        JSON.parse(String((await ask(`/api/deliveries/${id}/request`))['body'])) as { id: number }
      expect(shape?.changes.map(({ text }) => text)).toEqual(['total is now sometimes string', 'lines is new: array'])
      expect((await read(shape?.changes[0]?.example)).id).toBe(11)
      expect((await read(shape?.changes[1]?.example)).id).toBe(12)
      expect((await read(shape?.example)).id).toBe(13)
      expect(JSON.stringify(shape)).not.toContain('Ada')
      expect(await ask(`/api/deliveries/${shape?.changes[0]?.example}/capture`, 'POST')).toMatchObject({
        ok: true,
        module: 'orders.ts',
        decision: 'accept',
      })

      expect(await ask('/api/paths?hook=orders')).toMatchObject({
        requests: 14,
        paths: expect.arrayContaining([
          { path: 'total', kinds: ['number', 'string'], count: 14 },
          { path: 'lines[0].title', kinds: ['string'], count: 1 },
        ]),
      })
      expect(await ask('/api/paths?hook=nothing')).toEqual({ ok: true, requests: 0, paths: [] })
      expect(await ask('/api/paths')).toMatchObject({ ok: false, code: 'usage-invalid' })
      expect(await ask('/api/shapes?since=yesterday')).toMatchObject({ ok: false, code: 'usage-invalid' })
      await gateway.stop()
      const rows = (await runCommand(['shapes', 'orders', '--since', changedAt, '--json'], { dir: gateway.dir })).json()
      expect(rows).toEqual([shape])
    },
  )
})

test('each hook has its own file of types, even if its name is too long for a file name or has special characters', async () => {
  const hooks = ['team-alerts', 'team/alerts', 'team.alerts', 'any', '+', 'x/'.repeat(250) + 'x']
  const mappings = hooks.map((path, index) => ({ match: { path }, transform: { module: `t${index}.ts` } }))
  const files = hooks.flatMap((path, index) => [
    [`hooks/transforms/t${index}.ts`, 'export default () => null\n'],
    [
      `hooks/transforms/t${index}.fixtures/first.json`,
      JSON.stringify({ request: { path, payload: { [`f${index}`]: 1 } } }),
    ],
  ])
  const dir = makeConfigDir({ config: { hooks: { mappings } }, files: Object.fromEntries(files) })
  const ran = await runCommand(['types', '--json'], { dir })
  expect(ran).toMatchObject({ code: 0, stderr: '' })
  const written = ran.json()
  expect(written).toHaveLength(hooks.length)
  for (const { hook, file } of written) {
    expect(readFileSync(`${file}`, 'utf8')).toContain(`{\n  f${hooks.indexOf(`${hook}`)}?: number`)
  }
  expect(written.find(({ hook }) => hook === 'team-alerts')?.['file']).toMatch(/payloads\/team-alerts\.d\.ts$/)
  expect(written.find(({ hook }) => hook === 'team/alerts')?.['file']).toMatch(/payloads\/team\/alerts\.d\.ts$/)
})

test('hookloom dev writes the types of a hook when its payloads change, and hookloom start does not', async () => {
  const files = { 'hookloom.schema.json': '{}' }
  const dev = await startGateway({ command: 'dev', config, files })
  const schemaFile = join(dev.dir, 'hookloom.schema.json')
  const file = join(dev.dir, 'hooks/transforms/payloads/orders.d.ts')
  const read = () => (existsSync(file) ? readFileSync(file, 'utf8') : '')
  await send(dev, { id: 1 })
  await vi.waitUntil(() => read().includes('id?: number | null'), { timeout: 60_000 })
  await send(dev, { id: 'x', total: 1 })
  await vi.waitUntil(() => read().includes('id?: number | string | null'), { timeout: 60_000 })
  expect(read()).toContain('total?: number | null')
  expect(dev.output()).toContain('hooks/transforms/payloads/orders.d.ts is written: OrdersPayload')
  expect(dev.output()).not.toMatch(/d\.ts is live|could not be written/)
  const schema = () => readFileSync(schemaFile, 'utf8')
  await vi.waitUntil(() => schema().includes('{{total}}'), { timeout: 60_000 })
  expect(JSON.parse(schema())).toMatchObject({ properties: { hooks: {} }, definitions: { condition: {} } })
  await dev.stop()
  const start = await startGateway({ config })
  await send(start, { id: 1 })
  await start.stop()
  expect(existsSync(join(start.dir, 'hooks/transforms/payloads'))).toBe(false)
  expect((await runCommand(['shapes', '--json'], { dir: start.dir })).json()).toMatchObject([{ requests: 1 }])
})
