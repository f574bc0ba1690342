// What posts a message to people. A channel makes one attempt and says how it ended; retries are the worker's.
import type { z } from 'zod'
import type { ProblemRecord } from './problem.ts'

export type Outgoing = {
  /** Recipient in the channel's own form; undefined where nobody named one. */
  readonly to: string | undefined
  /** One piece, as `split` gave it: Markdown. */
  readonly text: string
  /** Same for every attempt of one message, 25 characters at the most (Discord's limit). */
  readonly nonce: string
  /** Aborted when the message takes too long, or must not be sent any more. */
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
  /** True: an ambiguous attempt is repeated although the message may then be posted twice (`onUnknown: "repeat"`). */
  readonly repeatsUnknown?: boolean
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

/**
 * A channel in code, for a chat that has none here. It has the name of its file. It runs in the gateway's own thread: code that
 * loops stops the gateway.
 */
export type ChannelDefinition<Options = Readonly<Record<string, unknown>>> = {
  /** Of `channels.own.<name>`, beside `to`. Default: whatever stands there. */
  readonly options?: z.ZodType<Options>
  /** A longer reply is sent in pieces of so many UTF-16 units, each Markdown by itself. Default: 4,000. */
  readonly maxChars?: number
  /** True: the other side drops a repeated nonce, so that an attempt of which nobody knows may be repeated. Default: false. */
  readonly dedupes?: boolean
  /** Why a message cannot be addressed so, as one sentence; undefined when it can. Default: it always can. */
  whyNot?(to: string | undefined, options: Options): string | undefined
  /**
   * One attempt. What is thrown before a connection stood is tried again; of what is thrown later nobody knows whether it was
   * posted. So is it with what is no result, and with an attempt of more than 60 s.
   */
  send(message: Outgoing, options: Options): SendResult | Promise<SendResult>
  /** Asks the other side without posting anything, for `hookloom doctor`. */
  probe?(options: Options, signal: AbortSignal): Probe | Promise<Probe>
}

/** A channel in code as it was loaded, under its name in `channels.own`. `broken`: what is to be sent waits until it is mended. */
export type OwnChannel =
  | {
      readonly kind: 'sound'
      readonly name: string
      readonly definition: ChannelDefinition<unknown>
      /** What its own schema parsed. */
      readonly options: unknown
      /** Of its code. */
      readonly hash: string
      /** What was thrown, and where: `a TypeError at zulip.ts:12`. */
      describeThrown(thrown: unknown): string
    }
  | { readonly kind: 'broken'; readonly name: string; readonly problem: ProblemRecord }
