// The next version of a transform runs on the same requests as the live version, and `publish` puts it in the place of the live version.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { ShadowFields } from '../../src/model/api/replay.ts'
import { newSchema, whyNoPostgres } from '../contract/postgres-stage.ts'
import { runCommand } from './command.ts'
import { gatewayToken, makeConfigDir, writeFiles } from './gateway.ts'
import { type Inside, startInside } from './inside.ts'
import { post } from './wire.ts'
import { onFileEnd } from '../file-end.ts'

/** A shadow has the lowest priority, so on a busy machine its runs wait for minutes. */
const limits = { timeout: 300_000, interval: 20 }
const mapping = {
  id: 'orders',
  match: { path: 'orders' },
  transform: { module: 'orders.ts', shadow: 'orders.next.ts' },
  deliver: false,
}
const config = { hooks: { mappings: [mapping] } }
const live = `export default async ({ payload }, { state }) => {
  const seen = (await state.get('seen')) ?? 0
  state.set('seen', seen + 1)
  return payload.n === 2 ? null : { message: 'order ' + payload.n + ' after ' + seen }
}\n`
const next = `import { writeFileSync } from 'node:fs'
export default async ({ payload }, { state, replay, deliveryId }) => {
  const seen = (await state.get('seen')) ?? 0
  state.set('seen', 100)
  if (payload.n === 4) writeFileSync(payload.file, 'x')
  return { message: (payload.n === 3 ? 'Order ' : 'order ') + payload.n + ' after ' + seen, name: undefined }
}\n`
const files = { 'hooks/transforms/orders.ts': live, 'hooks/transforms/orders.next.ts': next }

async function readShadows({ adminUrl }: Pick<Inside, 'adminUrl'>): Promise<ShadowFields[]> {
  const answer = await fetch(`${adminUrl}/api/shadows`, { headers: { authorization: `Bearer ${gatewayToken}` } })
  return z.object({ shadows: z.array(ShadowFields) }).parse(await answer.json()).shadows
}

/** Waits for the run of each request, so that no run is dropped. */
async function send(gateway: Inside, payload: object): Promise<void> {
  const before = (await readShadows(gateway))[0]?.runs ?? 0
  const { status } = await post(gateway.port, '/hooks/orders', payload)
  expect([200, 204]).toContain(status)
  await vi.waitUntil(async () => (await readShadows(gateway))[0]?.runs === before + 1, limits)
}

test.for([
  ['SQLite', undefined],
  ['Postgres', whyNoPostgres],
] as const)(
  'a shadow sees the state that the live code saw, its differences are counted, and it changes nothing: %s',
  { timeout: 600_000 },
  async ([engine, reason], { skip }) => {
    if (reason !== undefined) skip(reason)
    const schema = engine === 'Postgres' ? await newSchema() : undefined
    if (schema !== undefined) onFileEnd(schema.drop)
    const url = schema?.url
    const dir = makeConfigDir({ config: url === undefined ? config : { ...config, store: { url } } })
    const gateway = await startInside({ dir, files })
    await vi.waitUntil(async () => (await readShadows(gateway)).length === 1, limits)
    const file = join(dir, 'written')
    for (const n of [0, 1, 2, 3, 4, 5]) await send(gateway, { n, file })
    const [found] = await readShadows(gateway)
    expect(found).toMatchObject({
      mappingId: 'orders',
      module: 'orders.ts',
      shadow: 'orders.next.ts',
      problem: null,
      runs: 6,
      dropped: 0,
      counts: { same: 3, 'now works': 1, changed: 1, 'now parks': 1 },
      differences: [
        { class: 'now parks', path: 'decision' },
        { class: 'changed', path: 'actions[0].message' },
        { class: 'now works', path: 'decision' },
      ],
    })
    expect(existsSync(file)).toBe(false)
    const state = await runCommand(['state', 'orders.ts', '--json'], { dir })
    expect(state.json()).toMatchObject([{ key: 'seen', value: 6 }])
    expect((await runCommand(['state', '--json'], { dir })).json()).toHaveLength(1)
    const shown = await runCommand(['shadow'], { dir })
    expect(shown.stdout).toContain('orders: orders.ts → orders.next.ts')
    expect(shown.stdout).toContain('3 same')
    const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text()
    expect(metrics).toContain('hookloom_shadow_total{hook="orders",class="same"} 3')
  },
)

test('a shadow that does not load causes a warning, and runs after it is corrected', { timeout: 600_000 }, async () => {
  const warnings: string[] = []
  const log = { debug() {}, info() {}, error() {}, warn: (_: object, text: string) => void warnings.push(text) }
  const broken = { ...files, 'hooks/transforms/orders.next.ts': 'export default (' }
  const gateway = await startInside({ config, files: broken, log })
  await vi.waitUntil(() => warnings.some((text) => text.includes('the shadow of the mapping "orders"')), limits)
  expect((await readShadows(gateway))[0]?.problem).toContain('orders.next.ts')
  const { status } = await post(gateway.port, '/hooks/orders', { n: 1 })
  expect(status).toBe(200)
  expect(await (await fetch(`${gateway.adminUrl}/readyz`)).json()).toMatchObject({ ok: true, degraded: false })
  writeFiles(gateway.dir, { 'hooks/transforms/orders.next.ts': live })
  await vi.waitUntil(async () => (await readShadows(gateway))[0]?.problem === null, limits)
  await send(gateway, { n: 7 })
  expect((await readShadows(gateway))[0]?.counts).toEqual({ same: 1 })
})

test(
  'hookloom check loads the shadows, and names the file and the line of a shadow that is missing or does not build',
  { timeout: 120_000 },
  async () => {
    const check = async (text: string | undefined) => {
      const dir = makeConfigDir({ config })
      writeFiles(dir, { 'hooks/transforms/orders.ts': live, ...(text && { 'hooks/transforms/orders.next.ts': text }) })
      const { code, json } = await runCommand(['check', '--json'], { dir })
      return { code, found: json().filter(({ name }) => name === 'shadow orders.next.ts') }
    }
    const place = /^hookloom\.jsonc:\d+:\d+ hooks\.mappings\[0\]\.transform\.shadow does not load\.$/m
    expect(await check(next)).toMatchObject({
      code: 0,
      found: [{ ok: true, detail: expect.stringMatching(/^builds and loads/) }],
    })
    const broken = await check('export default () => {\n  retrun 1\n}\n')
    expect(broken).toMatchObject({ code: 70, found: [{ ok: false, severity: 'failure' }] })
    expect(broken.found[0]?.['detail']).toMatch(/orders\.next\.ts:2:/)
    expect(broken.found[0]?.['detail']).toMatch(place)
    const missing = await check(undefined)
    expect(missing.code).toBe(70)
    expect(missing.found[0]?.['detail']).toMatch(/transforms\/orders\.next\.ts/)
    expect(missing.found[0]?.['detail']).toMatch(place)
  },
)

test(
  'hookloom publish replaces the module by its shadow, and keeps the comments and the previous code',
  { timeout: 120_000 },
  async () => {
    const gateway = await startInside({ config, files })
    const file = join(gateway.dir, 'hookloom.jsonc')
    const text = readFileSync(file, 'utf8')
    writeFiles(gateway.dir, { 'hookloom.jsonc': `// the orders of the shop\n${text}` })
    expect((await runCommand(['publish', 'other'], { dir: gateway.dir })).code).toBe(64)
    const published = await runCommand(['publish', 'orders'], { dir: gateway.dir })
    expect(published).toMatchObject({ code: 0, stderr: '' })
    const edited = readFileSync(file, 'utf8')
    expect(edited).toMatch(/^\/\/ the orders of the shop\n/)
    expect(edited).not.toContain('shadow')
    const folder = join(gateway.dir, 'hooks/transforms')
    expect(readFileSync(join(folder, 'orders.ts'), 'utf8')).toBe(next)
    expect(readFileSync(join(folder, 'orders.previous.ts'), 'utf8')).toBe(live)
    expect(existsSync(join(folder, 'orders.next.ts'))).toBe(false)
    await vi.waitUntil(async () => {
      await post(gateway.port, '/hooks/orders', { n: 3 })
      const listed = await runCommand(['list', '--json'], { dir: gateway.dir })
      return listed.stdout.includes('Order 3') || (await readShadows(gateway)).length === 0
    }, limits)
  },
)

test('hookloom publish finishes a call that was killed after it wrote the module, and keeps the code from before', async () => {
  const dir = makeConfigDir({ config })
  const folder = 'hooks/transforms'
  writeFiles(dir, { ...files, [`${folder}/orders.ts`]: next, [`${folder}/orders.previous.ts`]: live })
  expect((await runCommand(['publish', 'orders'], { dir })).code).toBe(0)
  expect(readFileSync(join(dir, folder, 'orders.previous.ts'), 'utf8')).toBe(live)
  expect(readFileSync(join(dir, 'hookloom.jsonc'), 'utf8')).not.toContain('shadow')
  expect(existsSync(join(dir, folder, 'orders.next.ts'))).toBe(false)
})

test(
  'hookloom publish refuses a shadow while another mapping runs the module without it',
  { timeout: 60_000 },
  async () => {
    const others = { hooks: { mappings: [mapping, { ...mapping, id: 'more', transform: { module: 'orders.ts' } }] } }
    const dir = makeConfigDir({ config: others })
    writeFiles(dir, files)
    const refused = await runCommand(['publish', 'orders'], { dir })
    expect(refused.code).toBe(65)
    expect(refused.stderr).toContain('The mapping "more" runs transforms/orders.ts too')
    expect(readFileSync(join(dir, 'hooks/transforms/orders.ts'), 'utf8')).toBe(live)
  },
)
