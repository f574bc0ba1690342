// Everything that is known about the payloads of a hook: what the gateway has learnt, the kept requests that are older, the fixtures of its
// transforms and the bundled requests of its senders.
import { readPayload } from '../model/parse-body.ts'
import type { Generation } from '../pipeline/generation.ts'
import { toHookLabel } from '../pipeline/hook.ts'
import {
  createEventShape,
  type EventShape,
  learnPayload,
  type NamedShape,
  nameShapes,
  readRequests,
} from '../shapes/event-shape.ts'
import type { StoreReader } from '../store/store.ts'
import { buildDelivery } from '../deliveries/delivery.ts'
import { readShapes } from '../deliveries/shapes/stored.ts'
import type { Fixture } from './fixture-files.ts'
import { buildTypedHead, buildTypedRequest, listSamples } from './samples.ts'

/** The type of one request of a hook, in the form that a fixture has. */
export function toRequestType(
  generation: Generation,
  hook: string,
  request: Pick<Fixture['request'], 'headers' | 'query' | 'payload'>,
): NamedShape | undefined {
  const typed = buildTypedRequest(hook, request)
  const head = buildTypedHead(generation, generation.hook(hook), typed)
  const found = { hook: generation.hook(hook), id: '', receivedAt: 0 }
  const { source, event, body } = buildDelivery(head, Buffer.from(typed.body), found)
  const learnt = createEventShape({ hook, ...(source && { source }), ...(event && { event }) })
  learnPayload(learnt, readPayload(body), 0)
  return nameShapes([learnt])[0]
}

export type ShapeParts = {
  /** The config directory. */
  readonly dir: string
  readonly generation: Generation
  /** Undefined: there is no store yet. */
  readonly store: Pick<StoreReader, 'cursors' | 'kept' | 'request'> | undefined
  /** How many of the kept requests that came before the gateway learnt are read. Default: 1,000. */
  readonly maxKept?: number
}

/** The events of a hook with the names of their types. Requests that cannot be read any more are left out. */
export async function collectShapes(parts: ShapeParts, name: string): Promise<NamedShape[]> {
  const { generation, store, maxKept = 1_000 } = parts
  const hook = generation.hook(name)
  const learnt = store === undefined ? [] : await readShapes(store, toHookLabel(hook, name))
  const further = new Map<string, EventShape>()
  const add = (request: Parameters<typeof buildDelivery>[0], body: Uint8Array, receivedAt: number) => {
    try {
      const delivery = buildDelivery(request, body, { hook, id: '', receivedAt })
      const { source, event } = delivery
      const empty = createEventShape({ hook: name, ...(source && { source }), ...(event && { event }) })
      const stored = learnt.find((each) => each.source === empty.source && each.event === empty.event)
      // the gateway has learnt from this one
      if (receivedAt > 0 && stored !== undefined && receivedAt >= readRequests(stored).first) return
      const key = JSON.stringify([empty.source, empty.event])
      const target = further.get(key) ?? empty
      further.set(key, target)
      learnPayload(target, readPayload(delivery.body), receivedAt)
    } catch {
      // a fixture of another hook, or a body that the mappings do not accept any more
    }
  }
  for (const sample of await listSamples({ ...parts, store: store ?? { kept: async () => [] } }, name)) {
    if (sample.kind === 'kept') continue
    add(buildTypedHead(generation, hook, sample.request), Buffer.from(sample.request.body), 0)
  }
  for (const { deliveryId, receivedAt } of (await store?.kept({ hook: name, limit: maxKept })) ?? []) {
    const request = await store?.request(deliveryId)
    if (request !== undefined) add(request.head, request.body, receivedAt)
  }
  return nameShapes([...learnt.map((each) => ({ ...each, hook: name })), ...further.values()])
}
