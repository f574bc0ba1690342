// Counts and logs each repetition of a delivery immediately, and writes it to the store after the answer, so that no sender waits for the write. A
// crash loses the repetitions that are not written yet: usually those of the last second.
import type { Delivery } from '../../core/model/delivery.ts'
import type { Log } from '../../base/log.ts'
import type { Meter } from '../../model/meter.ts'
import { type Hook, toHookLabel } from '../../core/mapping/hook.ts'
import type { DeliveryAnswer, Repetition } from '../../store/records.ts'
import type { Clock, Store } from '../../store/store.ts'
import { toBodyHash } from './duplicates.ts'

/** Repetitions within this time are written together. */
const writeAfterMs = 1_000
const maxAtOnce = 1_000
/** The maximum number of deliveries whose repetitions wait for the store. Repetitions of further deliveries are only counted and logged. */
const maxWaiting = 10_000

/** A request that repeats the delivery `deliveryId`. `label`: the label of its hook in the metrics. */
type RepeatedDelivery = Pick<Repetition, 'deliveryId' | 'bodyDiffered'> & {
  readonly method: string
  readonly hook: string
  readonly label: string
}

export function toRepeatedDelivery(delivery: Delivery, hook: Hook, first: DeliveryAnswer): RepeatedDelivery {
  const { method, path } = delivery
  const bodyDiffered = first.bodyHash !== toBodyHash(delivery)
  return { deliveryId: first.deliveryId, bodyDiffered, method, hook: path, label: toHookLabel(hook, path) }
}

export type Repeats = {
  note(repeated: RepeatedDelivery): void
  /** Writes the waiting repetitions. */
  stop(): Promise<void>
}

export function createRepeats(parts: {
  readonly store: Pick<Store, 'noteRepeats'>
  readonly clock: Clock
  readonly meter: Meter
  readonly log: Log
}): Repeats {
  const { store, clock, meter, log } = parts
  const waiting = new Map<string, Repetition>()
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> = Promise.resolve()

  function add(added: Repetition): void {
    const { deliveryId, times, lastAt, bodyDiffered } = added
    const known = waiting.get(deliveryId)
    if (known === undefined && waiting.size >= maxWaiting) return
    waiting.set(deliveryId, {
      deliveryId,
      times: times + (known?.times ?? 0),
      lastAt: Math.max(lastAt, known?.lastAt ?? 0),
      bodyDiffered: bodyDiffered || known?.bodyDiffered === true,
    })
  }

  function schedule(): void {
    timer ??= setTimeout(() => {
      timer = undefined
      writing = writing.then(write)
    }, writeAfterMs).unref()
  }

  /** Repetitions that cannot be written wait for the next write. */
  async function write(): Promise<void> {
    const taken = [...waiting.values()].slice(0, maxAtOnce)
    if (taken.length === 0) return
    for (const { deliveryId } of taken) waiting.delete(deliveryId)
    try {
      await store.noteRepeats(taken)
    } catch (error) {
      for (const each of taken) add(each)
      log.debug({ err: error }, 'repetitions could not be written; they are written later')
    }
    if (waiting.size > 0) schedule()
  }

  return {
    note({ deliveryId, bodyDiffered, method, hook, label }) {
      meter('deliveries', { outcome: 'duplicate', hook: label })
      const text = `${method} ${hook} → repeats ${deliveryId}`
      log.info(
        { deliveryId, repeated: { method, hook, bodyDiffered } },
        bodyDiffered ? `${text}, with another body` : text,
      )
      add({ deliveryId, times: 1, lastAt: clock(), bodyDiffered })
      schedule()
    },
    async stop() {
      clearTimeout(timer)
      await writing
      clearTimeout(timer)
      for (let left = waiting.size; left > 0; left -= maxAtOnce) await write()
      clearTimeout(timer)
    },
  }
}
