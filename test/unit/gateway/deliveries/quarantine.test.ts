// The refused requests that are kept: a flood from strangers does not delete those of a sender.
import { expect, onTestFinished, test, vi } from 'vitest'
import { createQuarantine } from '../../../../src/gateway/deliveries/refused/quarantine.ts'
import { createQuarantineKeys, unseal } from '../../../../src/gateway/deliveries/refused/seal.ts'
import { silentLog } from '../../../../src/base/log.ts'
import type { ProblemCode } from '../../../../src/core/model/problem.ts'
import type { Generation } from '../../../../src/gateway/generation/generation.ts'
import type { Hook } from '../../../../src/core/mapping/hook.ts'
import { HooksConfig } from '../../../../src/model/config/hooks.ts'
import { storeUnavailable } from '../../../../src/store/rules.ts'
import type { QuarantineBounds, SealedRequest } from '../../../../src/store/quarantine.ts'

const token = 'gateway-token-0123456789'
// as: the parts of a hook and of a generation that are read
const hook = { kind: 'mapped', isNamed: true } as Hook
const generation = { config: { hooks: HooksConfig.parse({}), gateway: { token } } } as Generation

function openQuarantine(store?: { quarantine: () => Promise<void> }) {
  const written: SealedRequest[] = []
  const batches: number[] = []
  const lines: object[] = []
  const keep = async (requests: readonly SealedRequest[]) => {
    batches.push(requests.length)
    written.push(...requests)
  }
  const keys = createQuarantineKeys()
  const warn = (fields: object) => void lines.push(fields)
  const quarantine = createQuarantine({
    store: store ?? { quarantine: keep },
    generation: () => generation,
    keys,
    clock: () => 1_700_000_000_000,
    log: { debug() {}, info() {}, warn, error() {} },
  })
  let count = 0
  const refuse = (
    client: string,
    { code = 'unauthorized' as ProblemCode, body = 'x', credential = 'none' as const } = {},
  ) => {
    count += 1
    const requestId = `request-${count}`
    const refusal = { requestId, receivedAt: 7, hook: 'github', client, credential, path: '/hooks/github', status: 401 }
    const rawHeaders = ['Cookie', 'a=b', 'X-Signature', 'abc']
    const request = { method: 'POST', url: '/hooks/github', rawHeaders, client, body: Buffer.from(body) }
    return quarantine.note({ ...refusal, code, error: 'no', trace: [] }, hook, request) === undefined
      ? requestId
      : undefined
  }
  return { quarantine, keys, refuse, written, batches, lines }
}

test('a flood from one network leaves room in memory for a quieter sender, and a log line counts the lost requests', async () => {
  const { quarantine, refuse, written, batches, lines } = openQuarantine()
  for (let n = 0; n < 10_000; n += 1) refuse('198.51.100.7')
  const quiet = Array.from({ length: 50 }, (_, n) => refuse(`192.0.2.${n}`))
  for (let n = 0; n < 10_000; n += 1) refuse(`198.51.100.${n % 250}`)
  await quarantine.stop()
  const kept = new Set(written.map(({ requestId }) => requestId))
  expect(quiet.filter((id) => id === undefined || !kept.has(id))).toEqual([])
  expect(written.length).toBeLessThan(4_100)
  expect(Math.max(...batches)).toBeLessThanOrEqual(64)
  expect(lines).toEqual([{ requests: expect.any(Number) }])
})

test('a flood from many networks with large bodies stays within the memory limit', async () => {
  const { quarantine, refuse, written } = openQuarantine()
  const body = 'x'.repeat(200_000)
  for (let n = 0; n < 2_000; n += 1) refuse(`10.${n >> 8}.${n & 255}.1`, { body })
  await quarantine.stop()
  const bytes = written.reduce((total, { sealed }) => total + sealed.byteLength, 0)
  expect(bytes).toBeLessThan(42 * 1_024 * 1_024)
  expect(bytes).toBeGreaterThan(30 * 1_024 * 1_024)
})

test('a request is marked as known only if the hook accepted a request from its network', async () => {
  const { quarantine, refuse, written } = openQuarantine()
  quarantine.noteAdmitted('github', '192.0.2.1')
  quarantine.noteAdmitted('github', '2001:db8:1:2::/64')
  refuse('192.0.2.200')
  refuse('192.0.3.1')
  refuse('2001:db8:1:9::/64')
  refuse('2001:db8:2:2::/64')
  await quarantine.stop()
  expect(written.map(({ isKnown }) => isKnown)).toEqual([true, false, true, false])
})

test('only requests whose refusal the operator can correct are kept, without cookies', async () => {
  const { quarantine, keys, refuse, written } = openQuarantine()
  const codes = ['unauthorized', 'rate-limited', 'payload-invalid', 'proof-unavailable'] as const
  const others = ['idempotency-key-invalid', 'encoding-unsupported', 'transform-failed', 'store-unavailable'] as const
  expect(codes.map((code) => refuse('192.0.2.1', { code }) !== undefined)).toEqual([true, true, true, true])
  expect(others.map((code) => refuse('192.0.2.1', { code }))).toEqual([undefined, undefined, undefined, undefined])
  expect(refuse('192.0.2.1', { body: 'x'.repeat(262_145) })).toBeUndefined()
  await quarantine.stop()
  const [first] = written
  if (first === undefined) throw new Error('nothing was written')
  const opened = unseal(first.sealed, first, await keys(token))
  expect(opened.rawHeaders).toEqual(['X-Signature', 'abc'])
  expect(Buffer.from(first.sealed).includes('X-Signature')).toBe(false)
})

test('a sealed request does not open with another token, with another time of arrival, or after a change', async () => {
  const { quarantine, keys, refuse, written } = openQuarantine()
  refuse('192.0.2.1')
  await quarantine.stop()
  const [first] = written
  if (first === undefined) throw new Error('nothing was written')
  const key = await keys(token)
  const changed = Uint8Array.from(first.sealed, (byte, index) => (index === 40 ? byte ^ 1 : byte))
  expect(() => unseal(first.sealed, first, key)).not.toThrow()
  expect(() => unseal(changed, first, key)).toThrow('The kept request was changed in the store')
  expect(() => unseal(first.sealed, { ...first, receivedAt: 8 }, key)).toThrow('was changed')
  const other = await createQuarantineKeys()('another-gateway-token-01')
  expect(() => unseal(first.sealed, first, other)).toThrow('another gateway.token')
})

test('while the store cannot be written, refused requests are lost, and a log line says so', async () => {
  const { quarantine, refuse, lines } = openQuarantine({
    quarantine: async () => {
      throw storeUnavailable('The store cannot write.', 5)
    },
  })
  expect(refuse('192.0.2.1')).toBeDefined()
  await quarantine.flush()
  expect(lines).toEqual([{ requests: 1 }])
  await quarantine.stop()
})

test('a refused request counts as waiting from its refusal until it is in the store, without a gap', async () => {
  let finish: (() => void) | undefined
  const { quarantine, refuse } = openQuarantine({
    quarantine: () => new Promise((done) => (finish = done)),
  })
  const id = refuse('192.0.2.1') ?? ''
  expect(quarantine.isWaiting(id)).toBe(true)
  const flushed = quarantine.flush()
  await expect.poll(() => finish).toBeDefined()
  expect(quarantine.isWaiting(id)).toBe(true)
  finish?.()
  await flushed
  expect(quarantine.isWaiting(id)).toBe(false)
  await quarantine.stop()
})

test('kept requests are deleted after `quarantine.days`, and after the default number of days if the quarantine is off', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const day = 86_400_000
  const readOldest = async (hooks: object) => {
    const oldest: number[] = []
    const keep = async (_: readonly SealedRequest[], { olderThan }: QuarantineBounds) => void oldest.push(olderThan)
    const quarantine = createQuarantine({
      store: { quarantine: keep },
      // as: the parts of a generation that are read
      generation: () => ({ config: { hooks: HooksConfig.parse(hooks), gateway: {} } }) as Generation,
      keys: createQuarantineKeys(),
      clock: () => 100 * day,
      log: silentLog,
    })
    await vi.advanceTimersByTimeAsync(3_600_000)
    await quarantine.stop()
    return oldest
  }
  expect(await readOldest({ quarantine: { days: 3 } })).toEqual([97 * day])
  expect(await readOldest({ quarantine: false })).toEqual([93 * day])
})
