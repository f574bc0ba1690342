// Channels post messages to people. A channel makes one attempt and returns its result; the worker decides about retries.
import type { z } from 'zod'
import type { ProblemRecord } from './problem.ts'

/**
 * `markdown`: a reply. `plain`: an alert, which may name anything from a request: each character is shown, and nothing in it is markup, a mention
 * or a link.
 */
export type TextFormat = 'markdown' | 'plain'

export type Outgoing = {
  /** Recipient in the form of the channel. Undefined if none is named. */
  readonly to: string | undefined
  /** One piece of the message, as `split` returned it. */
  readonly text: string
  /** How to show `text`: a reply as Markdown, an alert with nothing in it read as markup. */
  readonly format: TextFormat
  /** A nonce of at most 25 characters (Discord's limit), which is the same for every attempt of one message. */
  readonly nonce: string
  /**
   * Set if an earlier attempt may have posted the message: the time of that attempt, in milliseconds since the epoch. A channel that finds the
   * message does not post it again.
   */
  readonly maybeSince?: number | undefined
  /** Aborted when the attempt takes too long, or when the message must no longer be sent. */
  readonly signal: AbortSignal
  /**
   * The run whose reply this is. `name` is external text on one line. `hops`: a channel whose receiver may call a hook sends it as the
   * header `hookloom-hops`, so that a loop ends.
   */
  readonly run: { readonly id: string; readonly agentId: string; readonly name: string; readonly hops: number }
}

/**
 * - `sent`: accepted. `id` is the provider's id.
 * - `rate-limited`: not accepted for now. It does not count as an attempt.
 * - `transient`: certainly not accepted. A later attempt may succeed.
 * - `ambiguous`: a timeout or a reset after the text was sent, so it may have been accepted.
 * - `permanent`: no attempt will be accepted.
 *
 * `detail` is one sentence for the operator, without the text.
 */
export type SendResult =
  | { readonly kind: 'sent'; readonly id: string }
  | { readonly kind: 'rate-limited'; readonly retryAfterMs?: number; readonly detail: string }
  | { readonly kind: 'transient'; readonly retryAfterMs?: number; readonly detail: string }
  | { readonly kind: 'ambiguous'; readonly detail: string }
  | { readonly kind: 'permanent'; readonly detail: string }

/**
 * The status of a commit to set. `commit`: the commit, in the form of the channel. `name` distinguishes it from other statuses of the commit.
 * `description` names the run, so that no two statuses are the same: a status that the commit already has is not set again.
 */
export type CommitStatus = {
  readonly commit: string
  readonly name: string
  readonly state: 'pending' | 'success' | 'failure' | 'error'
  readonly description: string
  readonly signal: AbortSignal
}

/** Whether the provider answers and accepts the credential. `detail` is one sentence, without a secret. */
export type Probe = { readonly ok: boolean; readonly detail: string }

/** `id`: has no dot, and is the same for every attempt. `hops`: see `Outgoing`. */
export type WebhookEvent = {
  readonly endpoint: string
  readonly id: string
  /** The event as JSON. */
  readonly body: string
  readonly hops: number
  readonly signal: AbortSignal
}

export interface Channel {
  readonly id: string
  /** True: a nonce that was posted is not posted again, so an ambiguous attempt may be repeated. `briefly`: only for a few minutes. */
  readonly dedupes: boolean | 'briefly'
  /** True: an ambiguous attempt is repeated, even though the message may then be posted twice (`onUnknown: "repeat"`). */
  readonly repeatsUnknown?: boolean
  /** The recipient of the configuration, for messages without one. */
  readonly to: string | undefined
  /** Why the recipient cannot be used, in one sentence. Undefined if it can. */
  whyNot(to: string | undefined): string | undefined
  /** Splits a text into the pieces to send, in order. Returns at least one piece, and always the same pieces for the same text. `format`: default `markdown`. */
  split(text: string, format?: TextFormat): readonly string[]
  send(message: Outgoing): Promise<SendResult>
  /** Sets the status of a commit, unless the commit has it already. Only channels to forges have it. */
  setStatus?(status: CommitStatus): Promise<SendResult>
  /** Posts an event to an endpoint of the configuration, and to no other URL. Only the channel `webhook` has it. */
  postEvent?(event: WebhookEvent): Promise<SendResult>
  /** Checks the provider without posting anything. */
  probe?(signal: AbortSignal): Promise<Probe>
}

/**
 * A channel in the operator's code, named after its file. It runs in the main thread of the gateway, so an endless loop stops the
 * gateway.
 */
export type ChannelDefinition<Options = Readonly<Record<string, unknown>>> = {
  /** The schema of `channels.own.<name>`, without `to`. Default: any keys. */
  readonly options?: z.ZodType<Options>
  /** Maximum UTF-16 units of a piece. A longer reply is split into pieces, each valid Markdown. Default: 4,000. */
  readonly maxChars?: number
  /** True: the provider drops a repeated nonce, so an ambiguous attempt may be repeated. Default: false. */
  readonly dedupes?: boolean
  /** Why the recipient cannot be used, in one sentence. Undefined if it can. Default: every recipient can be used. */
  whyNot?(to: string | undefined, options: Options): string | undefined
  /**
   * Makes one attempt. An exception counts as `transient` if no connection was made yet, and otherwise as `ambiguous`. An invalid result and
   * an attempt of more than 60 seconds count as `ambiguous`.
   */
  send(message: Outgoing, options: Options): SendResult | Promise<SendResult>
  /** Checks the provider without posting anything, for `hookloom doctor`. */
  probe?(options: Options, signal: AbortSignal): Probe | Promise<Probe>
}

/** A loaded channel of `channels.own`. `broken`: its messages wait until the code is corrected. */
export type OwnChannel =
  | {
      readonly kind: 'sound'
      readonly name: string
      readonly definition: ChannelDefinition<unknown>
      /** The options that the schema returned. */
      readonly options: unknown
      /** The hash of its code. */
      readonly hash: string
      /** Describes an exception with its place: `a TypeError at zulip.ts:12`. */
      describeThrown(thrown: unknown): string
    }
  | { readonly kind: 'broken'; readonly name: string; readonly problem: ProblemRecord }
