// Finds the deliveries in the outbox of a sender that never arrived. The newest page is read first, and the oldest delivery is returned first.
import { Problem } from '../../../core/model/problem.ts'
import type { SentAttempt, Outbox } from '../../../model/outbox.ts'

/** A delivery without a successful attempt. `place`: the place of its oldest attempt that was seen. */
export type Missing = Pick<SentAttempt, 'id' | 'place' | 'ref' | 'request' | 'headers'>

/**
 * `through`: everything up to this place was seen; undefined if nothing new was seen. `isCut`: newer deliveries were left out. `now`: the clock of
 * the sender, if places are times. `leavesNew`: a failed attempt was left out, because it may still run.
 */
type Scan = {
  readonly missing: readonly Missing[]
  readonly through: number | undefined
  readonly isCut: boolean
  readonly now: number | undefined
  readonly leavesNew: boolean
}

/** An attempt that is newer than this may still run, so its result is not final. */
export const settledAfterMs = 60_000
/** The limits of the requests that one scan keeps in memory. The newest requests are left for the next scan. */
const maxBytes = 32 * 1024 * 1024
const maxDeliveries = 10_000
/** The maximum number of pages in a row without new attempts: an API whose pages never end would hold up the other senders. */
const maxIdlePages = 100

type Seen = { place: number; isDelivered: boolean; readonly newest: SentAttempt }

/** Finds the missing deliveries. `from`: attempts before this place are ignored. */
export async function scanOutbox(outbox: Outbox, from: number): Promise<Scan> {
  const seen = new Map<string, Seen>()
  let bytes = 0
  let through: number | undefined
  let cut: number | undefined
  let sendersNow: number | undefined
  let idlePages = 0
  let leavesNew = false

  for await (const { attempts, now } of outbox.pages()) {
    sendersNow = now
    const settled = now === undefined ? attempts : attempts.filter(({ place }) => place <= now - settledAfterMs)
    leavesNew ||= attempts.some((attempt) => !attempt.isDelivered && !settled.includes(attempt))
    const wanted = settled.filter(({ place }) => place >= from)
    idlePages = wanted.some(({ id }) => !seen.has(id)) ? 0 : idlePages + 1
    if (idlePages > maxIdlePages) {
      const detail = `${outbox.name}: its last ${maxIdlePages} pages of deliveries have nothing new and do not end. They are asked for again later.`
      throw new Problem('recover-unavailable', detail)
    }
    for (const attempt of wanted) {
      through = Math.max(through ?? attempt.place, attempt.place)
      note(attempt)
    }
    // a page without a wanted attempt is the end, unless all of its attempts are too new
    if (attempts.length > 0 && wanted.length === 0 && settled.length > 0) break
  }
  const end = cut
  if (end !== undefined) {
    const kept = [...seen.values()].map(({ place }) => place)
    through = kept.length === 0 ? end : Math.max(...kept)
  }
  const missing = [...seen]
    .filter(([, { isDelivered }]) => !isDelivered)
    .map(
      ([
        id,
        {
          place,
          newest: { ref, request, headers },
        },
      ]) => ({ id, place, ref, request, headers }),
    )
    .toSorted((one, other) => one.place - other.place)
  return { missing, through, isCut: end !== undefined, now: sendersNow, leavesNew }

  function note(attempt: SentAttempt): void {
    const { id, place, isDelivered } = attempt
    const known = seen.get(id)
    if (known !== undefined) {
      known.place = Math.min(known.place, place)
      known.isDelivered ||= isDelivered
      return
    }
    const { request: _, ...light } = attempt
    seen.set(id, { place, isDelivered, newest: isDelivered ? light : attempt })
    if (!isDelivered) bytes += attempt.request?.body.byteLength ?? 0
    // at least one delivery is kept, however large it is
    while (seen.size > 1 && (bytes > maxBytes || seen.size > maxDeliveries)) dropNewest()
  }

  /** Forgets the newest delivery. The map is in the order of the pages, so the newest is the first. */
  function dropNewest(): void {
    const [first] = seen
    if (first === undefined) return
    const [id, { place, isDelivered, newest }] = first
    seen.delete(id)
    if (!isDelivered) bytes -= newest.request?.body.byteLength ?? 0
    cut = Math.min(cut ?? place, place)
  }
}
