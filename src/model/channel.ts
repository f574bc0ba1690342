// Channels post messages to people. A channel makes one attempt and returns its result; the worker decides about retries.
import { z } from 'zod'
import { cut, toPrintableLine } from '../base/text.ts'
import type { OwnCode } from './own.ts'

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

const ProbeResult = z.object({
  ok: z.boolean(),
  detail: z.string().transform((text) => cut(toPrintableLine(text), 500)),
})

/** The probe of an integrator's code, if it has one, as a probe that returns its exceptions and invalid results as failures. */
export function guardProbe(
  parts: { probe?(signal: AbortSignal): Promise<Probe> },
  {
    describe,
    describeException,
  }: { readonly describe: (what: string) => string; readonly describeException: (thrown: unknown) => string },
): { probe?(signal: AbortSignal): Promise<Probe> } {
  if (parts.probe === undefined) return {}
  return {
    async probe(signal) {
      try {
        const probed = ProbeResult.safeParse(await parts.probe?.(signal))
        return probed.data ?? { ok: false, detail: describe('must return { ok, detail } from probe.') }
      } catch (thrown) {
        return { ok: false, detail: describeException(thrown) }
      }
    },
  }
}

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

/** What the code of a channel makes. The gateway adds the id, the recipient and `onUnknown` of its section. */
export type ChannelParts = Omit<Channel, 'id' | 'to' | 'repeatsUnknown'>

/** A reply on a terminal. `text` is for a terminal only. The other fields may be logged: `chars` is the length of the reply. */
type PrintedReply = {
  readonly text: string
  readonly jobId: string
  readonly agentId: string
  readonly chars: number
}
/** Prints a reply, for example with `process.stdout.write`. */
export type WriteReply = (reply: PrintedReply) => void

/** What a channel gets from the gateway. */
export type ChannelHost = {
  /** Sends requests. Nothing in it is limited: the functions of `hookloom/channel` limit time and size. */
  readonly fetch: typeof fetch
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  readonly write: WriteReply
}

/** The keys that every section of a channel has. `timeoutMs`: the milliseconds in which the provider must answer one request. */
export type ChannelKeys = {
  readonly to?: string | undefined
  readonly timeoutMs: number
  readonly onUnknown: 'stop' | 'repeat'
}
/** The section of a channel, as its schema returns it. */
export type ChannelSettings<Schema extends z.ZodType> = z.output<Schema> & ChannelKeys

type ChannelFacts<Options> = {
  /** The id of the channel, and the name of its section in `channels`. A file of hooks/channels is named by its file. */
  readonly name?: string
  /** One sentence for editors and pages: what it posts to, by which credential, and the form of `to`. */
  readonly about?: string
  /** The page of the provider that documents the API. */
  readonly docs?: string
  /** The schema of the section, without `to`, `timeoutMs` and `onUnknown`. Default: any keys. */
  readonly options?: z.ZodType<Options>
  /** True: a message without `to` may have a recipient all the same, such as the issue of the event. Default: false. */
  readonly findsRecipient?: boolean
}

/** A channel in code. It runs in the main thread of the gateway, so an endless loop stops the gateway. */
export type SimpleChannelDefinition<Options = Readonly<Record<string, unknown>>> = ChannelFacts<Options> & {
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

/** A channel that writes its own markup, splits texts by its own measure, or keeps something between two messages. */
export type FullChannelDefinition<Options = unknown> = ChannelFacts<Options> & {
  readonly name: string
  readonly about: string
  /** Makes the channel of a section. It sends nothing yet. */
  create(options: Options & ChannelKeys, host: ChannelHost): ChannelParts
}

export type ChannelDefinition<Options = Readonly<Record<string, unknown>>> =
  | SimpleChannelDefinition<Options>
  | FullChannelDefinition<Options>

/** A loaded channel of an integrator. `broken`: its messages wait until the code is corrected. `options`: with the keys of the gateway. */
export type OwnChannel = OwnCode<ChannelDefinition<unknown>> & {
  /** `own:<name>` for a file of hooks/channels. */
  readonly id: string
}
