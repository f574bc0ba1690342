// The list of deliveries: newest rows, by filters. A filter reads the catalog and, except for the newest, no row: a search of the whole
// store is quick.
import { deliveryStates } from '../../model/delivery.ts'
import type { DeliveriesQuery } from '../records.ts'
import type { StoreReader } from '../store.ts'
import { findWake, isBehind } from './catalog.ts'
import type { Database, Row, SqlValue } from './driver.ts'

export const recordColumns = `seq, id, received_at, hook, source, event, mapping_id, generation, transform_hash, state,
  body_differed, settled_at, answer_status, answer_body, problem, trace, log`

/** The newest `limit` rows, oldest first. */
const newest = (sql: string, order: string) => `SELECT * FROM (${sql} ORDER BY ${order} DESC LIMIT ?) ORDER BY ${order}`

const selectPlace = `SELECT
  coalesce((SELECT seq FROM deliveries WHERE id = ?1), (SELECT delivery_seq FROM jobs WHERE id = ?1)) AS seq`

const selectDeliveries = newest(`SELECT ${recordColumns} FROM deliveries WHERE seq < ? AND seq >= ?`, 'seq')
/** LIKE ignores the case of ASCII letters. */
const findIn = (rows: string) => `SELECT * FROM (SELECT seq FROM ${rows}
    AND seq < ?1 AND seq >= ?9 AND (?2 IS NULL OR state = ?2) AND (?3 IS NULL OR hook = ?3) AND (?4 IS NULL OR source = ?4)
    AND (?5 IS NULL OR hook LIKE ?5 ESCAPE '|' OR source LIKE ?5 ESCAPE '|' OR event LIKE ?5 ESCAPE '|'
      OR mapping_id LIKE ?5 ESCAPE '|' OR (id >= ?6 AND id < ?7))
  ORDER BY seq DESC LIMIT ?8)`
const foundIn = [
  ...deliveryStates.map((state) => `listed WHERE state = '${state}'`),
  `deliveries WHERE ${isBehind('deliveries')}`,
].map(findIn)
const selectFound = `SELECT * FROM (SELECT ${recordColumns} FROM deliveries
  WHERE seq IN (${foundIn.join(' UNION ALL ')}) ORDER BY seq DESC LIMIT ?8) ORDER BY seq`
const selectStep = `SELECT id FROM deliveries
  WHERE seq <= coalesce(?1, (SELECT max(seq) + 1 FROM deliveries)) - ?2 ORDER BY seq DESC LIMIT 1`

/** Less than every seq. `end` is greater than every seq and every moment. */
const start = 0
export const end = Number.MAX_SAFE_INTEGER

/** The seq of a delivery, found by its id or by the id of one of its jobs. Null if there is none: no seq is less or greater than null. */
export function findSeq(db: Database, id: string): SqlValue {
  return db.get(selectPlace, id)?.['seq'] ?? findWake(db, id)
}

/** The rows of `deliveries`. */
export function findRows(db: Database, query: DeliveriesQuery): Row[] {
  const { limit, before, from } = query
  const [last, first] = [
    before === undefined ? end : findSeq(db, before),
    from === undefined ? start : findSeq(db, from),
  ]
  const filters = toFilterValues(query)
  return filters.some((value) => value !== null)
    ? db.all(selectFound, last, ...filters, limit, first)
    : db.all(selectDeliveries, last, first, limit)
}

/** The values of ?2 to ?7 of `selectFound`. */
function toFilterValues({ state, hook, source, text }: DeliveriesQuery): SqlValue[] {
  const filters = [state ?? null, hook ?? null, source ?? null]
  // SQLite takes patterns of up to 50,000 bytes
  const word = text?.trim().slice(0, 5_000)
  if (word === undefined || word === '') return [...filters, null, null, null]
  const prefix = word.toLowerCase()
  return [...filters, `%${word.replace(/[%_|]/g, '|$&')}%`, prefix, `${prefix}\u{10ffff}`]
}

export function stepBack(db: Database, { before, rows }: Parameters<StoreReader['stepBack']>[0]) {
  const place = before === undefined ? null : findSeq(db, before)
  if (before !== undefined && place === null) return undefined
  const id = db.get(selectStep, place, rows)?.['id']
  return typeof id === 'string' ? id : undefined
}
