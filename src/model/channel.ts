// What posts a message to people. A channel makes one attempt and says how it ended; retries are the worker's.

export type Outgoing = {
  /** Recipient in the channel's own form; undefined where nobody named one. */
  readonly to: string | undefined
  readonly text: string
  /** Same for every attempt of one message, 25 characters at the most (Discord's limit). */
  readonly nonce: string
  readonly signal: AbortSignal
  /** Whose reply this is. `name` is outside text, folded to one line. */
  readonly run: { readonly id: string; readonly agentId: string; readonly name: string }
}

/**
 * - `sent`: accepted; `id` is the provider's.
 * - `rate-limited`: not accepted, come back later; uses up no attempt.
 * - `transient`: certainly not accepted, may pass.
 * - `ambiguous`: a timeout or reset after the text was out: nobody knows.
 * - `permanent`: never will be accepted. `detail` is one sentence for the operator, without the text.
 */
export type SendResult =
  | { readonly kind: 'sent'; readonly id: string }
  | { readonly kind: 'rate-limited'; readonly retryAfterMs?: number; readonly detail: string }
  | { readonly kind: 'transient'; readonly retryAfterMs?: number; readonly detail: string }
  | { readonly kind: 'ambiguous'; readonly detail: string }
  | { readonly kind: 'permanent'; readonly detail: string }

export interface Channel {
  readonly id: string
  /** True: a nonce that was posted is not posted again, so an ambiguous attempt may be repeated. */
  readonly dedupes: boolean
  send(message: Outgoing): Promise<SendResult>
}
