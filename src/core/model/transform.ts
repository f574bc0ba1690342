// The input and the result of integrators' code.
import { z } from 'zod'
import { AgentPayload, type ChannelName, type Thinking, type WakeMode, WakePayload } from './action.ts'
import type { JsonValue } from '../../base/json.ts'
import { ReturnedFlow } from './flow.ts'
import type { TransformRef } from './mapping.ts'
import type { BodySyntax } from './syntax.ts'
import type { ProblemRecord } from './problem.ts'
import { SenderResponse } from './response.ts'
import type { StateWrite, TransformState } from './transform-state.ts'
import { duration } from './values.ts'

/** The fields of a delivery that a transform can read. Header names are lower-case, and no credential is among them. */
export type TransformInput<Payload = JsonValue> = {
  /** The body of the request, parsed. With a payload schema: the result of the schema. */
  payload: Payload
  /** The headers of the request, by lower-case name. Authorization, cookies and signatures are left out. */
  headers: Readonly<Record<string, string>>
  /** The query parameters of the URL. */
  query: Readonly<Record<string, string>>
  /** Path and query of the request, such as `/hooks/github?x=1`. */
  url: string
  /** The name of the hook, such as `github`. */
  path: string
  /** The method of the request, which is `POST`. */
  method: string
  /** The sender, such as `github`; undefined if it is not known. */
  source: string | undefined
  /** The type of the event as the sender calls it, such as `pull_request`; undefined if it is not known. */
  event: string | undefined
  /** When the request arrived, in milliseconds since the epoch. */
  receivedAt: number
  /** The id of the delivery. It stays the same when a parked delivery runs again. */
  deliveryId: string
}

type TransformLog = (message: string) => void
/** The second argument of a transform: its log and its memory, and whether the call serves a delivery. */
export type TransformContext = {
  /** Adds a line to the log of this delivery, which `hookloom show` prints: at most 100 lines of 500 characters. */
  log: TransformLog
  /**
   * False only while the call serves a delivery. Otherwise its result is shown or compared and then discarded: in fixtures, shadows, the page,
   * and `hookloom run`, `test`, `check`, `capture`, `replay` and `init --from`. Then skip calls that change anything outside.
   */
  replay: boolean
  /** The memory of this module: a small number of small values that it keeps from one delivery to the next. */
  state: TransformState
}

const agentFields = AgentPayload.partial().shape

const longestOnceMs = 30 * 86_400_000

/** Parses a dedupe key; `for` becomes milliseconds. */
const Dedupe = z.strictObject({
  key: z
    .string()
    .max(512)
    .refine((key) => key.trim() !== '', 'must not be blank'),
  for: duration.refine((ms) => ms > 0 && ms <= longestOnceMs, 'must be more than 0 and at most 30d'),
})

/** A dedupe key, and for how long no other action of the module may have it. `name`: the module with a hash of the key, as the store names it. */
export type OnceKey = { readonly name: string; readonly key: string; readonly forMs: number }

/** The fields that a transform may set. A missing field keeps the mapping's value. */
export const AgentResult = z.strictObject({
  ...agentFields,
  wakeMode: agentFields.wakeMode.unwrap().unwrap().optional(),
  deliver: agentFields.deliver.unwrap().unwrap().optional(),
  channel: agentFields.channel.unwrap().unwrap().optional(),
  kind: z.literal('agent').optional(),
  flow: ReturnedFlow.optional(),
  response: SenderResponse.optional(),
  dedupe: Dedupe.optional(),
})
export const DeliverResult = z.strictObject({
  message: agentFields.message,
  name: agentFields.name,
  channel: agentFields.channel.unwrap().unwrap().optional(),
  to: agentFields.to,
  kind: z.literal('deliver').optional(),
  response: SenderResponse.optional(),
  dedupe: Dedupe.optional(),
})
export const WakeResult = z.strictObject({
  text: WakePayload.shape.text.optional(),
  mode: WakePayload.shape.mode.unwrap().optional(),
  kind: z.literal('wake').optional(),
  response: SenderResponse.optional(),
  dedupe: Dedupe.optional(),
})

/** The answer to the sender, in place of the receipt. Nothing is escaped: escape each value that you take from the payload. */
export type ResponseResult = {
  /** From 200 to 299, but neither 204 nor 205. Default: 200. */
  status?: number | undefined
  /** `text/plain`, `text/xml`, `application/xml`, `application/json` or `application/<name>+json`. Default: `text/plain`. */
  contentType?: string | undefined
  /** At most 16,384 bytes of UTF-8. Default: empty. */
  body?: string | undefined
}

/** The key of an event, and for how long it is taken. A delivery whose key is taken is skipped, and its log names the delivery that has it. */
export type DedupeResult = {
  /** At most 512 characters, such as `issue:4711`. Another module may use the same key for something else. */
  key: string
  /**
   * How long the key is taken, such as `1h`, `10m` or `2d`, at most 30 days. A plain number is minutes. The time begins when the first delivery is
   * accepted.
   */
  for: string | number
}

/** Which turns run, and when. Times are texts such as `30s`, `10m` or `2h`; a plain number is minutes. */
export type FlowResult = {
  /** Turns with the same key belong together. Default: the session key. */
  key?: string | undefined
  /**
   * The effect of this action on older turns of its key. `queue`: its turn waits for them. `skip`: it makes no turn while one waits or runs.
   * `replace`: it ends them, even a running one. `gather`: one turn reads all waiting messages. Default: `queue`.
   */
  onNew?: 'queue' | 'skip' | 'replace' | 'gather' | undefined
  /** A quiet period before the turn. Each newer action of the key begins the period again, until `maxDelay`. */
  delay?: string | number | undefined
  /** The longest time that newer actions can delay a turn. Default: ten times `delay`. */
  maxDelay?: string | number | undefined
  /** The maximum number of turns of one key at the same time. Default: 1. */
  perKey?: number | undefined
  /** The maximum number of turns of the mapping at the same time. */
  total?: number | undefined
  /** Names of `limits` of the configuration that the turn needs, at most three. */
  limits?: string[] | undefined
  /** Head start before turns of other keys and mappings. `low` is -300 seconds, `normal` 0, `high` 600. Default: `normal`. */
  priority?: 'low' | 'normal' | 'high' | number | undefined
  /** A turn that has not started within this time never starts. */
  expires?: string | number | undefined
  /** The maximum number of waiting turns of a key. `onFull` decides about further turns. */
  maxQueued?: number | undefined
  /** `dropOldest`: the oldest turn that waits is dropped. `refuse`: the request gets 503. Default: `dropOldest`. */
  onFull?: 'dropOldest' | 'refuse' | undefined
  /** The maximum number of turns in a period. A turn beyond it is recorded as skipped. */
  rateLimit?: FlowRateResult | undefined
}

export type FlowRateResult = {
  /** The maximum number of turns that start in a period. */
  limit: number
  /** Length of the sliding window, such as `1h`. */
  period: string | number
  /** Turns with the same value count together. Default: all turns of the mapping. */
  key?: string | undefined
}

/** An agent turn. A field that is missing or undefined keeps the value of the mapping. */
export type AgentResult = {
  /** Needed only to turn a mapping with the action `wake` into an agent turn. */
  kind?: 'agent' | undefined
  /** The text for the agent. It reaches the agent inside the boundary for external content. */
  message?: string | undefined
  /** Name for people, which the summary of the run shows: `Hook <name>: …`. */
  name?: string | undefined
  /** Id of the agent that runs the turn. `hooks.allowedAgentIds` limits it. */
  agentId?: string | undefined
  /** Key of the session, such as `hook:pr:7`. It must begin with one of `hooks.allowedSessionKeyPrefixes`, if there are any. */
  sessionKey?: string | undefined
  /** When the agent reads the summary. `now`: at once. `next-heartbeat`: at the next regular heartbeat. */
  wakeMode?: WakeMode | undefined
  /** Whether the reply goes to a channel. */
  deliver?: boolean | undefined
  /** Channel of the reply. `last`: the channel of the last recipient of the main session, else `channels.default`. */
  channel?: ChannelName | undefined
  /** Recipient on the channel, such as a chat id. */
  to?: string | undefined
  /** Model of the run, as `<provider>/<model>` or an alias. `agents.defaults.models` limits it. */
  model?: string | undefined
  /** How much the model thinks before it answers. */
  thinking?: Thinking | undefined
  /** Time limit of the run, in seconds; at most a day. */
  timeoutSeconds?: number | undefined
  /** Which turns run, and when, in place of `flow` of the mapping. Its keys are texts, and not templates. */
  flow?: FlowResult | undefined
  /** The answer to the sender. It replaces `response` of the mapping. Only for a result that is the only action. */
  response?: ResponseResult | undefined
  /** Accepts the action only if no delivery of this module was accepted with this key in this time. Only for a result that is the only action. */
  dedupe?: DedupeResult | undefined
}

/** A system event in the main session of the default agent. A missing field keeps the value of the mapping. */
export type WakeResult = {
  /** Needed only to turn a mapping with the action `agent` into an event. */
  kind?: 'wake' | undefined
  /** The text of the event. */
  text?: string | undefined
  /** When the agent reads the event. `now`: at once. `next-heartbeat`: at the next regular heartbeat. */
  mode?: WakeMode | undefined
  /** The answer to the sender. It replaces `response` of the mapping. Only for a result that is the only action. */
  response?: ResponseResult | undefined
  /** Accepts the action only if no delivery of this module was accepted with this key in this time. Only for a result that is the only action. */
  dedupe?: DedupeResult | undefined
}

/**
 * A message to a channel, without an agent. A field that is missing or undefined keeps the value of the mapping. In a mapping with the action
 * `deliver`, `kind` is not needed.
 */
export type DeliverResult = {
  /** Marks the result as a message. */
  kind: 'deliver'
  /** The text, in Markdown. People read it unchanged. */
  message?: string | undefined
  /** Name for people. The channel `webhook` sends it with the message. */
  name?: string | undefined
  /** `last`: the channel of the last recipient of the main session, else `channels.default`. */
  channel?: ChannelName | undefined
  /** Recipient on the channel, such as a chat id. For several recipients, return an array with a result for each. */
  to?: string | undefined
  /** The answer to the sender. It replaces `response` of the mapping. Only for a result that is the only action. */
  response?: ResponseResult | undefined
  /** Accepts the action only if no delivery of this module was accepted with this key in this time. Only for a result that is the only action. */
  dedupe?: DedupeResult | undefined
}
/** `null` skips the delivery; an array makes several actions; `{}` keeps the mapping's action. */
export type TransformResult = OneResult | OneResult[] | null
/** A field of another kind is an error, because every field of a wake is optional. */
type OneResult =
  | (WakeResult & Without<Exclude<keyof AgentResult | keyof DeliverResult, keyof WakeResult>>)
  | (DeliverResult & Without<Exclude<keyof AgentResult | keyof WakeResult, keyof DeliverResult>>)
  // the last one: of several that fit equally badly, TypeScript explains the last, and this is the usual one
  | (AgentResult & Without<Exclude<keyof WakeResult, keyof AgentResult>>)
type Without<Keys extends PropertyKey> = { [Key in Keys]?: never }

export type TransformFunction<Payload = JsonValue> = (
  input: TransformInput<Payload>,
  context: TransformContext,
) => TransformResult | Promise<TransformResult>

/** A delivery as it is passed to the code: the body stays bytes, and is parsed where the code runs. */
export type TransformCall = {
  readonly head: Omit<TransformInput, 'payload'>
  /** The body. It must not be changed or detached, because a parked delivery still needs it. */
  readonly body: Uint8Array
  readonly syntax: BodySyntax
  /** True if the result becomes actions. Otherwise the call has no effects. */
  readonly serves?: true | undefined
  /** The JSON of a value of the module; undefined if there is none. Absent: the memory is empty. */
  readonly readState?: ((key: string) => Promise<string | undefined>) | undefined
}

/**
 * The outcome of a transform. `returned`: the value is not checked yet; `mergeResult` checks it. `refused`: an error of the sender, which is a body
 * that does not parse, or a payload that the schema of the transform refuses. `failed`: an error of the code or of its thread, such as an exception.
 */
export type TransformOutcome =
  | { kind: 'returned'; value: unknown; log: readonly string[]; state?: readonly StateWrite[] }
  | { kind: 'refused'; problem: ProblemRecord; log: readonly string[] }
  | { kind: 'failed'; problem: ProblemRecord; log: readonly string[] }

/** A loaded transform of one generation, or a placeholder for one that does not load: its calls always fail. `reads`: the fields that its schema names. */
export type Transform = {
  readonly module: string
  /** Hash of the running code; undefined if none could be loaded. */
  readonly hash: string | undefined
  readonly problem: ProblemRecord | undefined
  readonly reads?: readonly (readonly string[])[]
  /** Never rejects. */
  run(call: TransformCall): Promise<TransformOutcome>
}

/** Two mappings with the same key share one loaded transform. */
export function toTransformKey(ref: TransformRef): string {
  return `${ref.module}#${ref.export ?? ''}`
}
