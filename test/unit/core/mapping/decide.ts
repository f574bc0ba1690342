// Builds a generation or a delivery in one line, for tests of the pure part of the pipe.
import { toJsonBody } from '../../../../src/core/model/body.ts'
import { ConfigSchema } from '../../../../src/gateway/config/keys.ts'
import type { Delivery } from '../../../../src/core/model/delivery.ts'
import type { JsonValue } from '../../../../src/base/json.ts'
import { Mapping, type MappingInput } from '../../../../src/core/model/mapping.ts'
import { type Transform, type TransformInput, toTransformKey } from '../../../../src/core/model/transform.ts'
import type { Generation } from '../../../../src/gateway/generation/generation.ts'
import { createGeneration } from '../../../../src/gateway/generation/generation.ts'
import { decide } from '../../../../src/core/mapping/pipeline.ts'
import { builtInSenders } from '../../../../src/gateway/built-in.ts'

const { recognise: recogniseSender } = builtInSenders

export function toGeneration(
  mappings: readonly MappingInput[],
  options: { config?: object; hooks?: object; transforms?: Record<string, (input: TransformInput) => unknown> } = {},
): Generation {
  const config = ConfigSchema.parse({
    ...options.config,
    hooks: { enabled: true, token: 'hook-secret', ...options.hooks },
  })
  const named = mappings.map((mapping, index) => {
    const parsed = Mapping.parse(mapping)
    return { ...parsed, id: parsed.id ?? `mapping-${index + 1}` }
  })
  const transforms = new Map<string, Transform>()
  for (const [module, run] of Object.entries(options.transforms ?? {})) {
    transforms.set(toTransformKey({ module }), {
      module,
      hash: `hash of ${module}`,
      problem: undefined,
      run: async ({ head, body }) => {
        const payload: JsonValue = JSON.parse(Buffer.from(body).toString())
        return { kind: 'returned', value: await run({ ...head, payload }), log: [] }
      },
    })
  }
  return createGeneration({ senders: builtInSenders, config, mappings: named, transforms })
}

export function toTestDelivery(
  path: string,
  payload: JsonValue,
  given: { headers?: Record<string, string>; source?: string; event?: string } = {},
): Delivery {
  return {
    id: 'delivery-1',
    receivedAt: Date.UTC(2026, 0, 2, 3, 4, 5),
    method: 'POST',
    url: `/hooks/${path}`,
    path,
    headers: given.headers ?? {},
    query: {},
    body: toJsonBody(payload),
    source: given.source,
    sender: recogniseSender({ headers: given.headers ?? {}, namedSource: given.source }),
    event: given.event,
    verifiedBy: undefined,
    admitted: { token: true, signedFor: [] },
  }
}

let ids = 0
export const toTestId = () => `id-${++ids}`

export function decideOn(generation: Generation, delivery: Delivery) {
  return decide(delivery, { hook: generation.findHook(delivery.path), newId: toTestId })
}
