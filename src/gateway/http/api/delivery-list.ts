// GET /api/deliveries: the newest deliveries that match some filters. A search visits the store in short steps, so that it delays no
// other request, and ends after a while: its answer says how far back it looked.
import { clockMs, type DeliveriesQuery } from '../../../store/queries.ts'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { toIsoTime } from '../../deliveries/records.ts'
import { Problem } from '../../../core/model/problem.ts'
import type { DeliveryRecord } from '../../../store/records.ts'
import type { Store } from '../../../store/store.ts'
import type { CallRequest } from './handlers.ts'
import { addHits } from './hits.ts'
import { readLimit, readMoment, readParameter, readStateParameter } from './query.ts'
import { readRows, type RowParts } from './rows.ts'
import type { DeliveryPage } from '../../../model/api/answers.ts'

/** The number of rows that a step reads from the catalog, or by time. Such a step takes some milliseconds. */
const catalogRows = 25_000
const timedRows = 10_000
/** The number of rows that a step reads with their texts. It is adapted to the duration of the previous step. */
const textRows = { first: 20, min: 5, max: 800 }
const shortStepMs = 4
const longStepMs = 12
/** A search ends after this time, and the client asks for the rest. */
const maxSearchMs = 60

type ListParts = RowParts & { readonly store: Store }

export async function listDeliveries(
  parts: ListParts,
  { query: given }: Pick<CallRequest<'GET /api/deliveries'>, 'query'>,
): Promise<DeliveryPage> {
  const { store } = parts
  const limit = readLimit(given)
  const state = readStateParameter(given)
  const before = readParameter(given, 'before')
  const filters = {
    hook: readParameter(given, 'hook'),
    source: readParameter(given, 'source'),
    text: readParameter(given, 'q'),
    since: readMoment(given, 'since'),
    until: readMoment(given, 'until'),
  }
  if (before !== undefined && (await store.delivery(before)) === undefined) {
    throw new Problem('not-found', 'before must be the id of a delivery. "hookloom list" shows the ids.')
  }
  if (state === 'dead') return listByJobs(parts, { limit, before, ...filters }, (query) => store.deadJobs(query))
  if (state === 'waiting') return listWaiting(parts, { limit, before, ...filters })
  const query = { limit, state, before, ...filters }
  const isSearch = Object.values(filters).some((filter) => filter !== undefined)
  if (isSearch) return search(parts, query)
  const page = await buildPage(await store.deliveries(query), parts, { limit })
  // with a state, only a visit of all older rows could count them
  if (page.next === null || state !== undefined) return page
  return { ...page, older: await store.countBefore(page.next) }
}

/** The newest deliveries that match, as far back as the time allows. */
async function search(parts: ListParts, query: DeliveriesQuery): Promise<DeliveryPage> {
  const { store } = parts
  const { limit, text, since, until } = query
  const startedAt = performance.now()
  const found: DeliveryRecord[] = []
  const rowsWithoutText = since === undefined && until === undefined ? catalogRows : timedRows
  for (
    let { before, rows } = { before: query.before, rows: text === undefined ? rowsWithoutText : textRows.first };
    ;
  ) {
    const stepAt = performance.now()
    const step = await store.stepBack({ before, rows })
    found.unshift(...(await store.deliveries({ ...query, limit: limit - found.length, before, from: step?.id })))
    if (found.length >= limit) return buildPage(found, parts, { limit, text })
    if (step === undefined || (since !== undefined && step.receivedAt < since - clockMs))
      return buildPage(found, parts, { limit, text })
    const now = performance.now()
    if (now - startedAt > maxSearchMs) {
      const searchedTo = toIsoTime(step.receivedAt)
      return { deliveries: await readPage(found, parts, text), next: step.id, older: null, searchedTo }
    }
    const tookMs = now - stepAt
    if (text !== undefined && tookMs < shortStepMs) rows = Math.min(2 * rows, textRows.max)
    if (text !== undefined && tookMs > longStepMs) rows = Math.max(Math.floor(rows / 2), textRows.min)
    before = step.id
    await nextTurn()
  }
}

/** The maximum number of jobs that one request reads. */
const maxJobs = 2_000

/** Pending deliveries, which have no job yet, and those whose jobs have not ended. */
async function listWaiting(parts: ListParts, query: DeliveriesQuery): Promise<DeliveryPage> {
  const { limit, text } = query
  const pending = await parts.store.deliveries({ ...query, state: 'pending' })
  const page = await listByJobs(parts, query, (asked) => parts.store.openJobs(asked))
  if (pending.length === 0) return page
  const rows = new Map(
    [...page.deliveries, ...(await readPage(pending, parts, text))].map((row) => [row.deliveryId, row]),
  )
  const inOrder = [...rows.values()].toSorted((one, other) => (one.deliveryId < other.deliveryId ? -1 : 1))
  const deliveries = inOrder.slice(-limit)
  const isCut = inOrder.length > limit || pending.length === limit
  return isCut ? { ...page, deliveries, next: deliveries[0]?.deliveryId ?? null, older: null } : { ...page, deliveries }
}

/** Dead and unended jobs have separate indexes, so the filters are applied to the jobs that these find. */
async function listByJobs(
  parts: ListParts,
  { limit, before, ...filters }: DeliveriesQuery,
  read: Store['deadJobs'],
): Promise<DeliveryPage> {
  const { store } = parts
  const found = new Map<string, DeliveryRecord>()
  const oldest = before === undefined ? undefined : (await store.delivery(before))?.jobs[0]?.id
  const jobs = await read({ limit: maxJobs, before: oldest })
  for (const { deliveryId } of jobs.toReversed()) {
    if (found.size === limit) break
    if (deliveryId === undefined || found.has(deliveryId)) continue
    // a pending delivery, which has no job: ids sort by time
    if (before !== undefined && oldest === undefined && deliveryId >= before) continue
    const record = await store.delivery(deliveryId)
    if (record !== undefined && matches(record, filters)) found.set(deliveryId, record)
  }
  const page = await buildPage([...found.values()].toReversed(), parts, { limit, text: filters.text })
  const oldestRead = jobs.find(({ deliveryId }) => deliveryId !== undefined)
  if (page.next !== null || jobs.length < maxJobs || oldestRead?.deliveryId === undefined) return page
  // older jobs were not read
  return { ...page, next: oldestRead.deliveryId, older: null, searchedTo: toIsoTime(oldestRead.createdAt) }
}

/** The payload is not searched. */
function matches(
  record: DeliveryRecord,
  { hook, source, text, since, until }: Omit<DeliveriesQuery, 'limit'>,
): boolean {
  const { deliveryId, receivedAt, event, mappingId, jobs } = record
  const word = text?.trim().toLowerCase() ?? ''
  const texts = jobs.flatMap(({ planned, lastError }) => [
    lastError,
    planned.sessionKey,
    planned.kind === 'agent' || planned.kind === 'deliver' ? planned.action.message : undefined,
  ])
  return (
    (hook ?? record.hook) === record.hook &&
    (source === undefined || source === record.source) &&
    receivedAt >= (since ?? 0) &&
    receivedAt < (until ?? Number.POSITIVE_INFINITY) &&
    (deliveryId.startsWith(word) ||
      [record.hook, record.source, event, mappingId, ...texts].join('\n').toLowerCase().includes(word))
  )
}

type PageQuery = { readonly limit: number; readonly text?: string | undefined }

async function buildPage(
  records: readonly DeliveryRecord[],
  parts: ListParts,
  { limit, text }: PageQuery,
): Promise<DeliveryPage> {
  const next = records.length < limit ? undefined : records[0]?.deliveryId
  return {
    deliveries: await readPage(records, parts, text),
    next: next ?? null,
    older: next === undefined ? 0 : null,
    searchedTo: null,
  }
}

async function readPage(records: readonly DeliveryRecord[], parts: ListParts, text: string | undefined) {
  const rows = await readRows(records, parts)
  return text === undefined || text.trim() === '' ? rows : addHits(rows, records, { store: parts.store, text })
}
