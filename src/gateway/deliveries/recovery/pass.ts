// One pass over the outbox of a sender: fetches and stores the failed deliveries that are not in the store, the oldest first. The cursor moves
// in the commit that stores the deliveries, so that a kill neither loses nor repeats a delivery.
import { z } from 'zod'
import type { Log } from '../../../base/log.ts'
import { Problem } from '../../../core/model/problem.ts'
import type { CompiledMapping } from '../../../core/mapping/compile.ts'
import type { Generation } from '../../generation/generation.ts'
import { ApiDenial, type Outbox, type SentRequest } from '../../../model/outbox.ts'
import type { NewDelivery } from '../../../store/records.ts'
import type { Clock, Store } from '../../../store/store.ts'
import type { Intake } from '../intake.ts'
import { buildRecoveredRow, findRecoveredKey } from './recovered.ts'
import { type Missing, scanOutbox, settledAfterMs } from './scan.ts'

/** A mapping with `recover`, and its outbox. `path`: the name of the hook. */
export type RecoverSource = {
  readonly sender: string
  readonly path: string
  readonly mapping: CompiledMapping
  readonly outbox: Outbox
}

export type RecoverResult = {
  /** Deliveries that did not arrive. */
  readonly missing: number
  readonly recovered: number
  /** Deliveries that could not be fetched. The next pass retries them. */
  readonly failed: number
  /** Deliveries that the sender no longer has. */
  readonly gone: number
  /** Deliveries that the hook refuses, such as one whose body is over the limit. */
  readonly refused: number
  /** Whether this is the first pass, which only remembers where to begin. */
  readonly begins: boolean
  /** Whether a failed attempt was left to the next pass, because it may still run. */
  readonly leavesNew: boolean
  /** Why the pass ended early. The deliveries stored until then stay, and the next pass continues after them. */
  readonly problem: string | undefined
  /** Whether the problem stays until the operator changes something, such as the credential. */
  readonly isDenied: boolean
}

export type RecoverParts = {
  readonly generation: () => Generation
  readonly store: Pick<Store, 'cursor' | 'findAnswer'>
  readonly intake: Intake
  readonly clock: Clock
  readonly newId: () => string
  readonly log: Log
}

/**
 * `since`: milliseconds since the epoch; default: the end of the last pass. If the places of the sender are not times, every `since` takes all that
 * it remembers. `isDryRun`: deliveries are counted, and nothing changes.
 */
export type PassOptions = { readonly since?: number | undefined; readonly isDryRun?: boolean | undefined }

const Unfetched = z.object({ id: z.string(), ref: z.string(), place: z.number() })
/**
 * The value of the cursor. `through`: all attempts up to this place are done. `recent`: the newest ids, each with its place, because the store
 * has no key of a delivery that was skipped. `unfetched`: ids that the next pass tries again.
 */
const Position = z.object({
  through: z.number(),
  recent: z.record(z.string(), z.number()),
  unfetched: z.array(Unfetched),
})
type Position = z.infer<typeof Position>

/** The maximum number of deliveries in one commit. */
const chunkSize = 20
/** After this many failures in a row, the API of the sender counts as down, and the pass ends. */
const maxFailures = 3
const maxUnfetched = 100
const maxRecent = 2_000

/** Throws if the store fails. */
export async function recoverSource(
  source: RecoverSource,
  parts: RecoverParts,
  { since, isDryRun = false }: PassOptions,
): Promise<RecoverResult> {
  const { outbox } = source
  const counts = { missing: 0, recovered: 0, failed: 0, gone: 0, refused: 0 }
  const name = toOutboxCursor(source)
  let stored = await parts.store.cursor(name)
  let position: Position = { through: 0, recent: {}, unfetched: [] }
  let failuresInRow = 0
  /** The last of too many failures in a row. */
  let down: Problem | undefined
  /** Whether this pass begins after the end of the last one. Then the next pass begins where the last one ended, and finds what lies between. */
  let leavesGap = false
  let leavesNew = false
  /** The time by which the clock of the sender is ahead. */
  let aheadMs = 0
  try {
    const begins = stored === undefined && since === undefined
    position = stored === undefined ? await findBeginning(outbox, parts.clock) : readPosition(stored)
    if (begins && !isDryRun) await move([], position)
    if (!begins) await pass()
    return { ...counts, begins, leavesNew, problem: undefined, isDenied: false }
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    return { ...counts, begins: false, leavesNew, problem: error.message, isDenied: error instanceof ApiDenial }
  }

  async function pass(): Promise<void> {
    const problem = isDryRun ? undefined : await retryUnfetched()
    const end = position.through - outbox.overlap
    const start = since === undefined ? end : outbox.hasTimes ? since : 0
    leavesGap = start > end
    for (let from = start; ;) {
      const scan = await scanOutbox(outbox, from)
      leavesNew = scan.leavesNew
      if (scan.now !== undefined) aheadMs = scan.now - parts.clock()
      await takeAll(scan.missing.filter(({ id }) => since !== undefined || !Object.hasOwn(position.recent, id)))
      if (isDryRun || scan.through === undefined) break
      await move([], { ...position, through: advance(scan.through) })
      // the other deliveries did not fit into memory
      if (!scan.isCut || scan.through <= from) break
      from = scan.through
    }
    if (problem !== undefined) throw problem
  }

  /** Returns the problem that ended the retries: deliveries that the sender never returns must not hold up those that come after them. */
  async function retryUnfetched(): Promise<Problem | undefined> {
    try {
      await takeAll(position.unfetched.map((each) => ({ ...each, isUnfetched: true })))
      return undefined
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      failuresInRow = 0
      down = undefined
      return error
    }
  }

  function advance(...places: readonly number[]): number {
    return leavesGap ? position.through : Math.max(position.through, ...places)
  }

  async function takeAll(missing: readonly (Missing & { readonly isUnfetched?: boolean })[]): Promise<void> {
    for (let at = 0; at < missing.length; at += chunkSize) await takeChunk(missing.slice(at, at + chunkSize))
  }

  async function takeChunk(chunk: readonly (Missing & { readonly isUnfetched?: boolean })[]): Promise<void> {
    const rows: NewDelivery[] = []
    const done: (typeof chunk)[number][] = []
    let unfetched = position.unfetched
    for (const each of chunk) {
      if (down !== undefined) break
      done.push(each)
      const isAgain = each.isUnfetched === true
      if (!isAgain && unfetched.some(({ id }) => id === each.id)) continue
      if (await isKnown(each)) {
        unfetched = unfetched.filter(({ id }) => id !== each.id)
        continue
      }
      counts.missing += 1
      if (isDryRun) continue
      const outcome = await fetchDelivery(each)
      unfetched = unfetched.filter(({ id }) => id !== each.id)
      if (outcome === 'failed') unfetched = [...unfetched, { id: each.id, ref: each.ref, place: each.place }]
      else if (outcome !== undefined) rows.push(outcome)
    }
    if (isDryRun) return
    if (unfetched.length > maxUnfetched) {
      throw new Problem(
        'recover-unavailable',
        `${maxUnfetched} deliveries of ${source.sender} cannot be fetched. They are tried again.`,
      )
    }
    const places = done.flatMap(({ place, isUnfetched }) => (isUnfetched === true ? [] : [place]))
    const through = advance(...places)
    const recent = { ...position.recent, ...Object.fromEntries(done.map(({ id, place }) => [id, place])) }
    const appended = await move(rows, { through, recent, unfetched })
    counts.recovered += appended.filter(({ kind }) => kind === 'stored').length
    // in the meantime, the delivery arrived as a request
    counts.missing -= appended.filter(({ kind }) => kind === 'duplicate').length
    // thrown after the failures are noted, so that the next pass begins with other deliveries
    if (down !== undefined) throw down
  }

  async function isKnown({ id, request, headers = {} }: Missing): Promise<boolean> {
    const named: SentRequest = request ?? {
      headers: { 'content-type': 'application/json', ...headers },
      body: Buffer.from('{}'),
    }
    const key = findRecoveredKey(named, readPlace(), { sender: source.sender, id })
    return key !== undefined && id !== '' && (await parts.store.findAnswer(key)) !== undefined
  }

  async function fetchDelivery(missing: Missing): Promise<NewDelivery | 'failed' | undefined> {
    const request = missing.request ?? (await fetchRequest(missing))
    if (request === 'failed') return request
    const fields = { sender: source.sender, hook: source.path, id: missing.id }
    if (request === undefined) {
      counts.gone += 1
      parts.log.error(fields, `${source.sender} no longer has the delivery ${missing.id}, so it is lost.`)
      return undefined
    }
    try {
      const receivedAt = parts.clock()
      const sentAt = outbox.hasTimes ? Math.min(receivedAt, missing.place - aheadMs) : undefined
      return buildRecoveredRow(request, readPlace(), {
        sent: { sender: source.sender, id: missing.id },
        id: parts.newId(),
        receivedAt,
        sentAt,
      })
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      counts.refused += 1
      parts.log.error(
        { ...fields, code: error.code },
        `The hook refuses the delivery ${missing.id} of ${source.sender}: ${error.message}`,
      )
      return undefined
    }
  }

  async function fetchRequest(missing: Missing): Promise<SentRequest | 'failed' | undefined> {
    try {
      const request = await outbox.fetch(missing)
      failuresInRow = 0
      return request
    } catch (error) {
      failuresInRow += 1
      if (!(error instanceof Problem)) throw error
      if (failuresInRow >= maxFailures) down = error
      counts.failed += 1
      parts.log.warn(
        { sender: source.sender, id: missing.id },
        `The delivery ${missing.id} could not be fetched: ${error.message}`,
      )
      return 'failed'
    }
  }

  async function move(rows: readonly NewDelivery[], next: Position) {
    const trimmed = trimRecent(next, outbox.overlap)
    const to = toText(trimmed)
    const appended =
      to === stored && rows.length === 0 ? [] : await parts.intake.storeAndRun(rows, { name, from: stored, to })
    // another gateway moved the cursor: the next pass continues from there
    if (appended === 'moved')
      throw new Problem('recover-unavailable', `Another gateway recovers the deliveries of ${source.sender} now.`)
    stored = to
    position = trimmed
    return appended
  }

  function readPlace() {
    return { generation: parts.generation(), path: source.path, mapping: source.mapping }
  }
}

/**
 * The position before which nothing is recovered: earlier deliveries may have been handled in another way. `--since` recovers them. It has the ids
 * of all attempts in the overlap, which the next pass reads again.
 */
async function findBeginning(outbox: Outbox, clock: Clock): Promise<Position> {
  let through: number | undefined
  const recent = new Map<string, number>()
  for await (const { attempts, now } of outbox.pages()) {
    const newest = (through ??= outbox.hasTimes ? (now ?? clock()) : Math.max(0, ...attempts.map(({ place }) => place)))
    const isOld = ({ place }: { readonly place: number }) => place < newest - outbox.overlap
    const near = attempts.filter((attempt) => !isOld(attempt) && !recent.has(attempt.id))
    for (const { id, place } of near) {
      // attempts that still run are left out: they may fail
      if (!outbox.hasTimes || place <= newest - settledAfterMs) recent.set(id, place)
    }
    if (near.length === 0 || attempts.some(isOld) || recent.size >= maxRecent) break
  }
  return { through: through ?? (outbox.hasTimes ? clock() : 0), recent: Object.fromEntries(recent), unfetched: [] }
}

function trimRecent({ through, recent, unfetched }: Position, overlap: number): Position {
  const kept = Object.entries(recent)
    .filter(([, place]) => place >= through - overlap)
    .toSorted(([, one], [, other]) => other - one)
    .slice(0, maxRecent)
  return { through, recent: Object.fromEntries(kept), unfetched }
}

export function toOutboxCursor({ outbox, path }: Pick<RecoverSource, 'outbox' | 'path'>): string {
  return `recover ${path} ${outbox.name}`
}

function toText(position: Position): string {
  return JSON.stringify(position)
}

function readPosition(text: string): Position {
  return Position.parse(JSON.parse(text))
}
