import { EventEmitter } from 'node:events'
import { expect, test, vi } from 'vitest'
import { createAccess } from '../../../../src/gateway/http/access.ts'
import { createWaiters, readPreferredWait } from '../../../../src/gateway/http/waiters.ts'
import { silentLog } from '../../../../src/base/log.ts'
import { toTokenId } from '../../../../src/gateway/generation/tokens.ts'
import type { Progress, ProgressReader } from '../../../../src/store/progress.ts'
import { toGeneration } from '../../core/mapping/decide.ts'

test.each([
  ['wait=10', 10],
  ['WAIT=10', 10],
  ['respond-async, wait=10', 10],
  ['wait="7"; note=x', 7],
  ['wait = 7', 7],
  ['foo="a, wait=5", wait=3', 3],
  ['foo="\\", wait=5", wait=3', 3],
  // the first preference counts (RFC 7240, 2)
  ['wait=3, wait=9', 3],
  ['wait=x, wait=9', undefined],
  ['wait=0', 0],
  ['wait=3600', 55],
  [`wait=${'9'.repeat(400)}`, 55],
  ['wait', undefined],
  ['wait=', undefined],
  ['wait=-1', undefined],
  ['wait=1.5', undefined],
  ['wait=1s', undefined],
  ['waiting=5', undefined],
  ['foo="wait=5', undefined],
  ['', undefined],
  [undefined, undefined],
  [`${'a'.repeat(1_000)}, wait=5`, undefined],
])('the seconds of the wait in the header "Prefer: %s" are %s', (prefer, seconds) => {
  expect(readPreferredWait(prefer)?.seconds).toBe(seconds)
})

test('a hostile Prefer header does not take exponential time', () => {
  const began = performance.now()
  for (const text of ['"\\', '"', 'a', ' ', 'wait '])
    readPreferredWait(text.repeat(Math.floor(1_000 / text.length)).slice(0, 1_000))
  expect(performance.now() - began).toBeLessThan(10_000)
})

function toResponse() {
  const response: EventEmitter & { closed: boolean } = Object.assign(new EventEmitter(), { closed: false })
  return response
}

const hookTokens = ['the-hook-token-0123456789', 'the-former-token-0123456789']
const [hookId = '', formerId = ''] = hookTokens.map(toTokenId)

/** `scoped`: further tokens, with the rights of each. */
function createWaitersOf(store: ProgressReader, maxWaiting = 10, scoped: Readonly<Record<string, string[]>> = {}) {
  const tokens = Object.fromEntries(Object.entries(scoped).map(([token, may]) => [token, { token, may }]))
  const generation = toGeneration([], { hooks: { tokens: hookTokens, maxWaiting }, config: { tokens } })
  return createWaiters({
    store,
    access: createAccess({ clock: () => 0 }),
    generation: () => generation,
    log: silentLog,
  })
}

function createStage(most = 10, scoped: Readonly<Record<string, string[]>> = {}) {
  const progress = vi.fn<ProgressReader['progress']>(async (ids) => {
    if (isDown) throw new Error('no disk')
    return ids.flatMap((id) => (states.has(id) ? { id, state: states.get(id) ?? 'done', change: '' } : []))
  })
  const states = new Map<string, Progress['state']>()
  let isDown = false
  const waiters = createWaitersOf({ progress }, most, scoped)
  return { waiters, states, progress, fail: (is: boolean) => void (isDown = is) }
}

const isDone = (found: Progress | undefined) => found?.state === 'done'

test('all waiting requests share one store read at a time, with each id once, and a later request is answered by one more read', async () => {
  const { waiters, states, progress } = createStage()
  for (const id of ['a', 'b']) states.set(id, 'queued')
  const waiting = ['a', 'a', 'b'].map((id) => waiters.enter(toResponse(), hookId)?.waitUntil(id, isDone, 60_000))
  await vi.waitUntil(() => progress.mock.calls.length >= 2, { timeout: 60_000 })
  for (const [ids] of progress.mock.calls) expect(ids).toEqual(['a', 'b'])
  for (const id of ['a', 'b']) states.set(id, 'done')
  expect(await Promise.all(waiting)).toEqual(['reached', 'reached', 'reached'])
  const calls = progress.mock.calls.length
  const late = waiters.enter(toResponse(), hookId)?.waitUntil('c', isDone, 60_000)
  states.set('c', 'done')
  await late
  expect(progress.mock.calls.length).toBe(calls + 1)
})

test('a place is free again when its wait ends or its client disconnects, and a client that has already disconnected takes no place', () => {
  const { waiters } = createStage(1)
  const gone = toResponse()
  const first = waiters.enter(gone, hookId)
  expect([first === undefined, waiters.enter(toResponse(), hookId)]).toEqual([false, undefined])
  gone.emit('close')
  const second = waiters.enter(toResponse(), hookId)
  expect(second).toBeDefined()
  second?.leave()
  expect(waiters.enter(Object.assign(toResponse(), { closed: true }), hookId)).toBeUndefined()
  const third = toResponse()
  waiters.enter(third, hookId)?.leave()
  expect(third.listenerCount('close')).toBe(0)
})

test('one token gets half of the places while another one may wait, and the hook tokens count as one', () => {
  const scoped = { 'the-token-of-ci-0123456789': ['send:ci', 'runs'], 'the-token-of-a-script-0123': ['send:ci'] }
  const { waiters } = createStage(5, scoped)
  const ciId = toTokenId('the-token-of-ci-0123456789')
  const enter = (tokenId: string) => waiters.enter(toResponse(), tokenId)
  const [first, ...others] = [hookId, formerId, hookId, formerId, hookId].map(enter)
  expect([first, ...others].map((place) => place !== undefined)).toEqual([true, true, true, false, false])
  expect([ciId, ciId, ciId].map((tokenId) => enter(tokenId) !== undefined)).toEqual([true, true, false])
  first?.leave()
  expect(enter(formerId)).toBeDefined()
})

test.each([{}, { 'the-token-of-a-script-0123': ['send:ci', 'operate'] }])(
  'one token gets all places if no other token may wait: %j',
  (scoped) => {
    const { waiters } = createStage(4, scoped)
    const places = [1, 2, 3, 4, 5].map(() => waiters.enter(toResponse(), hookId) !== undefined)
    expect(places).toEqual([true, true, true, true, false])
  },
)

test('a wait ends at its time, with its client or with the gateway, and continues through an outage of the store', async () => {
  const { waiters, states, progress, fail } = createStage()
  states.set('a', 'queued')
  const [gone, kept] = [toResponse(), toResponse()]
  expect(await waiters.enter(toResponse(), hookId)?.waitUntil('a', isDone, 1)).toBe('late')
  const left = waiters.enter(gone, hookId)?.waitUntil('a', isDone, 60_000)
  gone.emit('close')
  expect(await left).toBe('over')
  fail(true)
  const through = waiters.enter(kept, hookId)?.waitUntil('a', isDone, 60_000)
  const until = progress.mock.calls.length + 2
  await vi.waitUntil(() => progress.mock.calls.length >= until, { timeout: 60_000 })
  fail(false)
  states.set('a', 'done')
  expect(await through).toBe('reached')
  const stopped = waiters.enter(toResponse(), hookId)?.waitUntil('b', isDone, 60_000)
  waiters.stop()
  expect([await stopped, waiters.enter(toResponse(), hookId)]).toEqual(['over', undefined])
})

test('a stop ends a wait at once, even if an old read tries to end an earlier wait of the same request again', async () => {
  vi.useFakeTimers()
  try {
    const reads: ((found: Progress[]) => void)[] = []
    const store: ProgressReader = { progress: () => new Promise((resolve) => reads.push(resolve)) }
    const waiters = createWaitersOf(store)
    const place = waiters.enter(toResponse(), hookId)
    const earlier = place?.waitUntil('a', isDone, 300)
    await vi.advanceTimersByTimeAsync(300)
    expect([await earlier, reads.length]).toEqual(['late', 1])
    const wait = place?.waitUntil('a', isDone, 3_600_000)
    reads[0]?.([{ id: 'a', state: 'done', change: '' }])
    await vi.advanceTimersByTimeAsync(0)
    waiters.stop()
    expect(await wait).toBe('over')
  } finally {
    vi.useRealTimers()
  }
})
