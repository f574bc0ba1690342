// The learnt shape of each event's payloads, the changes in them, and a kept request that shows each change.
import { yieldToEventLoop } from '../../base/serial.ts'
import { buildDelivery } from '../../core/mapping/delivery.ts'
import { toIsoTime } from '../deliveries/records.ts'
import { streamShapes } from '../deliveries/shapes/stored.ts'
import type { ShapeFields } from '../../model/api/shapes.ts'
import { readPayload } from '../../core/model/body.ts'
import type { Generation } from '../generation/generation.ts'
import { toHookLabel } from '../../core/mapping/hook.ts'
import { listShapeChanges, type ShapeChange } from '../shapes/changes.ts'
import { createEventShape, type EventKey, type EventShape, learnPayload, readRequests } from '../shapes/event-shape.ts'
import { listPlaces } from '../shapes/places.ts'
import type { Kind } from '../shapes/shape.ts'
import type { KeptDelivery } from '../../store/records.ts'
import type { StoreReader } from '../../store/store.ts'
import { streamKeptPages } from './kept.ts'

/** The number of newest kept requests that are searched for examples. */
const maxRead = 200
const maxReadBytes = 16_000_000

type RowParts = {
  /** Undefined if the configuration is invalid: then no request can be read, and there are no examples. */
  readonly generation: Generation | undefined
  readonly store: Pick<StoreReader, 'cursors' | 'keptDeliveries'>
}

/** `hook`: undefined for all hooks. `since`: milliseconds since the epoch; undefined for all changes. */
type RowQuery = { readonly hook: string | undefined; readonly since: number | undefined }

/** Yields one row at a time. Between two rows, requests are served. */
export async function* streamShapeRows(parts: RowParts, { hook, since }: RowQuery): AsyncGenerator<ShapeFields> {
  let examples: readonly Example[] | undefined
  for await (const each of streamShapes(parts.store, hook)) {
    examples ??= await readExamples(parts, hook)
    const own = examples.filter(({ key }) => key === toKey(each))
    const { count, first, last } = readRequests(each)
    const changes = listShapeChanges(each.shape, since ?? first + 1)
    yield {
      hook: each.hook,
      source: each.source || null,
      event: each.event || null,
      requests: count,
      firstAt: toIsoTime(first),
      lastAt: toIsoTime(last),
      example: own[0]?.deliveryId ?? null,
      fields: listPlaces(each.shape),
      changes: changes.map((change) => ({
        at: toIsoTime(change.at),
        what: change.what,
        path: change.path,
        text: change.text,
        example: own.find(({ places }) => isShownBy(change, places))?.deliveryId ?? null,
      })),
    }
  }
}

type Example = {
  readonly deliveryId: string
  readonly key: string
  readonly places: ReadonlyMap<string, readonly Kind[]>
}

/** Reads the examples from the kept requests, the newest first. */
async function readExamples({ generation, store }: RowParts, hook: string | undefined): Promise<Example[]> {
  const examples: Example[] = []
  if (generation === undefined) return examples
  const among = hook === undefined || hook === '*' ? {} : { hook }
  let bytes = 0
  for await (const page of streamKeptPages(store, { ...among, limit: maxRead })) {
    for (const kept of page) {
      await yieldToEventLoop()
      bytes += kept.request?.body.byteLength ?? 0
      examples.push(...readExample(generation, kept))
    }
    if (bytes >= maxReadBytes) break
  }
  return examples
}

function readExample(generation: Generation, { deliveryId, receivedAt, request }: KeptDelivery): Example[] {
  if (request === undefined) return []
  try {
    const { head, body } = request
    const hook = generation.findHook(head.path)
    const delivery = buildDelivery(head, body, { hook, id: deliveryId, receivedAt })
    const { source, event } = delivery
    const label = toHookLabel(hook, head.path)
    const learnt = createEventShape({ hook: label, ...(source && { source }), ...(event && { event }) })
    learnPayload(learnt, readPayload(delivery.body), receivedAt)
    const places = new Map(listPlaces(learnt.shape).map(({ path, kinds }) => [path, kinds]))
    return [{ deliveryId, key: toKey(learnt), places }]
  } catch {
    // the mappings no longer accept the body
    return []
  }
}

function isShownBy({ what, path, kind }: ShapeChange, places: Example['places']): boolean {
  const kinds = places.get(path)
  if (what === 'gone') return kinds === undefined
  return kinds !== undefined && (kind === undefined || kinds.includes(kind))
}

function toKey({ hook, source, event }: EventKey | EventShape): string {
  return JSON.stringify([hook, source, event])
}
