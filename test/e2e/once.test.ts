// `dedupe` in the result of a transform: one action for a key and a time, through the gateway.
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { readDeliveryId } from './answers.ts'
import { runCommand } from './command.ts'
import { type Inside, readStore, startInside } from './inside.ts'
import { post } from './wire.ts'

const files = {
  'hooks/transforms/issue.ts': `export default async ({ payload }) => {
    if (payload.waitMs) await new Promise((done) => setTimeout(done, payload.waitMs))
    const dedupe = { key: payload.id, for: payload.for ?? '1h' }
    return payload.twice ? [{ message: 'a', dedupe }, { message: 'b' }] : { message: 'look', dedupe }
  }`,
  'hooks/transforms/other.ts': `export default ({ payload }) => ({ message: 'x', dedupe: { key: payload.id, for: 60 } })`,
}
const mappings = ['issue', 'other'].map((name) => ({
  id: name,
  match: { path: name },
  deliver: false,
  transform: { module: `${name}.ts` },
}))
const config = { hooks: { mappings } }
const send = (gateway: Inside, hook: string, body: object) => post(gateway.port, `/hooks/${hook}`, body)
const readNewest = (dir: string, limit: number) => readStore(dir, (store) => store.deliveries({ limit }))

describe('dedupe of a transform', () => {
  test('a second delivery with the dedupe key of a transform is skipped and names the first one, even after a restart', async () => {
    const gateway = await startInside({ config, files })
    const first = await send(gateway, 'issue', { id: 'issue 1' })
    expect(first.status).toBe(200)
    expect((await send(gateway, 'issue', { id: 'issue 1' })).status).toBe(204)
    expect((await send(gateway, 'issue', { id: 'issue 2' })).status).toBe(200)
    expect((await send(gateway, 'other', { id: 'issue 1' })).status).toBe(200)
    await gateway.stop()
    const next = await startInside({ dir: gateway.dir })
    expect((await send(next, 'issue', { id: 'issue 1' })).status).toBe(204)
    const [, skipped] = await readNewest(gateway.dir, 5)
    expect(skipped).toMatchObject({ state: 'skipped', jobs: [] })
    const { stdout } = await runCommand(['show', skipped?.deliveryId ?? ''], { dir: gateway.dir })
    expect(stdout).toContain(`a duplicate of ${readDeliveryId(first)}, which has the dedupe key "issue 1" until 20`)
  })

  test('of many concurrent deliveries with the dedupe key of a transform, exactly one is accepted', async () => {
    const gateway = await startInside({ config, files })
    const statuses = await Promise.all(
      Array.from({ length: 20 }, async () => (await send(gateway, 'issue', { id: 'x' })).status),
    )
    expect(statuses.filter((status) => status === 200)).toHaveLength(1)
    expect(statuses.filter((status) => status === 204)).toHaveLength(19)
    expect((await readStore(gateway.dir, (store) => store.counts())).deliveries).toMatchObject({
      accepted: 1,
      skipped: 19,
    })
  })

  test('a delivery whose code ends after the answer takes its dedupe key too', async () => {
    const gateway = await startInside({ config: { hooks: { mappings, answerWithinMs: 300 } }, files })
    const slow = { id: 'slow', waitMs: 700 }
    const answers = await Promise.all([send(gateway, 'issue', slow), send(gateway, 'issue', slow)])
    expect(answers.map(({ body }) => z.object({ status: z.string() }).parse(JSON.parse(body)).status)).toEqual([
      'pending',
      'pending',
    ])
    const readStates = async () => (await readNewest(gateway.dir, 2)).map(({ state }) => state).toSorted()
    await expect.poll(readStates).toEqual(['accepted', 'skipped'])
  })

  test('an invalid dedupe of a transform parks the delivery with its reason', async () => {
    const gateway = await startInside({ config, files })
    const reasons = ['10 years', 0, '31d', '-1h']
    for (const time of reasons) await send(gateway, 'issue', { id: 'x', for: time })
    await send(gateway, 'issue', { id: ' ' })
    await send(gateway, 'issue', { id: 'x', twice: true })
    const problems = (await readNewest(gateway.dir, 6)).map(({ state, problem }) => [state, problem?.detail])
    expect(problems.slice(0, 5)).toEqual(
      [...reasons, ' '].map(() => ['parked', expect.stringMatching(/dedupe\.(for|key)/)]),
    )
    expect(problems[5]).toEqual(['parked', expect.stringContaining('returned a dedupe with one of several actions')])
  })
})
