// Posts the events to the webhook subscriptions: those of one subscription in their order, one at a time; those of different ones at the same time. Where a
// subscription stands is in the store after each event, so that after a kill only the event of the last request may be posted again, with its id.
import { randomBytes } from 'node:crypto'
import type { PassingParts, RunnerHost } from '../../../define.ts'
import { sleepUntilAborted } from '../shared/kit.ts'
import { createBell } from './bell.ts'
import { postSigned } from './callback.ts'
import { type EventLog, formatEventCursor, type LoggedEvent, type LogPlace, parseEventCursor } from './event-log.ts'
import { toPlacedOccurrence } from './occurrence.ts'
import type { Principals } from './principals.ts'
import { rpcCodes } from './rpc.ts'
import type { Subscription, Subscriptions } from './subscriptions.ts'

/** Another gateway may have stored an event or a subscription. */
const lookEveryMs = 1_000
/** The pauses after failures, about a quarter of an hour in all. Then a subscription is suspended until its client renews it. */
const pauses = [1_000, 5_000, 30_000, 120_000, 300_000, 600_000] as const
const eventsAtOnce = 20
const minLookMs = 50
const notRenewed = 'not renewed'
const notPermitted = 'the subscriber may no longer receive the event'

type ControlBody = { readonly type: 'gap' | 'terminated'; readonly [key: string]: unknown }

type DeliveryParts = Pick<RunnerHost, 'fetch' | 'fetchPublic' | 'clock' | 'log'> & {
  readonly events: EventLog
  readonly subscriptions: Subscriptions
  readonly principals: Principals
}

/** `look`: looks for work at once. */
export function createDelivery(parts: DeliveryParts): { readonly passes: PassingParts; look(): void } {
  const { events, subscriptions, principals, clock, log } = parts
  const bell = createBell()
  let problems: readonly string[] = []

  async function pass(signal: AbortSignal): Promise<void> {
    const running = new Map<string, Promise<unknown>>()
    const failures: unknown[] = []
    const stopListening = events.onAppended(bell.ring)
    try {
      while (!signal.aborted && failures.length === 0) {
        const all = await subscriptions.list()
        const newest = formatEventCursor(await events.end())
        problems = listProblems(all)
        for (const [id, one] of all) {
          const reason = await findEnd(one)
          if (running.has(id) || (reason === undefined && !hasWork(one, newest))) continue
          const work = reason === undefined ? serve(id, signal) : end(id, one, reason, signal)
          const ended = work
            .catch((thrown: unknown) => signal.aborted || failures.push(thrown))
            .finally(() => running.delete(id))
          running.set(id, ended)
        }
        await bell.wait(lookEveryMs, signal)
        // many events in a burst are looked for once
        await sleepUntilAborted(minLookMs, signal)
      }
    } finally {
      stopListening()
      await Promise.all(running.values())
      problems = []
    }
    // the store failed: the next pass begins again
    if (failures.length > 0) throw failures[0]
  }

  const hasWork = ({ retryAt, cursor }: Subscription, newest: string) =>
    cursor !== newest && retryAt !== null && retryAt <= clock()

  /** Why a subscription is over; undefined if it is not. */
  async function findEnd({ subscriber, endsAt, keyId, name }: Subscription): Promise<string | undefined> {
    if (endsAt <= clock()) return notRenewed
    const principal = principals.find(subscriber)
    if (principal === undefined || (await principal.sealer.keyId()) !== keyId) return 'revoked'
    return principal.events.includes(name) ? undefined : notPermitted
  }

  /** Posts what waits for a subscription, up to the first failure. */
  async function serve(id: string, signal: AbortSignal): Promise<void> {
    // the list may be older than the end of the work before
    const given = await subscriptions.read(id)
    if (given === undefined) return
    let place = parseEventCursor(given.cursor) ?? (await events.end())
    const found = await events.find(place)
    if (found.hasSkipped) await skip(id, given, (place = found.place), signal)
    for (;;) {
      const reading = await events.read({ after: place, names: [given.name], limit: eventsAtOnce })
      if (reading.hasSkipped) await skip(id, given, place, signal)
      for (const event of reading.events) {
        signal.throwIfAborted()
        const now = await subscriptions.read(id)
        if (now === undefined || now.keyId !== given.keyId) return
        if (!(await deliver({ id, now, event }, signal))) return
      }
      place = reading.place
      if (formatEventCursor(place) !== given.cursor && reading.events.length === 0) await move(id, place)
      if (!reading.hasMore) return
    }
  }

  /** Where to post, and how to sign. Undefined if the subscriber is gone, or if nobody can open its key. */
  async function findTarget(id: string, { subscriber, secret, former, url }: Subscription) {
    const principal = principals.find(subscriber)
    if (principal === undefined) return undefined
    const sealed = [secret, ...(former !== null && former.until > clock() ? [former.secret] : [])]
    const opened = await Promise.all(sealed.map((each) => principal.sealer.open(each, id)))
    const secrets = opened.flatMap((each) => each ?? [])
    if (secrets.length === 0) return undefined
    const fetch = principal.privateCallbacks ? parts.fetch : parts.fetchPublic
    return { target: { url, secrets, subscriptionId: id }, fetch }
  }

  /** Tells the receiver something about its subscription, in one attempt. */
  async function tell(id: string, one: Subscription, body: ControlBody, signal: AbortSignal): Promise<void> {
    const found = await findTarget(id, one)
    if (found === undefined) return
    const message = { id: `msg_${body.type}_${randomBytes(12).toString('hex')}`, body: JSON.stringify(body), hops: 0 }
    await postSigned(found.target, message, { fetch: found.fetch, clock, signal })
  }

  async function deliver(
    { id, now, event }: { id: string; now: Subscription; event: LoggedEvent & { readonly place: LogPlace } },
    signal: AbortSignal,
  ): Promise<boolean> {
    const found = await findTarget(id, now)
    if (found === undefined) {
      await end(id, now, 'its key cannot be opened', signal)
      return false
    }
    const { target, fetch } = found
    const body = JSON.stringify(toPlacedOccurrence(event))
    const tools = { fetch, clock, signal }
    const outcome = await postSigned(target, { id: event.id, body, hops: event.hops }, tools)
    const fields = { subscriber: now.subscriber, event: now.name, subscription: id, run: event.id }
    if (outcome.kind === 'failed') {
      if (now.failures === 0)
        log.warn({ ...fields, reason: outcome.fault }, 'an event could not be posted; it is tried again')
      const pause = pauses[now.failures]
      if (pause === undefined)
        log.error(
          { ...fields, reason: outcome.fault },
          'events are no longer posted until the client renews its subscription',
        )
      await subscriptions.update(id, (one) =>
        one === undefined
          ? one
          : {
              ...one,
              failures: one.failures + 1,
              retryAt: pause === undefined ? null : clock() + pause,
              failedSince: one.failedSince ?? clock(),
              fault: outcome.fault,
            },
      )
      return false
    }
    if (outcome.kind === 'gone')
      log.warn(fields, 'the receiver refused an event for good (410 or 413), so it is not posted again')
    await move(id, event.place, outcome.kind === 'taken')
    return true
  }

  /** Stores that everything up to a place is done. A subscription that was ended and made again in between may be further. */
  async function move(id: string, place: LogPlace, isDelivered = false): Promise<void> {
    const healed = { failures: 0, retryAt: 0, failedSince: null, fault: null }
    await subscriptions.update(id, (one) => {
      if (one === undefined || (parseEventCursor(one.cursor)?.number ?? 0) > place.number) return one
      const cursor = formatEventCursor(place)
      return { ...one, cursor, ...healed, ...(isDelivered ? { deliveredAt: clock() } : {}) }
    })
  }

  async function skip(id: string, given: Subscription, place: LogPlace, signal: AbortSignal): Promise<void> {
    const { subscriber, name: event } = given
    log.error({ subscriber, event, subscription: id }, 'events were skipped, because they are no longer kept')
    const cursor = formatEventCursor(place)
    await subscriptions.update(id, (one) => (one === undefined ? one : { ...one, cursor, hasSkipped: true }))
    await tell(id, given, { type: 'gap', cursor }, signal)
  }

  async function end(id: string, given: Subscription, reason: string, signal: AbortSignal): Promise<void> {
    const { subscriber, name: event, keyId } = given
    let hasEnded = false
    await subscriptions.update(id, (one) => {
      // it may have been renewed in between
      hasEnded = one !== undefined && one.keyId === keyId && (reason !== notRenewed || one.endsAt <= clock())
      return hasEnded ? undefined : one
    })
    if (!hasEnded) return
    log.info({ subscriber, event, subscription: id }, `the subscription ended: ${reason}`)
    if (reason === notPermitted)
      await tell(id, given, { type: 'terminated', error: { code: rpcCodes.forbidden, message: 'Forbidden' } }, signal)
  }

  return { passes: { everyMs: lookEveryMs, pass, problems: () => problems }, look: bell.ring }
}

/** One sentence for each subscription that fails. */
export function listProblems(
  all: ReadonlyMap<string, Pick<Subscription, 'subscriber' | 'name' | 'fault' | 'retryAt'>>,
): string[] {
  return [...all.values()].flatMap(({ subscriber, name, fault, retryAt }) => {
    if (fault === null) return []
    const next = retryAt === null ? 'It is tried again when the client renews the subscription' : 'It is tried again'
    return [`The event "${name}" cannot be posted to ${subscriber} (${fault}). ${next}.`]
  })
}
