// Collects all that is known about the payloads of a hook: the learnt shapes, the kept requests that are older than these, the fixtures of its
// transforms and the bundled requests of its senders.
import { readPayload } from '../../core/model/body.ts'
import type { Generation } from '../generation/generation.ts'
import { toHookLabel } from '../../core/mapping/hook.ts'
import { yieldToEventLoop } from '../../base/serial.ts'
import {
  addNamedShape,
  createEventShape,
  type EventKey,
  type EventShape,
  learnPayload,
  mergeEventShape,
  type NamedShape,
  nameShapes,
  readRequests,
  sortNamedShapes,
} from '../shapes/event-shape.ts'
import type { StoreReader } from '../../store/store.ts'
import { buildDelivery } from '../../core/mapping/delivery.ts'
import { readShape, streamShapes } from '../deliveries/shapes/stored.ts'
import type { Fixture } from './fixture-files.ts'
import { streamKeptPages } from './kept.ts'
import { buildTypedHead, buildTypedRequest, listTypedSamples } from './samples.ts'

/**
 * The shape of one request of a hook, with the name of its type. The request has the form of a fixture. Throws a Problem if the hook does not
 * accept it.
 */
export function buildRequestShape(
  generation: Generation,
  hook: string,
  request: Pick<Fixture['request'], 'headers' | 'query' | 'payload'>,
): NamedShape | undefined {
  const typed = buildTypedRequest(hook, request)
  const head = buildTypedHead(generation, generation.findHook(hook), typed)
  const found = { hook: generation.findHook(hook), id: '', receivedAt: 0 }
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
  readonly store: Pick<StoreReader, 'cursor' | 'cursors' | 'keptDeliveries'> | undefined
  /** The maximum number of kept requests to read. Those that the gateway has learnt are skipped. Default: 1,000. */
  readonly maxKept?: number
}

/** The events of a hook with the names of their types. Requests that can no longer be read are left out. */
export async function collectShapes(parts: ShapeParts, name: string): Promise<NamedShape[]> {
  const named = new Map<string, NamedShape>()
  for await (const shape of streamHookShapes(parts, name)) addNamedShape(named, shape)
  return sortNamedShapes(named)
}

/** The shapes of the events of a hook, one at a time. Between two learnt ones, requests are served. */
export async function* streamHookShapes(parts: ShapeParts, name: string): AsyncGenerator<EventShape> {
  const { generation, store } = parts
  const others = await collectUnlearntShapes(parts, name)
  // so that several callers do not read the store in the same turn of the event loop
  await yieldToEventLoop()
  const learnt = store === undefined ? [] : streamShapes(store, toHookLabel(generation.findHook(name), name))
  for await (const each of learnt) {
    const more = others.get(toKey(each))
    others.delete(toKey(each))
    if (more !== undefined) mergeEventShape(each, more)
    yield { ...each, hook: name }
  }
  yield* others.values()
}

/** The shapes, by event, of the fixtures, of the bundled requests, and of the kept requests that came before the gateway learnt. */
async function collectUnlearntShapes(parts: ShapeParts, name: string): Promise<Map<string, EventShape>> {
  const { generation, store, maxKept = 1_000 } = parts
  const hook = generation.findHook(name)
  const others = new Map<string, EventShape>()
  /** When the gateway began to learn an event. */
  const learntFrom = new Map<string, number>()

  async function isLearnt(key: EventKey, receivedAt: number): Promise<boolean> {
    if (store === undefined || receivedAt === 0) return false
    const known = learntFrom.get(toKey(key))
    if (known !== undefined) return receivedAt >= known
    const stored = await readShape(store, { ...key, hook: toHookLabel(hook, name) })
    const from = stored === undefined ? Infinity : readRequests(stored).first
    learntFrom.set(toKey(key), from)
    return receivedAt >= from
  }

  async function add(request: Parameters<typeof buildDelivery>[0], body: Uint8Array, receivedAt: number) {
    await yieldToEventLoop()
    try {
      const delivery = buildDelivery(request, body, { hook, id: '', receivedAt })
      const { source, event } = delivery
      const empty = createEventShape({ hook: name, ...(source && { source }), ...(event && { event }) })
      if (await isLearnt(empty, receivedAt)) return
      const target = others.get(toKey(empty)) ?? empty
      others.set(toKey(empty), target)
      learnPayload(target, readPayload(delivery.body), receivedAt)
    } catch {
      // the fixture is for another hook, or the mappings no longer accept its body
    }
  }

  for (const { request } of await listTypedSamples(parts, name))
    await add(buildTypedHead(generation, hook, request), Buffer.from(request.body), 0)
  if (store === undefined) return others
  for await (const page of streamKeptPages(store, { hook: name, limit: maxKept })) {
    for (const { receivedAt, request } of page) {
      if (request !== undefined) await add(request.head, request.body, receivedAt)
    }
  }
  return others
}

function toKey({ source, event }: Pick<EventKey, 'source' | 'event'>): string {
  return JSON.stringify([source, event])
}
