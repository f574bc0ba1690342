import type { Body } from './parse-body.ts'

/**
 * Where an admitted request stands.
 * ```
 *            ┌──────────▶ accepted     its actions are jobs
 * request ─▶ pending ───▶ skipped      no condition held, or the transform returned null
 *            │  ▲
 *            ▼  │ retry · a mended transform
 *           parked ─────▶ dropped      `hookloom drop`, or retention
 * ```
 */
export const deliveryStates = ['pending', 'parked', 'accepted', 'skipped', 'dropped'] as const
export type DeliveryState = (typeof deliveryStates)[number]

/** The sender's delivery id as a signature covers it, and the mapping that asked for that signature. */
export type SignedId = { readonly mappingId: string; readonly source: string; readonly id: string }

/** What let a request in: the hook token, signatures that mappings asked for, or both. */
export type Admitted = {
  readonly token: boolean
  readonly signedFor: readonly string[]
  readonly signedId?: SignedId | undefined
}

/** One admitted request. Headers have lower-case names and no credential; both maps have no prototype. */
export type Delivery = {
  readonly id: string
  /** Milliseconds since the epoch. */
  readonly receivedAt: number
  readonly method: string
  /** Path and query as they came. */
  readonly url: string
  /** The hook's name: the path behind `hooks.path`, slashes trimmed, undecoded. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string>>
  readonly body: Body
  /** The verified scheme, else `payload.source`, else the sender that the headers show. */
  readonly source: string | undefined
  readonly event: string | undefined
  /** The sender that a signature proved. */
  readonly verifiedBy: string | undefined
  readonly admitted: Admitted
}

/** What is kept of a delivery while it may have to run again; the body stands beside it as bytes. */
export type DeliveryHead = Pick<Delivery, 'method' | 'url' | 'path' | 'headers' | 'query' | 'verifiedBy' | 'admitted'>

export function toDeliveryHead(delivery: Delivery): DeliveryHead {
  const { method, url, path, headers, query, verifiedBy, admitted } = delivery
  return { method, url, path, headers, query, verifiedBy, admitted }
}

/**
 * Taken off every delivery. Authorization and x-service-token open this gateway; the other two open what stands before it: a
 * proxy, and whatever site shares its host name and its cookies.
 */
export const credentialHeaders: ReadonlySet<string> = new Set([
  'authorization',
  'x-service-token',
  'proxy-authorization',
  'cookie',
])

/** Shared secrets of senders that show a token instead of signing, where no mapping's scheme says so. They keep their name alone. */
export const senderSecrets: ReadonlySet<string> = new Set([
  'x-gitlab-token',
  'x-goog-channel-token',
  'x-telegram-bot-api-secret-token',
  'x-vapi-secret',
  'x-webhook-secret',
])
