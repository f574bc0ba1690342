// Sealed copies of refused requests. The store knows their hooks and networks, but nothing of their content.

/** A refused request, as lists show it. `place`: its position in the order of arrival. */
export type QuarantinedRequest = {
  readonly place: number
  readonly requestId: string
  /** Milliseconds since the epoch, by the clock of the gateway that refused it. */
  readonly receivedAt: number
  readonly hook: string
  /** Why the request was refused, as JSON. Nothing in it comes from the headers, the query or the body of the request. */
  readonly refusal: string
  /** The id of the key that decrypts the content. */
  readonly keyId: string
}

/** `sealed`: the head and the body of the request, encrypted. */
export type SealedRequest = Omit<QuarantinedRequest, 'place'> & {
  /** A configured name, so that strangers cannot create many shares: `hookLabel` and `network` identify a share of the space. */
  readonly hookLabel: string
  readonly network: string
  /** Whether the hook accepted a request of this network before. Requests of networks that it does not know are deleted first. */
  readonly isKnown: boolean
  readonly sealed: Uint8Array
}

/** `olderThan`: requests that arrived before this moment, in milliseconds since the epoch, are deleted too. */
export type QuarantineBounds = {
  readonly maxRequests: number
  readonly maxBytes: number
  readonly olderThan: number
}

export type QuarantineQuery = {
  readonly limit: number
  /** Only requests after this `place`, the oldest first; 0 begins with the first one. Without it: the newest requests. */
  readonly after?: number | undefined
  /** Only the request with this id, found by an index. `after` must not be given. */
  readonly requestId?: string | undefined
  readonly hook?: string | undefined
  /** Milliseconds since the epoch: only requests that arrived then or later. */
  readonly since?: number | undefined
}

export const quarantineColumns = 'id, received_at, hook, label, network, known, bytes, key_id, refusal, sealed'.split(
  ', ',
)

/**
 * The requests beyond the bounds, as SQL: the oldest ones of the largest network of the largest hook, until the remaining requests fit. So a
 * flood from one network, or to one hook, deletes its own requests. Requests of networks that the hook knows are deleted last.
 *
 * `larger`: the name of the function that returns the larger of two numbers. `rows` and `bytes`: the parameters of the bounds.
 */
export function selectBeyond({ larger, rows, bytes }: { larger: string; rows: string; bytes: string }): string {
  const share = (window: string) =>
    `${larger}(1.0 * row_number() OVER ${window} / ${rows}, 1.0 * sum(bytes) OVER ${window} / ${bytes})`
  const ofSender = `SELECT seq, label, known, bytes, ${share('sender')} AS share FROM quarantine
    WINDOW sender AS (PARTITION BY label, network ORDER BY seq DESC)`
  const ofHook = `SELECT seq, known, bytes, ${share('hooks')} AS share FROM (${ofSender}) s
    WINDOW hooks AS (PARTITION BY label ORDER BY known DESC, share, seq DESC)`
  return `SELECT seq FROM (SELECT seq, row_number() OVER everything AS place, sum(bytes) OVER everything AS total FROM (${ofHook}) h
    WINDOW everything AS (ORDER BY known DESC, share, seq DESC)) ranked WHERE place > ${rows} OR total > ${bytes}`
}
