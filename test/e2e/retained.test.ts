// Which finished requests a gateway keeps.
import { describe, expect, test } from 'vitest'
import { hookToken, post as send } from './gateway.ts'
import { readStore, startInside } from './inside.ts'

const module = { 'hooks/transforms/x.ts': 'export default ({ payload }) => (payload.skip ? null : { message: "m" })\n' }
const x = { id: 'x', match: { path: 'x' }, transform: { module: 'x.ts' }, deliver: false }
const plain = { id: 'plain', match: { path: 'plain', payload: { n: 1 } }, deliver: false }

const readKept = (dir: string) => readStore(dir, (store) => store.keptDeliveries({ limit: 99 }))

describe('requests of finished deliveries', () => {
  const post = (url: string, hook: string, payload: object, headers?: Record<string, string>) =>
    send({ url, token: hookToken }, hook, payload, headers).catch(() => undefined)

  test('hookloom start keeps no finished request, and hookloom dev keeps those of each hook', async () => {
    for (const development of [false, true]) {
      const { dir, url } = await startInside({
        development,
        files: module,
        config: { hooks: { mappings: [x, plain] } },
      })
      for (const payload of [{ n: 1 }, { skip: true }]) await post(url, 'x', payload)
      await post(url, 'plain', { n: 2 })
      await post(url, 'wake', { text: 'hello' })
      const found = await readKept(dir)
      const expected = [
        { hook: 'wake', state: 'accepted', mappingId: undefined },
        { hook: 'plain', state: 'skipped', mappingId: undefined },
        { hook: 'x', state: 'skipped', mappingId: 'x' },
        { hook: 'x', state: 'accepted', mappingId: 'x' },
      ]
      expect(found).toMatchObject(development ? expected : [])
      expect(found).toHaveLength(development ? 4 : 0)
    }
  })

  test('finished requests are kept as hooks.retain or the mapping says', async () => {
    const mappings = [
      { ...x, retain: false },
      { ...plain, match: { path: 'plain' }, retain: true },
      { id: 'two', match: { path: 'two' }, deliver: false },
    ]
    const { dir, url } = await startInside({ files: module, config: { hooks: { retain: 2, mappings } } })
    for (const n of [1, 2, 3]) for (const hook of ['x', 'plain', 'two']) await post(url, hook, { n })
    const found = await readKept(dir)
    expect(found.map(({ hook }) => hook).toSorted()).toEqual(['plain', 'plain', 'plain', 'two', 'two'])
  })

  test('a kept request has no credential, and a request that is too large for a ring is not kept with its delivery', async () => {
    const config = { server: { maxBodyBytes: 1_000_000 }, hooks: { retain: 9, mappings: [plain] } }
    const { dir, url } = await startInside({ config })
    const secret = 'sec-0123456789'
    await post(url, 'plain', { n: 1 }, { cookie: secret, 'proxy-authorization': secret, 'x-gitlab-token': secret })
    await post(url, 'plain', { n: 1, text: 'x'.repeat(300_000) })
    const [large, small] = await readKept(dir)
    expect(large).toMatchObject({ state: 'accepted', request: undefined })
    expect(JSON.parse(Buffer.from(small?.request?.body ?? []).toString())).toEqual({ n: 1 })
    expect(JSON.stringify(small?.request?.head)).not.toMatch(/sec-0123|hook-secret/)
  })
})
