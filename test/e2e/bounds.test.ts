// Texts from strangers that are stored and logged with every delivery have a limit.
import { beforeAll, expect, test } from 'vitest'
import { Match } from '../../src/core/model/match.ts'
import { readDeliveryId, readVerdict } from './answers.ts'
import { type SignedGateway, startSignedGateway } from './proving.ts'
import { bearer, json } from './wire.ts'

let gateway: SignedGateway
beforeAll(async () => {
  gateway = await startSignedGateway([{ match: {} }])
})

const post = (name: string, payload: object) =>
  gateway.ask({ target: `/hooks/${name}`, headers: [...bearer, ...json], body: JSON.stringify(payload) })

async function findSource(source: string) {
  const id = readDeliveryId(await post('any', { source }))
  return (await gateway.deliveries()).find(({ deliveryId }) => deliveryId === id)?.source
}

test('a payload.source of 256 characters names the sender of a delivery, and a longer one is ignored', async () => {
  expect(await findSource('s'.repeat(256))).toBe('s'.repeat(256))
  expect(await findSource('s'.repeat(257))).toBeUndefined()
  expect(await findSource('s'.repeat(200_000))).toBeUndefined()
})

test('a hook name of 512 characters is accepted, and a longer one is unknown even if a mapping takes every name', async () => {
  const before = (await gateway.deliveries()).length
  expect(readVerdict(await post('n'.repeat(512), {}))).toBe('accepted')
  expect(readVerdict(await post('n'.repeat(513), {}))).toBe('hook-unknown')
  expect(await gateway.deliveries()).toHaveLength(before + 1)
})

test('a condition on a path or a source that is longer than any request may have is refused', () => {
  expect(Match.safeParse({ path: `/${'n'.repeat(512)}/`, source: 's'.repeat(256) }).success).toBe(true)
  expect(Match.safeParse({ path: 'n'.repeat(513) }).error?.issues[0]?.path).toEqual(['path'])
  expect(Match.safeParse({ source: 's'.repeat(257) }).error?.issues[0]?.path).toEqual(['source'])
})
