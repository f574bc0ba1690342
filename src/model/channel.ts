// What posts a message to people. A channel makes one attempt and says how it ended; retries are the worker's.

export type Outgoing = {
  /** Recipient in the channel's own form; undefined where nobody named one. */
  readonly to: string | undefined
  /** One piece, as `split` gave it: Markdown. */
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

/** Whether the other side is there and takes the credential. `detail` is one sentence, without a secret. */
export type Probe = { readonly ok: boolean; readonly detail: string }

export interface Channel {
  readonly id: string
  /** True: a nonce that was posted is not posted again, so an ambiguous attempt may be repeated. */
  readonly dedupes: boolean
  /** Recipient of messages that name none, from the channel's configuration. */
  readonly to: string | undefined
  /** Why a message cannot be addressed so, as one sentence; undefined when it can. */
  whyNot(to: string | undefined): string | undefined
  /** The reply in the pieces in which it is sent, in order; the same for the same text, and at least one. */
  split(markdown: string): readonly string[]
  send(message: Outgoing): Promise<SendResult>
  /** Asks the other side without posting anything. */
  probe?(signal: AbortSignal): Promise<Probe>
}
