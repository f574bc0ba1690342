// How a gateway takes what a relay hands over: in order, once, and nothing that the relay should not hand over.
import { expect, test } from 'vitest'
import type { ArrivedRequest } from '../../../../../src/define.ts'
import { sealRequest } from '../../../../../src/plugins/sources/relay/envelope.ts'
import { deriveKeys, generateHomeKey } from '../../../../../src/plugins/sources/relay/keys.ts'
import { passRequests } from '../../../../../src/plugins/sources/relay/passing.ts'
import type { RelayPlace } from '../../../../../src/plugins/sources/relay/relay-client.ts'
import { SourceFailure } from '../../../../../src/model/source.ts'

const keys = deriveKeys(generateHomeKey())
const now = 1_767_323_045_000
const day = 86_400_000

function seal(id: string, { at = now, to = keys.known } = {}): Buffer {
  const request: ArrivedRequest = {
    id,
    at,
    method: 'POST',
    url: '/hooks/x',
    rawHeaders: [],
    client: '::1',
    body: Buffer.from(id),
  }
  return sealRequest(request, to)
}

type Handed = { readonly number: number | null; readonly envelope: Buffer }
type Batch = { readonly epoch?: string; readonly handed: readonly Handed[] } | SourceFailure

/** Hands over the batches, one at each poll, and ends after the last one. `statuses`: of the answers of the gateway, 200 after the last one. */
async function pass(
  batches: readonly Batch[],
  {
    place,
    statuses = [],
    failsToStore = false,
  }: { place?: RelayPlace; statuses?: number[]; failsToStore?: boolean } = {},
) {
  const stopping = new AbortController()
  const { signal } = stopping
  const seen = {
    polls: [] as RelayPlace[],
    received: [] as string[],
    stored: [] as unknown[],
    told: [] as [number, string[]][],
    logged: [] as string[],
    problems: new Set<string>(),
    pauses: [] as number[],
  }
  const left = [...batches]
  const log = (_: object, message: string) => void seen.logged.push(message)
  const ended = passRequests({
    keys,
    signal,
    onProblem: (problem) => problem !== undefined && seen.problems.add(problem),
    client: {
      async poll(from) {
        seen.polls.push(from)
        const next = left.shift()
        if (next === undefined) stopping.abort()
        signal.throwIfAborted()
        if (next instanceof SourceFailure) throw next
        return { epoch: 'e1', handed: [], ...next }
      },
      answer: async ({ number }, answers) => void seen.told.push([number, answers.map(({ id }) => id)]),
    },
    host: {
      place: async () => (place === undefined ? undefined : JSON.stringify(place)),
      async store(_, to) {
        if (failsToStore) throw new Error('The disk is full.')
        seen.stored.push(JSON.parse(to))
      },
      async receive({ id }) {
        seen.received.push(id)
        return { status: statuses.shift() ?? 200, headers: {}, body: Buffer.alloc(0) }
      },
      pause: async (ms) => void seen.pauses.push(ms),
      clock: () => now,
      log: { debug: log, info: log, warn: log, error: log },
    },
  })
  const thrown: unknown = await ended.catch((error: unknown) => error)
  return { ...seen, thrown }
}

const numbered = (...ids: readonly string[]): Handed[] => ids.map((id, at) => ({ number: at + 1, envelope: seal(id) }))

test('envelopes run in their order, and their place is stored and told to the relay', async () => {
  const { received, stored, told, polls } = await pass([{ handed: numbered('a', 'b') }])
  expect(received).toEqual(['a', 'b'])
  expect(stored.at(-1)).toEqual({ epoch: 'e1', number: 2 })
  expect(told.at(-1)?.[0]).toBe(2)
  expect(told.flatMap(([, ids]) => ids)).toEqual(['a', 'b'])
  expect(polls).toEqual([
    { epoch: '', number: 0 },
    { epoch: 'e1', number: 2 },
  ])
})

test('a number that is not above the place of the same epoch is not run again', async () => {
  const place = { epoch: 'e1', number: 1 }
  expect((await pass([{ handed: numbered('a', 'b') }], { place })).received).toEqual(['b'])
  expect((await pass([{ epoch: 'e2', handed: numbered('a', 'b') }], { place })).received).toEqual(['a', 'b'])
})

test('an envelope that the gateway fails to take is tried again, before those after it', async () => {
  const { received, stored, problems, pauses } = await pass([{ handed: numbered('a', 'b') }], { statuses: [503, 500] })
  expect(received).toEqual(['a', 'a', 'a', 'b'])
  expect(stored.at(-1)).toEqual({ epoch: 'e1', number: 2 })
  expect([...problems]).toEqual([expect.stringContaining('503'), expect.stringContaining('500')])
  expect(pauses).toEqual([1_000, 2_000])
})

test('a refusal is taken: the sender gets it', async () => {
  const { received, told } = await pass([{ handed: numbered('a') }], { statuses: [401] })
  expect([received, told]).toEqual([['a'], [[1, ['a']]]])
})

test('a request that is not stored is tried once, and moves no place', async () => {
  const live = { number: null, envelope: seal('a') }
  const { received, stored, told } = await pass([{ handed: [live] }], { statuses: [503] })
  expect([received, stored, told]).toEqual([['a'], [], [[0, ['a']]]])
})

test.each([
  ['that is for another home', seal('a', { to: deriveKeys(generateHomeKey()).known }), /does not open/],
  ['that was changed', Buffer.concat([seal('a').subarray(0, -1), Buffer.from([0])]), /does not open/],
  ['that is no envelope', Buffer.from('x'), /does not open/],
  ['that is over seven days old', seal('a', { at: now - 7 * day - 1 }), /seven days/],
  ['from the future', seal('a', { at: now + 300_001 }), /future/],
])('an envelope %s is dropped with a line in the log, and does not hold up the next one', async (_, envelope, why) => {
  const handed = [{ number: 1, envelope }, ...numbered('a', 'b').slice(1)]
  const { received, logged, stored } = await pass([{ handed }])
  expect(received).toEqual(['b'])
  expect(logged).toEqual([expect.stringMatching(why)])
  expect(stored.at(-1)).toEqual({ epoch: 'e1', number: 2 })
})

test('a relay that does not answer is asked again, and the problem is shown', async () => {
  const failures = [new SourceFailure('It is away.'), new SourceFailure('It is full.', { retryAfterMs: 9_000 })]
  const { received, pauses, problems } = await pass([...failures, { handed: numbered('a') }])
  expect(received).toEqual(['a'])
  expect(pauses).toEqual([1_000, 9_000])
  expect([...problems]).toEqual(['It is away.', 'It is full.'])
})

test('a relay that hands over nothing at once is not asked again at once', async () => {
  const { polls, pauses } = await pass([{ handed: [] }, { handed: [] }])
  expect([polls.length, pauses]).toEqual([3, [1_000, 1_000]])
})

test('a place that cannot be stored ends the pass, and the relay is not told', async () => {
  const { told, thrown } = await pass([{ handed: numbered('a') }], { failsToStore: true })
  expect(told).toEqual([])
  expect(thrown).toEqual(new Error('The disk is full.'))
})
