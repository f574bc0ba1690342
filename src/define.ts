// The authors' door: what transforms and presets import. Nothing here has an effect.
import type { JsonValue } from './model/json.ts'
import type { Preset } from './model/preset.ts'
import type { TransformFunction } from './model/transform.ts'

export type { JsonObject, JsonValue } from './model/json.ts'
export type { MappingInput } from './model/mapping.ts'
export type { Preset, PresetParts } from './model/preset.ts'
export type {
  AgentResult,
  TransformContext,
  TransformFunction,
  TransformInput,
  TransformResult,
  WakeResult,
} from './model/transform.ts'

/** Gives a transform its types: `defineTransform<PullRequestEvent>(({ payload }) => ({ message: … }))`. */
export function defineTransform<Payload = JsonValue>(
  transform: TransformFunction<Payload>,
): TransformFunction<Payload> {
  return transform
}

/** Declares a mapping pack. */
export function definePreset<Options>(preset: Preset<Options>): Preset<Options> {
  return preset
}
