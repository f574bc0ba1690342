// GET /api/stream: what changes, as server-sent events. A client that reads slowly gets fewer and larger events, not a queue of them.
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DeliveryRecord } from '../../store/records.ts'
import type { StoreReader } from '../../store/store.ts'
import { toIsoTime } from '../../deliveries/records.ts'
import { toRowFields } from './rows.ts'
import type { Changes } from './changes.ts'
import type { SavedFilesStatus } from './parts.ts'
import type { RefusalFields, StatusFields } from '../../model/api-types.ts'

/** Changes of this time are one event. A page that draws more often than five times a second is not easier to read. */
const gatherMs = 200
/** Proxies and browsers close a silent connection. */
const silenceMs = 15_000
/** More changed deliveries than this at once are a `reset`: one page of the list is cheaper to read. */
const mostRows = 500
const mostRefusals = 100

type StreamParts = {
  readonly changes: Pick<Changes, 'latest' | 'since'>
  readonly store: Pick<StoreReader, 'delivery'>
  readonly status: () => StatusFields
  readonly refusals: { readonly count: () => number; newest(most: number): readonly RefusalFields[] }
}

/** Ids of events are `<start of the gateway>.<place>`: after a restart, places begin again. */
const run = randomBytes(4).toString('hex')

/**
 * The frames until `signal` ends. `lastId` is the `Last-Event-ID` of a client that reconnects: it gets what it missed, or `reset`
 * if that is no longer known. The first frame is always `status`.
 */
export async function* streamFrames(
  parts: StreamParts,
  { lastId, signal }: { lastId: string | undefined; signal: AbortSignal },
): AsyncGenerator<string> {
  const { changes, refusals } = parts
  const from = readPosition(lastId)
  let place = from ?? changes.latest()
  let refused = refusals.count()
  let sentStatus = JSON.stringify(parts.status())
  let quietSince = performance.now()
  yield toFrame('status', sentStatus, from === undefined ? place : undefined)
  if (lastId !== undefined && from === undefined) yield toFrame('reset', '{}', place)
  while (!signal.aborted) {
    const frames: string[] = []
    const latest = changes.latest()
    if (latest !== place) frames.push(await buildDeliveriesFrame(parts, place, latest))
    place = latest
    const count = refusals.count()
    if (count !== refused) {
      frames.push(toFrame('refusals', JSON.stringify(refusals.newest(Math.min(count - refused, mostRefusals)))))
    }
    refused = count
    const status = JSON.stringify(parts.status())
    if (status !== sentStatus) frames.push(toFrame('status', status))
    sentStatus = status
    if (frames.length === 0 && performance.now() - quietSince > silenceMs) frames.push(': nothing changed\n\n')
    if (frames.length > 0) {
      quietSince = performance.now()
      yield frames.join('')
    }
    await sleep(gatherMs, undefined, { signal, ref: false }).catch(() => undefined)
  }
}

/** Undefined for an id of another run of the gateway, or for none. */
function readPosition(lastId: string | undefined): number | undefined {
  const [, start, place] = /^([\da-f]{8})\.(\d{1,15})$/.exec(lastId ?? '') ?? []
  return start === run ? Number(place) : undefined
}

async function buildDeliveriesFrame({ changes, store }: StreamParts, place: number, latest: number): Promise<string> {
  const ids = changes.since(place)
  if (ids === undefined || ids.size > mostRows) return toFrame('reset', '{}', latest)
  const records = new Map<string, DeliveryRecord>()
  for (const id of ids) {
    if (records.has(id)) continue
    const record = await store.delivery(id)
    // a heartbeat has no delivery
    if (record !== undefined) records.set(record.deliveryId, record)
  }
  return toFrame('deliveries', JSON.stringify([...records.values()].map(toRowFields)), latest)
}

/** JSON has no line break, so one line of `data` is enough. */
function toFrame(event: string, data: string, place?: number): string {
  return `${place === undefined ? '' : `id: ${run}.${place}\n`}event: ${event}\ndata: ${data}\n\n`
}

export function toStatusFields({ generation, degraded, held, problems, lastReloadAt }: SavedFilesStatus): StatusFields {
  return {
    generation,
    degraded,
    held,
    problems: problems.length,
    lastReloadAt: lastReloadAt === 0 ? null : toIsoTime(lastReloadAt),
  }
}
