// The deliveries of the last hour by the minute, and of the last day by the hour, counted in the store in short steps, so that the count delays no
// other request.
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Tally } from '../../../store/counts.ts'
import { clockMs, type StepQuery } from '../../../store/queries.ts'
import type { Clock, StoreReader } from '../../../store/store.ts'

const hourMs = 3_600_000
/** Such a step takes some milliseconds. */
const stepRows = 2_000
/** Deliveries that are further back are not counted: this many take some hundred milliseconds. */
const maxSteps = 50

/** The newest deliveries are counted at each call, because most changes are theirs; older ones that may change only every `recountMs`. */
const newestRows = 100
const recountMs = 30_000
/** All are counted again every `wholeMs`: a person may have dropped an accepted delivery. */
const wholeMs = 600_000

/**
 * `since`: the moment back to which all deliveries were counted: an hour or a day ago, or later if they were too many. Several tallies may be about
 * the same time, hook and state.
 */
export type HourOfStore = { readonly since: number; readonly tallies: readonly Tally[] }

type HourParts = { readonly store: Pick<StoreReader, 'stepBack' | 'tally'>; readonly clock: Clock }

/** About `stepRows` deliveries: from `from`, or from the oldest one, to before `before`. */
type Chunk = Pick<HourOfStore, 'tallies'> & { readonly from: string | undefined; readonly before: string | undefined }

/** The newest chunk first. Each begins where the next one ends. */
type Chunks = Pick<HourOfStore, 'since'> & { readonly chunks: readonly Chunk[] }

type Span = { readonly ms: number; readonly every: 'minute' | 'hour'; readonly everyMs: number }

const lastHour: Span = { ms: hourMs, every: 'minute', everyMs: 60_000 }
const lastDay: Span = { ms: 24 * hourMs, every: 'hour', everyMs: hourMs }

export const createHourOfStore = (parts: HourParts) => createCounter(parts, lastHour)
export const createDayOfStore = (parts: HourParts) => createCounter(parts, lastDay)

/** Returns a function that counts. Callers at the same time share a count. The state of an older delivery may be half a minute out of date. */
function createCounter({ store, clock }: HourParts, { ms, every, everyMs }: Span): () => Promise<HourOfStore> {
  let counting: Promise<HourOfStore> | undefined
  let known: Chunks | undefined
  let countedAt = 0
  let wholeAt = 0

  async function count(): Promise<HourOfStore> {
    const now = clock()
    // whole minutes, so that the first minute of a plot has all its deliveries
    const since = Math.ceil((now - ms) / everyMs) * everyMs
    // the clock may have been set back
    if (known === undefined || now < countedAt || now - wholeAt >= wholeMs) {
      known = await recount(store, { since, every }, { since, chunks: [] })
      wholeAt = countedAt = now
    } else if (now - countedAt >= recountMs) {
      known = await recount(store, { since, every }, known)
      countedAt = now
    }
    const newest = await store.tally({ since, every, from: known.chunks[0]?.before })
    const tallies = [...listTallies(known), ...newest].filter(({ at }) => at >= since)
    const shown = { since: Math.max(since, known.since), tallies }
    if (sum(newest) > stepRows) known = await recount(store, { since, every }, known)
    return shown
  }

  return () => {
    counting ??= count().finally(() => (counting = undefined))
    return counting
  }
}

type Asked = Pick<HourOfStore, 'since'> & Pick<Span, 'every'>

const sum = (tallies: readonly Tally[]) => tallies.reduce((total, { count }) => total + count, 0)
const listTallies = ({ chunks }: Chunks) => chunks.flatMap(({ tallies }) => tallies)
const isOpen = ({ tallies }: Chunk) => tallies.some(({ state }) => state === 'pending' || state === 'parked')

/** Counts what is new since `known` was counted, and what may have changed: no other delivery changes its state without a person. */
async function recount(store: HourParts['store'], asked: Asked, known: Chunks): Promise<Chunks> {
  const newest = await store.stepBack({ before: undefined, rows: newestRows })
  if (newest === undefined) return { since: asked.since, chunks: [] }
  const [first, ...others] = known.chunks
  // the newest chunk grows until it is full
  const full = first !== undefined && sum(first.tallies) >= stepRows ? known.chunks : others
  const grown = await countBack(store, asked, { before: newest.id, after: full[0]?.before })
  if (grown.since > asked.since || full.length === 0) return grown
  const older: Chunk[] = []
  for (const chunk of full) {
    const { before, from } = chunk
    if (!chunk.tallies.some(({ at }) => at >= asked.since)) continue
    if (isOpen(chunk)) {
      await nextTurn()
      older.push({ ...chunk, tallies: await store.tally({ ...asked, before, from }) })
    } else older.push(chunk)
  }
  return { since: Math.max(asked.since, known.since), chunks: [...grown.chunks, ...older] }
}

/** Counts the deliveries that were received at `since` or later. */
export async function countSince(store: HourParts['store'], asked: Asked): Promise<HourOfStore> {
  const found = await countBack(store, asked, {})
  return { since: found.since, tallies: listTallies(found) }
}

/** As `countSince`, before the delivery `before` and from the delivery `after` if they are given. */
async function countBack(
  store: HourParts['store'],
  asked: Asked,
  { before: newest, after }: Pick<StepQuery, 'before' | 'after'>,
): Promise<Chunks> {
  const chunks: Chunk[] = []
  let before = newest
  for (let steps = 1; ; steps += 1) {
    const step = await store.stepBack({ before, after, rows: stepRows })
    const from = step?.id ?? after
    chunks.push({ from, before, tallies: await store.tally({ ...asked, before, from }) })
    if (step === undefined || step.receivedAt < asked.since - clockMs) return { since: asked.since, chunks }
    if (steps === maxSteps) return { since: Math.max(asked.since, step.receivedAt), chunks }
    before = step.id
    await nextTurn()
  }
}
