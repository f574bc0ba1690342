// GET /api/stream: changed deliveries, refusals and the status, as server-sent events. A client that reads slowly gets fewer and larger events,
// not a queue.
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DeliveryRecord } from '../../../store/records.ts'
import type { StoreReader } from '../../../store/store.ts'
import { toIsoTime } from '../../deliveries/records.ts'
import { readRows } from './rows.ts'
import type { Changes } from '../../../store/changes.ts'
import type { ApiParts, SavedFilesStatus } from './parts.ts'
import type { StatusFields } from '../../../model/api/answers.ts'
import type { RefusalFields } from '../../../model/api/refusals.ts'

/** Changes within this time are one event. To draw the page more than five times a second does not make it easier to read. */
const gatherMs = 200
/** After this silence a comment is sent, because proxies and browsers close silent connections. */
const silenceMs = 15_000
/** More changed deliveries than this at once are sent as `reset`: one page of the list is cheaper to read. */
const maxRows = 500
const maxRefusals = 100

type StreamParts = Pick<ApiParts, 'generation' | 'clock' | 'others'> & {
  readonly changes: Pick<Changes, 'count' | 'since'>
  readonly store: Pick<StoreReader, 'delivery' | 'waits' | 'nodes'>
  readonly status: () => StatusFields
  readonly refusals: { readonly count: () => number; newest(max: number): readonly RefusalFields[] }
}

/** Ids of events are `<start of the gateway>.<changes>.<refusals>`: after a restart, both counts begin again. */
const run = randomBytes(4).toString('hex')

type StreamOptions = {
  readonly lastId: string | undefined
  readonly signal: AbortSignal
  /** Whether the token, or the key of the page, that opened the stream is still valid. */
  readonly isAllowed: () => boolean
}

/**
 * The frames until `signal` is aborted, or until the client is no longer allowed to read them. `lastId` is the `Last-Event-ID` of a client that
 * reconnects: it gets the events that it missed, or `reset` if they are no longer known. The first frame is always `status`.
 */
export async function* streamFrames(
  parts: StreamParts,
  { lastId, signal, isAllowed }: StreamOptions,
): AsyncGenerator<string> {
  const { changes, refusals, others } = parts
  const from = readPosition(lastId)
  const position = from ?? { place: changes.count(), refused: refusals.count() }
  // this reads the store, so the position comes first: a run that ends meanwhile is sent
  await others.watch(signal)
  let sentStatus = JSON.stringify(parts.status())
  let quietSince = performance.now()
  yield toFrame('status', sentStatus, position)
  if (lastId !== undefined && from === undefined) yield toFrame('reset', '{}', position)
  while (!signal.aborted && isAllowed()) {
    const frames: string[] = []
    const latest = changes.count()
    if (latest !== position.place) {
      const deliveries = await buildDeliveries(parts, position.place)
      position.place = latest
      frames.push(
        deliveries === undefined ? toFrame('reset', '{}', position) : toFrame('deliveries', deliveries, position),
      )
    }
    const count = refusals.count()
    if (count > position.refused) {
      const newest = refusals.newest(Math.min(count - position.refused, maxRefusals))
      position.refused = count
      frames.push(toFrame('refusals', JSON.stringify(newest), position))
    }
    const status = JSON.stringify(parts.status())
    if (status !== sentStatus) frames.push(toFrame('status', status))
    sentStatus = status
    if (frames.length === 0 && performance.now() - quietSince > silenceMs) frames.push(': nothing changed\n\n')
    // a token that was revoked during the reads must not get their result
    if (frames.length > 0 && isAllowed()) {
      quietSince = performance.now()
      yield frames.join('')
    }
    await sleep(gatherMs, undefined, { signal, ref: false }).catch(() => undefined)
  }
}

type Position = { place: number; refused: number }

/** The position in the stream; undefined without an id, or for an id of another run of the gateway. */
function readPosition(lastId: string | undefined): Position | undefined {
  const [, start, place, refused] = /^([\da-f]{8})\.(\d{1,15})\.(\d{1,15})$/.exec(lastId ?? '') ?? []
  return start === run ? { place: Number(place), refused: Number(refused) } : undefined
}

/** The changed deliveries as JSON; undefined if they are too many, or no longer known. */
async function buildDeliveries(parts: StreamParts, place: number): Promise<string | undefined> {
  const { changes, store } = parts
  const ids = changes.since(place)
  if (ids === undefined || ids.size > maxRows) return undefined
  const records = new Map<string, DeliveryRecord>()
  for (const id of ids) {
    if (records.has(id)) continue
    const record = await store.delivery(id)
    // a heartbeat has no delivery
    if (record !== undefined) records.set(record.deliveryId, record)
  }
  return JSON.stringify(await readRows([...records.values()], parts))
}

/** JSON has no line break, so one line of `data` is enough. */
function toFrame(event: string, data: string, position?: Position): string {
  const id = position === undefined ? '' : `id: ${run}.${position.place}.${position.refused}\n`
  return `${id}event: ${event}\ndata: ${data}\n\n`
}

/** The maximum number of files of a save that are named. A checkout of another branch saves hundreds. */
const maxSaved = 5

export function toStatusFields(status: SavedFilesStatus): StatusFields {
  const { generation, degraded, held, problems, lastReloadAt, lastSave } = status
  return {
    generation,
    degraded,
    held,
    problems: problems.length,
    lastReloadAt: lastReloadAt === 0 ? null : toIsoTime(lastReloadAt),
    lastSave: lastSave === undefined ? null : { files: lastSave.files.slice(0, maxSaved), at: toIsoTime(lastSave.at) },
  }
}
