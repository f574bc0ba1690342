// The learnt shapes in the store: a cursor for each event, so that several gateways add to the same one.
import {
  type EventKey,
  type EventShape,
  mergeEventShape,
  parseEventShape,
  renderEventShape,
} from '../../shapes/event-shape.ts'
import { yieldToEventLoop } from '../../../base/serial.ts'
import { updateCursor } from '../../../store/cursors.ts'
import type { Store, StoreReader } from '../../../store/store.ts'

/** The maximum number of events, because the names of events and senders come from requests. */
export const maxEvents = 200

const cursorPrefix = 'shape/'

function toCursorName({ hook, source, event }: EventKey): string {
  return cursorPrefix + [hook, source, event].map(encodeURIComponent).join('/')
}

/** Reads the learnt shapes, of all hooks or of one, one at a time. Between two of them, the gateway serves requests. */
export async function* streamShapes(store: Pick<StoreReader, 'cursors'>, hook?: string): AsyncGenerator<EventShape> {
  const prefix = hook === undefined ? cursorPrefix : `${cursorPrefix}${encodeURIComponent(hook)}/`
  for (const { value } of await store.cursors(prefix)) {
    yield parseEventShape(value)
    // a shape with two thousand places takes some milliseconds: without this pause, two hundred of them would block every request
    await yieldToEventLoop()
  }
}

export async function readShapes(store: Pick<StoreReader, 'cursors'>, hook?: string): Promise<EventShape[]> {
  const shapes: EventShape[] = []
  for await (const shape of streamShapes(store, hook)) shapes.push(shape)
  return shapes
}

export async function readShape(store: Pick<StoreReader, 'cursor'>, key: EventKey): Promise<EventShape | undefined> {
  const value = await store.cursor(toCursorName(key))
  return value === undefined ? undefined : parseEventShape(value)
}

/** Merges a learnt shape into the stored one. Tries again if another gateway wrote in between. */
export async function mergeIntoStoredShape(
  store: Pick<Store, 'cursor' | 'appendAll'>,
  learnt: EventShape,
): Promise<void> {
  await updateCursor(store, toCursorName(learnt), (text) => {
    const after = text === undefined ? learnt : parseEventShape(text)
    if (after !== learnt) mergeEventShape(after, learnt)
    return renderEventShape(after)
  })
}
