// `events/subscribe` and `events/unsubscribe`. https://modelcontextprotocol.io/seps/3415-events-extension
import { z } from 'zod'
import type { RunnerHost } from '../../../define.ts'
import { createSerialQueue, isLoopbackHost } from '../shared/kit.ts'
import { type CallbackFault, verifyCallback } from './callback.ts'
import { type EventLog, formatEventCursor, type LogPlace, parseEventCursor } from './event-log.ts'
import type { Principal } from './principals.ts'
import { parseParams, rpcCodes, RpcFailure } from './rpc.ts'
import { type Subscription, type Subscriptions, toSubscriptionId } from './subscriptions.ts'

const minLeaseMs = 60_000
const usualLeaseMs = 24 * 3_600_000
const maxLeaseMs = 7 * 24 * 3_600_000
/** The key before a change signs too for this time. */
const formerMs = 600_000
const maxSubscriptions = 20
/** Each may be a request to a server that never asked for one. */
const maxChecksPerMinute = 10

const EventArguments = z.strictObject({}).default({})
/** What all calls for an event have. `cursor`: null or none means from now on. */
export const EventQuery = z.object({
  name: z.string().min(1).max(200),
  arguments: EventArguments,
  cursor: z.string().max(100).nullish(),
  maxAgeMs: z.int().nonnegative().nullish(),
})
const Secret = z.string().refine(isKey, { message: 'must be whsec_ and the base64 of 24 to 64 bytes' })
const Subscribe = EventQuery.extend({
  delivery: z.object({ mode: z.string().default('webhook'), url: z.string().max(2_048), secret: Secret }),
  ttlMs: z.int().nonnegative().nullish(),
})
const Unsubscribe = z.object({
  name: EventQuery.shape.name,
  arguments: EventArguments,
  delivery: z.object({ url: z.string().max(2_048) }),
})

function isKey(secret: string): boolean {
  const text = /^whsec_([A-Za-z\d+/]+={0,2})$/.exec(secret)?.[1] ?? ''
  const key = Buffer.from(text, 'base64')
  return key.length >= 24 && key.length <= 64 && key.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '')
}

type SubscribeParts = Pick<RunnerHost, 'fetch' | 'fetchPublic' | 'clock' | 'log' | 'audit'> & {
  readonly events: EventLog
  readonly subscriptions: Subscriptions
  /** Called when a subscription is new or renewed, so that it is served at once. */
  readonly onChanged: () => void
}

/** Where to begin for a client. Throws an `RpcFailure` for a text that is no cursor of this server. */
export async function findStart(
  { cursor, maxAgeMs }: Pick<z.infer<typeof EventQuery>, 'cursor' | 'maxAgeMs'>,
  { events, clock }: Pick<SubscribeParts, 'events' | 'clock'>,
): Promise<{ readonly place: LogPlace; readonly hasSkipped: boolean }> {
  if (cursor === null || cursor === undefined) return { place: await events.end(), hasSkipped: false }
  const place = parseEventCursor(cursor)
  if (place === undefined)
    throw new RpcFailure(rpcCodes.invalidParams, 'Invalid params: the cursor is not one of this server')
  return await events.find(place, typeof maxAgeMs === 'number' ? clock() - maxAgeMs : undefined)
}

export function createSubscribing({
  fetch,
  fetchPublic,
  clock,
  log,
  audit,
  events,
  subscriptions,
  onChanged,
}: SubscribeParts) {
  const checks = new Map<string, number[]>()
  const inTurn = createSerialQueue()

  function takeCheck({ name }: Principal): void {
    const now = clock()
    // compared in both directions: a clock that was set back must not block all checks
    const recent = (checks.get(name) ?? []).filter((at) => Math.abs(now - at) < 60_000)
    if (recent.length >= maxChecksPerMinute)
      throw new RpcFailure(rpcCodes.exhausted, 'ResourceExhausted', { limit: 'verifications', max: maxChecksPerMinute })
    checks.set(name, [...recent, now])
  }

  /** Throws if the callback does not want events. One that has a subscription of this subscriber wants them. */
  async function check(principal: Principal, target: { url: string; secret: string; id: string }, signal: AbortSignal) {
    const mine = await listOf(principal)
    if (mine.some(({ url, endsAt }) => url === target.url && endsAt > clock())) return
    takeCheck(principal)
    const { url, secret, id: subscriptionId } = target
    const tools = { fetch: principal.privateCallbacks ? fetch : fetchPublic, clock, signal }
    const fault = await verifyCallback({ url, secrets: [secret], subscriptionId }, tools)
    if (fault === undefined) return
    log.warn({ subscriber: principal.name, reason: fault }, 'a callback was not verified, so nothing is posted to it')
    throw new RpcFailure(rpcCodes.callback, 'CallbackEndpointError', { reason: fault satisfies CallbackFault })
  }

  async function listOf({ name, sealer }: Principal): Promise<Subscription[]> {
    const keyId = await sealer.keyId()
    const all = [...(await subscriptions.list()).values()]
    return all.filter((one) => one.subscriber === name && one.keyId === keyId)
  }

  async function subscribe(principal: Principal, params: unknown, signal: AbortSignal): Promise<object> {
    const query = parseParams(Subscribe, params)
    const { name, delivery, ttlMs } = query
    principal.requireEvent(name)
    if (delivery.mode !== 'webhook')
      throw new RpcFailure(rpcCodes.unsupported, 'Unsupported', { feature: 'deliveryMode', value: delivery.mode })
    const { url } = delivery
    requireCallback(url, principal)
    const id = toSubscriptionId({ subscriber: principal.name, url, name })
    await check(principal, { url, secret: delivery.secret, id }, signal)
    const start = await findStart(query, { events, clock })
    const keyId = await principal.sealer.keyId()
    const secret = await principal.sealer.seal(delivery.secret, id)
    const known = await subscriptions.read(id)
    const isSameSecret = known !== undefined && (await principal.sealer.open(known.secret, id)) === delivery.secret
    const now = clock()
    const endsAt = now + chooseLease(ttlMs)
    const fresh: Subscription = {
      subscriber: principal.name,
      keyId,
      name,
      url,
      secret,
      former: null,
      cursor: formatEventCursor(start.place),
      hasSkipped: false,
      endsAt,
      failures: 0,
      retryAt: 0,
      failedSince: null,
      fault: null,
      deliveredAt: null,
    }
    // one after the other, so that calls at the same time cannot exceed the limit
    const { kept, before } = await inTurn(async () => {
      const live = (await listOf(principal)).filter((one) => one.endsAt > now)
      const isNew = !live.some((one) => toSubscriptionId(one) === id)
      if (isNew && live.length >= maxSubscriptions)
        throw new RpcFailure(rpcCodes.exhausted, 'ResourceExhausted', { limit: 'subscriptions', max: maxSubscriptions })
      let last: Subscription | undefined
      const stored = await subscriptions.update(id, (one) => {
        last = one !== undefined && one.keyId === keyId && one.endsAt > now ? one : undefined
        return last === undefined ? fresh : renew(last, { secret, isSameSecret, endsAt, now })
      })
      return { kept: stored ?? fresh, before: last }
    })
    onChanged()
    if (before === undefined) {
      log.info({ subscriber: principal.name, event: name, subscription: id }, 'subscribed')
      audit({ by: principal.name, act: 'subscribe', target: id, details: { event: name } })
    }
    return {
      id,
      refreshBefore: new Date(endsAt).toISOString(),
      cursor: kept.cursor,
      truncated: before === undefined ? start.hasSkipped : before.hasSkipped,
      ...(before && { deliveryStatus: describeDelivery(before) }),
    }
  }

  return {
    subscribe,
    async unsubscribe(principal: Principal, params: unknown): Promise<object> {
      const { name, delivery } = parseParams(Unsubscribe, params)
      const id = toSubscriptionId({ subscriber: principal.name, url: delivery.url, name })
      let wasThere = false
      const keyId = await principal.sealer.keyId()
      await subscriptions.update(id, (one) => {
        wasThere = one !== undefined && one.keyId === keyId && one.endsAt > clock()
        return undefined
      })
      if (!wasThere) throw new RpcFailure(rpcCodes.notFound, 'NotFound', { kind: 'subscription' })
      log.info({ subscriber: principal.name, event: name, subscription: id }, 'the subscription ended: unsubscribed')
      audit({ by: principal.name, act: 'unsubscribe', target: id, details: { event: name } })
      return {}
    },
  }
}

type Renewal = {
  readonly secret: string
  readonly isSameSecret: boolean
  readonly endsAt: number
  readonly now: number
}

/** A renewal is a sign of life: what was suspended is tried again at once. The place stays, whatever cursor the client sends. */
function renew(one: Subscription, { secret, isSameSecret, endsAt, now }: Renewal): Subscription {
  const keys = isSameSecret ? {} : { secret, former: { secret: one.secret, until: now + formerMs } }
  return { ...one, ...keys, endsAt, hasSkipped: false, failures: 0, retryAt: 0 }
}

function describeDelivery({ retryAt, deliveredAt, fault, failedSince }: Subscription): object {
  return {
    active: retryAt !== null,
    lastDeliveryAt: deliveredAt === null ? null : new Date(deliveredAt).toISOString(),
    lastError: fault,
    ...(failedSince === null ? {} : { failedSince: new Date(failedSince).toISOString() }),
  }
}

/** No lease without an end is granted. */
function chooseLease(ttlMs: number | null | undefined): number {
  if (ttlMs === undefined) return usualLeaseMs
  return ttlMs === null ? maxLeaseMs : Math.min(Math.max(ttlMs, minLeaseMs), maxLeaseMs)
}

/** The addresses of the name are checked when the connection is made. */
function requireCallback(text: string, { privateCallbacks }: Principal): void {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isSafe =
    url?.protocol === 'https:' || (privateCallbacks && url?.protocol === 'http:' && isLoopbackHost(url.hostname))
  if (url === undefined || !isSafe || url.username !== '' || url.password !== '' || text.includes('#'))
    throw new RpcFailure(rpcCodes.invalidParams, 'Invalid params: delivery.url must be an https URL')
}
