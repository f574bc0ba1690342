// Learns the shapes of payloads from the requests that were stored. Payloads are read in later turns of the event loop, for a bounded share of
// the time. Under load, the gateway learns only from some requests of each event.
import perfHooks from 'node:perf_hooks'
import { toErrorName } from '../../../base/exceptions.ts'
import type { Delivery } from '../../../core/model/delivery.ts'
import type { Log } from '../../../base/log.ts'
import { parseBody } from '../../../core/model/body.ts'
import { type Hook, toHookLabel } from '../../../core/mapping/hook.ts'
import { createEventShape, type EventShape, learnPayload, mergeEventShape } from '../../shapes/event-shape.ts'
import type { Store } from '../../../store/store.ts'
import { type Allowance, createAllowance } from './allowance.ts'
import { createDriftWatch, type DriftParts } from './drift.ts'
import { mergeIntoStoredShape, maxEvents, readShapes } from './stored.ts'

/** After work, learning pauses for this many times as long as the work took, so that it delays few answers. */
const pauseFactor = 9
/** The pause before the gateway checks again whether there is time to learn. */
const recheckMs = 200
const maxWaiting = 32
/**
 * From `maxWaiting` waiting requests on, only an event without a waiting request may add one, until this many events wait. So a frequent event
 * does not crowd out a rare one.
 */
const maxWaitingEvents = 200
const maxWaitingBytes = 4_000_000
const maxBodyBytes = 1_000_000
const writeAfterMs = 15_000
/** The time before the first write of an event that this process has not seen yet. */
const firstWriteAfterMs = 1_000
const developmentWriteAfterMs = 50

export type ShapeLearner = {
  /** Notes a delivery that was stored. */
  note(delivery: Delivery, hook: Hook): void
  /** Learns from the noted deliveries now, and writes the learnt shapes. Never rejects. */
  flush(): Promise<void>
  stop(): Promise<void>
}

type LearnerParts = {
  readonly store: Pick<Store, 'cursor' | 'cursors' | 'appendAll'>
  /** `hookloom dev`: learnt shapes are written almost at once. */
  readonly development: boolean
  /** Reports changes of the payloads to the operator. Default: they are not reported. */
  readonly watched?: Omit<DriftParts, 'log'> | undefined
  /** Default: a share of the time for which the event loop is busy. In development, learning has no limit of time. */
  readonly allowance?: Allowance | undefined
  /** Called after a write. */
  readonly onShapeWritten?: ((hook: string) => void) | undefined
  readonly log: Log
}

type Waiting = Pick<Delivery, 'id' | 'receivedAt' | 'source' | 'event'> &
  Pick<Delivery['body'], 'bytes' | 'syntax'> & { readonly hook: string; readonly name: string }

export function createShapeLearner({
  store,
  development,
  watched,
  allowance = createAllowance({ clock: () => performance.now(), busy: readBusyMs }),
  onShapeWritten,
  log,
}: LearnerParts): ShapeLearner {
  const drift = watched && createDriftWatch({ ...watched, log })
  const waiting: Waiting[] = []
  let waitingBytes = 0
  /** The names of the events with a waiting request. An event with several is removed when the gateway learns from the first of them. */
  const waitingEvents = new Set<string>()
  /** The shapes that were learnt since the last write. */
  const learnt = new Map<string, EventShape>()
  /** The events of the store and of this process; undefined until the store was read. */
  let known: Set<string> | undefined
  let isFull = false
  let learnTimer: NodeJS.Timeout | undefined
  /** Whether the time ran out before the gateway could learn from a request. */
  let isOutOfTime = false
  /** When the pause after the last payload ends, in milliseconds of `performance.now()`. It applies even if nothing waits in between. */
  let pauseEndsAt = 0
  let writeTimer: NodeJS.Timeout | undefined
  let writing: Promise<void> = Promise.resolve()

  function scheduleLearning(): void {
    if (learnTimer !== undefined) return
    const pauseMs = Math.max(0, Math.ceil(pauseEndsAt - performance.now()))
    learnTimer = setTimeout(() => void learnInTime(), isOutOfTime ? recheckMs : pauseMs).unref()
  }

  async function learnInTime(): Promise<void> {
    await readKnown()
    learnTimer = undefined
    isOutOfTime = !development && !allowance.hasTime()
    if (!isOutOfTime) {
      const started = performance.now()
      allowance.spend(learnNext)
      const ended = performance.now()
      pauseEndsAt = ended + pauseFactor * (ended - started)
    }
    if (waiting.length > 0) scheduleLearning()
  }

  /** Reads the stored shapes. If the read fails, it is repeated before the next payload or write. */
  async function readKnown(): Promise<void> {
    if (known !== undefined) return
    try {
      const shapes = await readShapes(store)
      if (known !== undefined) return
      known = new Set(shapes.map(toKey))
      drift?.begin(shapes)
    } catch (thrown) {
      log.debug({ thrown: toErrorName(thrown) }, 'the shapes of payloads could not be read')
    }
  }

  function scheduleWrite(key: string): void {
    // an event beyond the limit is not written
    const isNew = known === undefined || (!known.has(key) && known.size < maxEvents)
    const ms = isNew ? firstWriteAfterMs : writeAfterMs
    writeTimer ??= setTimeout(() => void write(), development ? developmentWriteAfterMs : ms).unref()
  }

  function learnNext(): void {
    const next = waiting.shift()
    if (next === undefined) return
    const { hook, source, event, name } = next
    waitingBytes -= next.bytes.byteLength
    waitingEvents.delete(name)
    const empty = createEventShape({ hook, ...(source && { source }), ...(event && { event }) })
    const key = toKey(empty)
    const target = learnt.get(key) ?? empty
    learnt.set(key, target)
    try {
      const payload = parseBody(next.bytes, next.syntax)
      learnPayload(target, payload, next.receivedAt)
      drift?.look(target, payload, next.id)
    } catch (error) {
      log.debug({ thrown: toErrorName(error) }, 'a payload could not be read for its shape')
    }
    scheduleWrite(key)
  }

  function write(): Promise<void> {
    clearTimeout(writeTimer)
    writeTimer = undefined
    writing = writing.then(writeAll).catch((thrown: unknown) => {
      log.debug({ thrown: toErrorName(thrown) }, 'the shapes of payloads could not be written; they are written later')
    })
    return writing
  }

  async function writeAll(): Promise<void> {
    await readKnown()
    if (known === undefined) throw new Error('the shapes of payloads could not be read')
    // a copy: under load, shapes that are learnt during a write would keep the loop from ending
    for (const [key, shape] of Array.from(learnt)) {
      learnt.delete(key)
      if (!known.has(key) && known.size >= maxEvents) {
        if (!isFull)
          log.warn({}, `requests of more than ${maxEvents} events came: the shapes of further events are not learnt`)
        isFull = true
        continue
      }
      try {
        await mergeIntoStoredShape(store, shape)
        known.add(key)
        onShapeWritten?.(shape.hook)
      } catch (error) {
        const later = learnt.get(key)
        if (later !== undefined) mergeEventShape(shape, later)
        learnt.set(key, shape)
        scheduleWrite(key)
        throw error
      }
    }
  }

  async function flush(): Promise<void> {
    await readKnown()
    while (waiting.length > 0) learnNext()
    await write()
  }

  return {
    note({ id, path, source, event, receivedAt, body: { bytes, syntax } }, hook) {
      const { byteLength } = bytes
      if (hook.kind !== 'mapped' || byteLength === 0 || byteLength > maxBodyBytes) return
      if (waitingBytes + byteLength > maxWaitingBytes) return
      // names an event well enough to compare waiting requests; `learnNext` makes the exact key
      const name = `${path} ${source} ${event}`
      const isCrowded = waiting.length >= maxWaiting || isOutOfTime
      if (isCrowded && (waitingEvents.has(name) || waitingEvents.size >= maxWaitingEvents)) return
      waiting.push({ id, bytes, syntax, receivedAt, source, event, hook: toHookLabel(hook, path), name })
      waitingEvents.add(name)
      waitingBytes += byteLength
      scheduleLearning()
    },
    flush,
    async stop() {
      clearTimeout(learnTimer)
      await flush()
      clearTimeout(writeTimer)
    },
  }
}

function readBusyMs(): number {
  return perfHooks.performance.eventLoopUtilization().active
}

function toKey({ hook, source, event }: EventShape): string {
  return JSON.stringify([hook, source, event])
}
