// The record of a sender: when it sends, which features its requests have in common, and which requests were refused. The store has one record
// for each hook and sender. Every gateway adds to it, and one gateway judges it (judge.ts).
//
//   refusal    counted ──▶ reported ──▶ over  it is over when the sender is accepted again and nothing more is refused
//   silence    reported ──▶ over              it is over when the sender is accepted again
import type { ProblemCode } from '../../../core/model/problem.ts'
import { updateCursor } from '../../../store/cursors.ts'
import type { Store, StoreReader } from '../../../store/store.ts'
import { addSample, type Likeness, noLikeness, type Resemblance } from './likeness.ts'
import { addToHour, countExpected, cutHours, type Hours, noHours, type Period } from './rhythm.ts'

/** All times are milliseconds since the epoch. */
export type SenderRecord = Likeness & {
  readonly hook: string
  /** Empty for senders that are not recognised. */
  readonly source: string
  /** The ring of the mapping, if this record is for its `expectEvery`. Such a record has no hook, no source and no likeness. */
  readonly mapping?: string
  /** The times of the first and the last accepted request. */
  readonly since: number
  readonly last: number
  /** The number of accepted requests. */
  readonly requests: number
  readonly hours: Hours
  /** The longest usual silence, as the number of requests that were expected during it. */
  readonly longest: { readonly expected: number; readonly at: number }
  /** Reported silences that have ended. They raise the limit, so that a sender that now sends less often is not reported again and again. */
  readonly ended: readonly { readonly expected: number; readonly at: number }[]
  readonly refused: Readonly<Record<string, RefusedCause>>
  readonly silent?: { readonly since: number; readonly toldAt: number } | undefined
}

/** The refused requests with one cause. */
export type RefusedCause = {
  readonly code: ProblemCode
  readonly since: number
  readonly last: number
  readonly count: number
  /** The number of refused requests that certainly came from the sender. */
  readonly firm: number
  /** The first reason, in words of the gateway. */
  readonly why: string
  readonly requestId: string
  /** When the cause was reported. */
  readonly toldAt?: number
  /** The first accepted request after the last refused one. */
  readonly acceptedAt?: number | undefined
  /** When an earlier outage with this cause was reported. */
  readonly toldBeforeAt?: number | undefined
  /** No message about this cause is sent before this time. */
  readonly quietUntil?: number | undefined
}

/** Accepted requests since the last write. */
export type SeenRequests = {
  readonly first: number
  readonly last: number
  readonly count: number
  readonly networks: Iterable<string>
  /** The headers of the last request. */
  readonly headers: Readonly<Record<string, string>>
}

/** Refused requests since the last write. */
export type NewRefusals = Pick<RefusedCause, 'code' | 'since' | 'last' | 'count' | 'firm' | 'why' | 'requestId'>

export type RecordKey = Pick<SenderRecord, 'hook' | 'source' | 'mapping'>

const halfLifeMs = 14 * 86_400_000
const maxEnded = 5
/** Clocks of gateways differ a little. A moment that is further ahead was written while a clock was wrong. */
const maxAheadMs = 3_600_000

export function createRecord(key: RecordKey, at: number): SenderRecord {
  const { networks, agents, constants } = noLikeness
  const facts = {
    since: at,
    last: at,
    requests: 0,
    hours: noHours,
    longest: { expected: 0, at },
    ended: [],
    refused: {},
  }
  return { ...key, ...facts, networks, agents, constants }
}

/**
 * The record with the moments in the future cut to `now`; undefined if none is more than `maxAheadMs` ahead.
 * Without this, a clock that was wrong for a minute would hide silences for years.
 */
export function cutFuture(record: SenderRecord, now: number): SenderRecord | undefined {
  const { last, silent, refused } = record
  const moments = [last, silent?.toldAt, ...Object.values(refused).flatMap((cause) => [cause.last, cause.toldAt])]
  if (!moments.some((at = 0) => at > now + maxAheadMs)) return undefined
  // no other number is as large as a moment
  const cutMoment = (_: string, value: unknown) => (typeof value === 'number' ? Math.min(value, now) : value)
  // as: only numbers change
  const cut = JSON.parse(JSON.stringify(record), cutMoment) as SenderRecord
  return { ...cut, hours: cutHours(record.hours, now) }
}

/** Adds accepted requests to the record. `downs`: the times in which the gateway did not listen. */
export function addSeen(before: SenderRecord, seen: SeenRequests, downs: readonly Period[]): SenderRecord {
  const isFirst = before.requests === 0
  const known = isFirst ? { ...before, since: seen.first, last: seen.first } : addSilence(before, seen.first, downs)
  const likeness = before.mapping === undefined ? addSample(known, { ...seen, at: seen.last }) : {}
  return {
    ...known,
    ...likeness,
    last: Math.max(known.last, seen.last),
    requests: known.requests + seen.count,
    hours: addToHour(known.hours, seen.last, seen.count),
    refused: addAccepted(known.refused, seen),
  }
}

function addAccepted(refused: SenderRecord['refused'], { first, last }: SeenRequests): SenderRecord['refused'] {
  const isAgain = ({ count, acceptedAt, last: refusedAt }: RefusedCause) =>
    count > 0 && acceptedAt === undefined && last > refusedAt
  const entries = Object.entries(refused)
  if (!entries.some(([, cause]) => isAgain(cause))) return refused
  return Object.fromEntries(
    entries.map(([name, cause]) => [
      name,
      isAgain(cause) ? { ...cause, acceptedAt: first > cause.last ? first : last } : cause,
    ]),
  )
}

/** Adds the silence that ended at `to` to the record. */
function addSilence(before: SenderRecord, to: number, downs: readonly Period[]): SenderRecord {
  if (to <= before.last) return before
  const expected = countExpected(before.hours, { from: before.last, to }, downs)
  // a silence that was reported is an outage, so it does not count as usual
  if (before.silent !== undefined)
    return { ...before, ended: [{ expected, at: to }, ...before.ended].slice(0, maxEnded) }
  return expected > readLongest(before, to) ? { ...before, longest: { expected, at: to } } : before
}

/** The longest usual silence. It shrinks slowly with time. */
export function readLongest({ longest }: SenderRecord, now: number): number {
  return longest.expected * 0.5 ** (Math.max(0, now - longest.at) / halfLifeMs)
}

/** The cause of a refusal with this code. A sender whose proof fails or cannot be checked is soon rate-limited too, so these codes share one. */
export function toCauseName(code: ProblemCode): string {
  return code === 'rate-limited' || code === 'proof-unavailable' ? 'unauthorized' : code
}

export function addRefused(before: SenderRecord, added: NewRefusals): SenderRecord {
  const name = toCauseName(added.code)
  const known = before.refused[name]
  const cause: RefusedCause =
    known === undefined || known.count === 0
      ? { ...known, ...added }
      : isNewOutage(known, added)
        ? { ...added, toldBeforeAt: known.toldAt }
        : mergeRefusals(known, added)
  return { ...before, refused: { ...before.refused, [name]: { ...cause, acceptedAt: undefined } } }
}

/** A pause of the refusals that is shorter is no repair. */
const minRepairMs = 120_000

/** How many milliseconds after the last of several refusals their cause is certainly over: five usual pauses. */
export function computeRepairMs({ since, last, count }: Pick<RefusedCause, 'since' | 'last' | 'count'>): number {
  return (5 * (last - since)) / Math.max(1, count - 1)
}

/** Whether a reported outage was repaired before this refusal. A sender that is accepted and refused in turns is reported at most twice an hour. */
function isNewOutage(known: RefusedCause, { since }: NewRefusals): boolean {
  if (known.toldAt === undefined || known.acceptedAt === undefined || since < known.acceptedAt) return false
  return since - known.last >= Math.max(minRepairMs, computeRepairMs(known)) && !wasToldTwice(known)
}

export const quietMs = 3_600_000

/** Whether an outage was reported less than an hour after an earlier one with the same cause. */
export function wasToldTwice({ toldAt = 0, toldBeforeAt }: Pick<RefusedCause, 'toldAt' | 'toldBeforeAt'>): boolean {
  return toldBeforeAt !== undefined && toldAt - toldBeforeAt < quietMs
}

/** Adds later refusals with the same cause. The first reason and its request stay. */
export function mergeRefusals<Refusals extends NewRefusals>(before: Refusals, later: NewRefusals): Refusals {
  return {
    ...before,
    last: Math.max(before.last, later.last),
    count: before.count + later.count,
    firm: before.firm + later.firm,
  }
}

/** Adds one refusal to those since the last write. */
export function addNewRefusal(
  before: NewRefusals | undefined,
  one: Pick<RefusedCause, 'code' | 'why' | 'requestId'> & { readonly at: number; readonly resemblance: Resemblance },
): NewRefusals {
  const { at, resemblance, ...first } = one
  const firm = resemblance === 'firm' ? 1 : 0
  if (before === undefined) return { ...first, since: at, last: at, count: 1, firm }
  return { ...before, last: at, count: before.count + 1, firm: before.firm + firm }
}

const cursorPrefix = 'sender/'

function toCursorName({ hook, source, mapping }: RecordKey): string {
  return cursorPrefix + [hook, source, ...(mapping === undefined ? [] : [mapping])].map(encodeURIComponent).join('/')
}

export async function readRecords(store: Pick<StoreReader, 'cursors'>): Promise<SenderRecord[]> {
  return (await store.cursors(cursorPrefix)).flatMap(({ value }) => parseRecord(value) ?? [])
}

/** Removes the record of a sender if `isForgotten` is true for the newest one. The sender is new when it sends again. */
export async function forgetRecord(
  store: Pick<Store, 'cursor' | 'appendAll'>,
  key: RecordKey,
  isForgotten: (record: SenderRecord) => boolean,
): Promise<void> {
  // the store does not delete cursors of this kind, so a small text stays
  const removed: SenderRecord = { ...createRecord(key, removedAt), silent: undefined }
  await updateRecord(store, key, (before) => (before !== undefined && isForgotten(before) ? removed : undefined))
}

/** The `since` of a record that was removed. Earlier versions read such a record as that of a sender which they have forgotten. */
const removedAt = 0

function parseRecord(text: string): SenderRecord | undefined {
  // as: only this file writes these cursors
  const record = JSON.parse(text) as SenderRecord
  return record.since === removedAt ? undefined : record
}

/**
 * Applies `change` to the newest record and stores it; tries again if another gateway wrote in between. `change` returns undefined if the
 * record stays the same.
 */
export async function updateRecord(
  store: Pick<Store, 'cursor' | 'appendAll'>,
  key: RecordKey,
  change: (before: SenderRecord | undefined) => SenderRecord | undefined,
): Promise<void> {
  await updateCursor(store, toCursorName(key), (text) => {
    const after = change(text === undefined ? undefined : parseRecord(text))
    return after && JSON.stringify(after)
  })
}
