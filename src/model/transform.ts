// What integrators' code is given and what it gives back.
import { z } from 'zod'
import { AgentPayload, WakePayload } from './action.ts'
import type { JsonValue } from '../base/json.ts'
import type { TransformRef } from './mapping.ts'
import type { BodySyntax } from './parse-body.ts'
import type { ProblemRecord } from './problem.ts'

/** What a transform sees of a delivery. Header names are lower-case; no credential is among them. */
export type TransformInput<Payload = JsonValue> = {
  payload: Payload
  headers: Readonly<Record<string, string>>
  query: Readonly<Record<string, string>>
  /** Path and query of the request. */
  url: string
  /** The hook's name. */
  path: string
  method: string
  source: string | undefined
  event: string | undefined
  /** Milliseconds since the epoch. */
  receivedAt: number
  deliveryId: string
}

export type TransformLog = (message: string) => void
export type TransformContext = { log: TransformLog }

const agentFields = AgentPayload.partial().shape

/** The fields that a transform may set; what it leaves out keeps the mapping's value. */
export const AgentResult = z.strictObject({
  ...agentFields,
  wakeMode: agentFields.wakeMode.unwrap().unwrap().optional(),
  deliver: agentFields.deliver.unwrap().unwrap().optional(),
  channel: agentFields.channel.unwrap().unwrap().optional(),
  kind: z.literal('agent').optional(),
})
export const WakeResult = z.strictObject({
  text: WakePayload.shape.text.optional(),
  mode: WakePayload.shape.mode.unwrap().optional(),
  kind: z.literal('wake').optional(),
})

type Loose<T> = { [K in keyof T]?: T[K] | undefined }
export type AgentResult = Loose<z.input<typeof AgentResult>>
export type WakeResult = Loose<z.input<typeof WakeResult>>
/** `null` skips the delivery; an array makes several actions; `{}` keeps the mapping's action. */
export type TransformResult = AgentResult | WakeResult | (AgentResult | WakeResult)[] | null

export type TransformFunction<Payload = JsonValue> = (
  input: TransformInput<Payload>,
  context: TransformContext,
) => TransformResult | Promise<TransformResult>

/** A delivery on its way to the code: the body goes as bytes and is parsed where the code runs. */
export type TransformCall = {
  readonly head: Omit<TransformInput, 'payload'>
  /** Never changed, never detached: a delivery that parks still needs it. */
  readonly body: Uint8Array
  readonly syntax: BodySyntax
}

/**
 * What running a transform came to. `returned` is unchecked: merge holds it against the schema. `refused` is the sender's
 * fault: a body that does not parse, or a payload that the transform's own schema does not take.
 */
export type TransformOutcome =
  | { kind: 'returned'; value: unknown; log: readonly string[] }
  | { kind: 'refused'; problem: ProblemRecord; log: readonly string[] }
  | { kind: 'failed'; problem: ProblemRecord; log: readonly string[] }

/** A loaded transform of one generation, or the stand-in of one that does not load: that one fails every delivery. */
export type Transform = {
  readonly module: string
  /** Hash of the code that runs; undefined when none could be loaded. */
  readonly hash: string | undefined
  readonly problem: ProblemRecord | undefined
  /** Never rejects. */
  run(call: TransformCall): Promise<TransformOutcome>
}

/** Two mappings with the same key share one loaded transform. */
export function toTransformKey(ref: TransformRef): string {
  return `${ref.module}#${ref.export ?? ''}`
}
