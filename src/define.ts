// The functions and types that transforms, presets, verifiers, channels and senders import. Nothing here has an effect.
import type { ChannelDefinition, FullChannelDefinition, SimpleChannelDefinition } from './model/channel.ts'
import type { JsonValue } from './base/json.ts'
import type { OutboxDefinition } from './model/outbox.ts'
import type { RunnerDefinition } from './model/runner.ts'
import { markPlugin } from './model/plugin.ts'
import type { Preset } from './model/preset.ts'
import { parsePayload, type PayloadSchema, schemaMark } from './core/model/refusal.ts'
import type { SenderDefinition } from './model/scheme.ts'
import type { SourceDefinition } from './model/source.ts'
import type { TransformFunction } from './core/model/transform.ts'
import type { VerifierDefinition } from './model/proof.ts'

export type {
  ChannelDefinition,
  ChannelHost,
  ChannelKeys,
  ChannelParts,
  ChannelSettings,
  CommitStatus,
  FullChannelDefinition,
  Outgoing,
  Probe,
  SendResult,
  SimpleChannelDefinition,
  TextFormat,
  WebhookEvent,
} from './model/channel.ts'
export type { ChannelName, ChannelNames } from './core/model/action.ts'
export type { JsonObject, JsonValue } from './base/json.ts'
export type { MappingInput } from './core/model/mapping.ts'
export type {
  ApiAnswer,
  ApiCall,
  HookState,
  Outbox,
  OutboxDefinition,
  OutboxHost,
  OutboxPage,
  SentAttempt,
  SentRequest,
} from './model/outbox.ts'
export type { Preset, PresetParts, PresetSetup } from './model/preset.ts'
export type {
  RunIO,
  Runner,
  RunnerAct,
  RunnerDefinition,
  RunnerHost,
  RunnerParts,
  RunnerState,
  RunRequest,
  RunResult,
  RunnerStateWrite,
  StoredValue,
} from './model/runner.ts'
export type { PayloadSchema } from './core/model/refusal.ts'
export type { Retries } from './model/scheme.ts'
export type { AnswerFacts, Fact, Mark, PayloadReader } from './core/model/sender.ts'
export type { SchemeRow, SenderDefinition } from './model/scheme.ts'
export type {
  ArrivedAnswer,
  ArrivedRequest,
  PassFailure,
  PassingParts,
  PushGate,
  SourceDefinition,
  SourceHost,
  SourceItem,
  SourceParts,
} from './model/source.ts'
export type { FileLimits, SourceFile } from './model/source-files.ts'
export type {
  AgentResult,
  ResponseResult,
  DedupeResult,
  DeliverResult,
  FlowRateResult,
  FlowResult,
  TransformContext,
  TransformFunction,
  TransformInput,
  TransformResult,
  WakeResult,
} from './core/model/transform.ts'
export type { StateOptions, TransformState } from './core/model/transform-state.ts'
export type {
  Handshake,
  HandshakeReply,
  HandshakeTools,
  PinRule,
  SenderCode,
  SenderContext,
  VerifierContext,
  VerifierDefinition,
} from './model/proof.ts'
export type { RequestHead, Verified, VerifyRequest } from './core/model/verifier.ts'
export type { VerifySettings } from './core/model/verify.ts'

/** A transform that checks its payload. */
export type CheckedTransform<Payload> = {
  /** A zod schema, or any object with a `safeParse` like zod's. An invalid payload gets 400; for zod, with the path of the fault. */
  payload: PayloadSchema<Payload>
  /** Called with the payload that the schema returns. */
  run: TransformFunction<Payload>
}

/**
 * Gives a transform its types: `defineTransform<PullRequestEvent>(({ payload }) => ({ message: … }))`. With a schema, also checks the
 * payload: `defineTransform({ payload: z.object({ … }), run: ({ payload }) => ({ message: … }) })`.
 */
export function defineTransform<Payload = JsonValue>(
  transform: TransformFunction<Payload> | CheckedTransform<Payload>,
): TransformFunction<Payload> {
  if (typeof transform === 'function') return transform
  const { payload: schema, run } = transform
  const checked: TransformFunction<Payload> = (input, context) =>
    run({ ...input, payload: parsePayload(schema, input.payload) }, context)
  return Object.defineProperty(checked, schemaMark, { value: schema })
}

/** Declares a preset: a pack of mappings. */
export function definePreset<Options>(preset: Preset<Options>): Preset<Options> {
  return preset
}

/** Declares a verifier in code, for a sender whose scheme neither the table of schemes nor `generic-hmac` can describe. */
export function defineVerifier(verifier: VerifierDefinition): VerifierDefinition {
  return verifier
}

/**
 * Declares a channel: where messages to people go. With `send`, the gateway splits a reply and writes its markup; with `create`, the code does,
 * and keeps what it needs between two messages.
 */
export function defineChannel<Options>(channel: FullChannelDefinition<Options>): FullChannelDefinition<Options>
export function defineChannel<Options = Readonly<Record<string, unknown>>>(
  channel: SimpleChannelDefinition<Options>,
): SimpleChannelDefinition<Options>
export function defineChannel<Options>(channel: ChannelDefinition<Options>): ChannelDefinition<Options> {
  return markPlugin(channel, 'channel')
}

/** Declares a sender: how it is recognised, where its requests have their event and delivery id, and how it proves them. */
export function defineSender(sender: SenderDefinition): SenderDefinition {
  return markPlugin(sender, 'sender')
}

/** Declares a kind of runner: what performs the turns of an agent. */
export function defineRunner<Options>(runner: RunnerDefinition<Options>): RunnerDefinition<Options> {
  return markPlugin(runner, 'runner')
}

/** Declares an outbox: what a sender remembers of its deliveries, behind its API. */
export function defineOutbox<Options>(outbox: OutboxDefinition<Options>): OutboxDefinition<Options> {
  return markPlugin(outbox, 'outbox')
}

/** Declares a source: what the gateway watches and fetches itself, such as a mailbox. */
export function defineSource<Options>(source: SourceDefinition<Options>): SourceDefinition<Options> {
  return markPlugin(source, 'source')
}
