import type { Body } from './body.ts'
import type { RecognisedSender } from './sender.ts'

/**
 * The states of an admitted request.
 * ```
 *            ┌──────────▶ accepted     its actions are jobs
 * request ─▶ pending ───▶ skipped      no mapping matches, or the mapping makes no action, for example because the transform returned null
 *            │  ▲
 *            ▼  │ retry · a corrected transform · a mapping that takes it again
 *           parked ─────▶ dropped      `hookloom drop`, or retention; from accepted too, with its queued or dead jobs
 * ```
 */
export const deliveryStates = ['pending', 'parked', 'accepted', 'skipped', 'dropped'] as const
export type DeliveryState = (typeof deliveryStates)[number]

/** The maximum length of a hook name. It is limited because names are stored, logged and listed. */
export const maxHookChars = 512

/** Whether `<hooks.path>/<name>` is a run. The id of a run has a fixed form, so hooks may be named `runs` and `runs/…`. */
export function isRunPath(name: string): boolean {
  return /^runs\/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/.test(name)
}

/** Escapes of letters, digits, `-`, `.`, `_` and `~` decoded, the digits of all others in upper case. */
export function normalizeEscapes(path: string): string {
  return path.replace(/%[\da-f]{2}/gi, (escape) => {
    const character = String.fromCharCode(Number.parseInt(escape.slice(1), 16))
    return /[\w.~-]/.test(character) ? character : escape.toUpperCase()
  })
}

/** The maximum length of a source. A longer `payload.source` is ignored. */
export const maxSourceChars = 256

/** The prefix of the name that a parked delivery waits for if no mapping matches it any more. No module has such a name. */
export const missingMappingModule = 'mapping:'

/** The sender's delivery id that a signature covers. `signer`: who proved it, as in `Admitted`. */
export type SignedId = { readonly signer: string; readonly source: string; readonly id: string }

/**
 * The credentials that let a request in: the hook token, proofs that mappings required, or both. `signedFor` names each proof by the id of
 * the mapping, or without an id by the scheme and a digest of each accepted secret, because positions change with an edit.
 */
export type Admitted = {
  readonly token: boolean
  /** The id of the token that the request had: see `Token`. It decides who may see the runs, and nothing else. */
  readonly tokenId?: string | undefined
  /** The id of a token with rights of its own: an `Idempotency-Key` counts for it alone. The hook tokens share theirs, so that a rotation repeats nothing. */
  readonly keyScope?: string | undefined
  readonly signedFor: readonly string[]
  /** One name for each proof, for the key of duplicates. The names do not change when a second secret is added. Default: `signedFor`. */
  readonly signers?: readonly string[] | undefined
  readonly signedId?: SignedId | undefined
  /**
   * Only for a copy whose body an operator replaced: the names of the proofs of the original request. They open its mappings, as the operator
   * asked, but they prove nothing.
   */
  readonly editedFor?: readonly string[] | undefined
  /** Only for a recovered delivery: when its sender first tried to send it, by the clock of the gateway. Undefined if the sender does not show it. */
  readonly sentAt?: number | undefined
  /** Only for an item of a source: the files that it offers, for its runs alone. No request has them: who could name files would read the mailbox. */
  readonly files?: object | undefined
}

/** The names of the proofs that open mappings. */
export function listOpeningProofs({
  signedFor,
  editedFor = [],
}: Pick<Admitted, 'signedFor' | 'editedFor'>): readonly string[] {
  return [...signedFor, ...editedFor]
}

/** One admitted request. Headers have lower-case names and no credentials. Both maps have no prototype. */
export type Delivery = {
  readonly id: string
  /** Milliseconds since the epoch. */
  readonly receivedAt: number
  readonly method: string
  /** Path and query of the request. */
  readonly url: string
  /** The name of the hook: the path after `hooks.path`, without slashes at its ends, not decoded. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string>>
  readonly body: Body
  /** The sender that the proof names, else `payload.source`, else the sender that the headers show. */
  readonly source: string | undefined
  /** The row of the table of senders, as `recognise` of the table finds it. Here the headers come before `payload.source`, so it may differ from `source`. */
  readonly sender: RecognisedSender | undefined
  readonly event: string | undefined
  /** The sender that a proof names. */
  readonly verifiedBy: string | undefined
  readonly admitted: Admitted
}

/** The part of a delivery that is stored for later runs. Its body is stored as bytes. */
export type DeliveryHead = Pick<Delivery, 'method' | 'url' | 'path' | 'headers' | 'query' | 'verifiedBy' | 'admitted'>

export function toDeliveryHead(delivery: Delivery): DeliveryHead {
  const { method, url, path, headers, query, verifiedBy, admitted } = delivery
  return { method, url, path, headers, query, verifiedBy, admitted }
}

/** The head of the same request after its body was converted. */
export function withContentType(head: DeliveryHead, contentType: string): DeliveryHead {
  const headers: Record<string, string> = Object.create(null)
  Object.assign(headers, head.headers, { 'content-type': contentType })
  return { ...head, headers }
}

/**
 * The header of a secret in the URL. A colon cannot be a part of a name that is sent over HTTP/1, so a request has it only from `http/target.ts`.
 */
export const urlSecretHeader = ':url-secret'

/**
 * The headers that are removed from every delivery. The first two give access to this gateway. The other two give access to a proxy in front of it,
 * and to sites that share its host name and cookies.
 */
export const credentialHeaders: ReadonlySet<string> = new Set([
  'authorization',
  'x-service-token',
  'proxy-authorization',
  'cookie',
  urlSecretHeader,
])

/**
 * Whether a header contains a secret, even if no scheme of a mapping names it. The name of such a header is kept, and its value is removed.
 * `name`: in lower case. A token for idempotency is an id, not a secret.
 */
export function isSecretHeader(name: string): boolean {
  return (
    senderSecrets.has(name) ||
    name.endsWith('-secret') ||
    (name.endsWith('-token') && !name.endsWith('idempotency-token'))
  )
}

const senderSecrets: ReadonlySet<string> = new Set(
  (
    'api-key apikey x-api-key x-apikey x-api-token ' +
    'x-api-secret x-functions-key x-master-key auth-token access-token ' +
    'x-auth x-auth-key x-auth-token x-access-token x-access-key ' +
    'x-token x-authorization x-hook-token x-hook-secret x-webhook-token ' +
    'x-session-token x-csrf-token x-xsrf-token x-secret x-secret-key ' +
    'x-secret-token x-shared-secret x-client-secret x-password x-amz-security-token ' +
    'x-openclaw-token x-forwarded-access-token x-forwarded-client-cert x-goog-api-key x-goog-iap-jwt-assertion ' +
    'x-vault-token x-amzn-oidc-data x-amzn-oidc-accesstoken x-ms-token-aad-access-token cf-access-jwt-assertion ' +
    'cf-access-client-secret private-token job-token ocp-apim-subscription-key x-rapidapi-key ' +
    'x-subscription-token x-gitlab-token x-goog-channel-token x-telegram-bot-api-secret-token x-vapi-secret ' +
    'x-webhook-secret cf-webhook-auth'
  ).split(' '),
)
