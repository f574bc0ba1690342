// The list of deliveries: newest rows, by filters. A filter by state, hook or source reads the catalog and the rows behind it.
// A text or a time is searched in the rows themselves, so its caller visits the store in steps.
import { type DeliveriesQuery, type KeptQuery, searchedBytes, toStep } from '../queries.ts'
import { deliveryStates } from '../../core/model/delivery.ts'
import type { StoreReader } from '../store.ts'
import { findWake, whereBehind } from './catalog.ts'
import type { Database, Row, SqlValue } from './driver.ts'

export const recordColumns = `seq, id, received_at, hook, source, event, mapping_id, generation, transform_hash, state,
  body_differed, settled_at, answer_status, answer_body, problem, trace, log, recovered`

/** The newest `limit` rows, oldest first. */
const selectNewestRows = (sql: string, order: string) =>
  `SELECT * FROM (${sql} ORDER BY ${order} DESC LIMIT ?) ORDER BY ${order}`

const selectPlace = `SELECT
  coalesce((SELECT seq FROM deliveries WHERE id = ?1), (SELECT delivery_seq FROM jobs WHERE id = ?1)) AS seq`

const selectDeliveries = selectNewestRows(`SELECT ${recordColumns} FROM deliveries WHERE seq < ? AND seq >= ?`, 'seq')
const findIn = (rows: string) => `SELECT * FROM (SELECT seq FROM ${rows}
    AND seq < ?1 AND seq >= ?6 AND (?2 IS NULL OR state = ?2) AND (?3 IS NULL OR hook = ?3) AND (?4 IS NULL OR source = ?4)
  ORDER BY seq DESC LIMIT ?5)`
/** `places`: where the catalog has the rows. */
const selectListed = (...places: readonly string[]) => {
  const found = [...places.map((place) => `listed WHERE ${place}`), `deliveries WHERE ${whereBehind('deliveries')}`]
  return `SELECT * FROM (SELECT ${recordColumns} FROM deliveries
    WHERE seq IN (${found.map(findIn).join(' UNION ALL ')}) ORDER BY seq DESC LIMIT ?5) ORDER BY seq`
}
const selectOfState = selectListed('state = ?2')
const selectOfHook = selectListed('hook = ?3')
const selectOfSource = selectListed(...deliveryStates.map((state) => `state = '${state}'`))

const wanted = `d.seq < ?1 AND d.seq >= ?6 AND (?2 IS NULL OR d.state = ?2) AND (?3 IS NULL OR d.hook = ?3)
  AND (?4 IS NULL OR d.source = ?4) AND (?7 IS NULL OR d.received_at >= ?7) AND (?8 IS NULL OR d.received_at < ?8)`
/** LIKE ignores the case of ASCII letters. */
const whereContains = (column: string) => `${column} LIKE ?9 ESCAPE '|'`
const whereStartContains = (column: string) => whereContains(`CAST(substr(${column}, 1, ${searchedBytes}) AS TEXT)`)
/** Searches the values at these paths, not the names of the fields. A row that cannot be read must not fail the search. */
const whereJsonContains = (column: string, ...paths: readonly string[]) =>
  `CASE WHEN json_valid(${column}) THEN ${paths.map((path) => whereContains(`substr(${column} ->> '${path}', 1, ${searchedBytes})`)).join(' OR ')} END`
const wherePlanContains = (column: string) =>
  whereJsonContains(column, '$.action.message', '$.action.text', '$.sessionKey')
const jobHas = `${wherePlanContains('j.planned')} OR ${whereContains('j.last_error')}`
/** Prompts are not searched: their message is in the plan, and the text around the message is the same in every prompt. */
const replyHas = `m.role = 'assistant' AND ${whereStartContains('m.text')}`
/** The deliveries that have the text, or whose jobs have it. Jobs and messages behind the catalog are searched once, and not for each delivery. */
const selectFound = `SELECT * FROM (SELECT ${recordColumns} FROM deliveries d WHERE ${wanted} AND seq IN (
  SELECT * FROM (SELECT d.seq FROM deliveries d WHERE ${wanted} AND (?9 IS NULL
      OR ${['d.hook', 'd.source', 'd.event', 'd.mapping_id'].map(whereContains).join(' OR ')} OR (d.id >= ?10 AND d.id < ?11)
      OR ${whereStartContains('d.body')} OR ${wherePlanContains('d.plan')} OR ${whereJsonContains('d.problem', '$.detail', '$.frame')}
      OR EXISTS (SELECT 1 FROM jobs_of o JOIN jobs j ON j.seq = o.job_seq WHERE o.delivery_seq = d.seq AND (${jobHas}
        OR EXISTS (SELECT 1 FROM run_messages r JOIN messages m ON m.seq = r.seq WHERE r.run_id = j.id AND ${replyHas}))))
    ORDER BY d.seq DESC LIMIT ?5)
  UNION ALL SELECT j.delivery_seq FROM jobs j WHERE j.${whereBehind('jobs')} AND (${jobHas})
  UNION ALL SELECT j.delivery_seq FROM messages m JOIN jobs j ON j.id = m.run_id WHERE m.${whereBehind('messages')} AND ${replyHas})
  ORDER BY seq DESC LIMIT ?5) ORDER BY seq`
const selectStep = `SELECT id, received_at FROM deliveries
  WHERE seq <= coalesce(?1, (SELECT max(seq) + 1 FROM deliveries)) - ?2 AND seq > ?3 ORDER BY seq DESC LIMIT 1`

/** `start` is less than the seq of every delivery; `end` is greater than every seq and every moment. */
const start = 0
export const end = Number.MAX_SAFE_INTEGER

/** The seq of a delivery, found by its id or by the id of one of its jobs. Null if there is none: no seq is less or greater than null. */
export function findSeq(db: Database, id: string): SqlValue {
  return db.get(selectPlace, id)?.['seq'] ?? findWake(db, id)
}

export function findRows(db: Database, query: DeliveriesQuery): Row[] {
  const { limit, before, from } = query
  const [last, first] = [
    before === undefined ? end : findSeq(db, before),
    from === undefined ? start : findSeq(db, from),
  ]
  const { state = null, hook = null, source = null, text, since = null, until = null } = query
  // SQLite takes patterns of up to 50,000 bytes
  const word = text?.trim().slice(0, 5_000) ?? ''
  if (word !== '' || since !== null || until !== null) {
    const values = [last, state, hook, source, limit, first, since, until]
    if (word === '') return db.all(selectFound, ...values, null, null, null)
    const prefix = word.toLowerCase()
    return db.all(selectFound, ...values, `%${word.replace(/[%_|]/g, '|$&')}%`, prefix, `${prefix}\u{10ffff}`)
  }
  if (state === null && hook === null && source === null) return db.all(selectDeliveries, last, first, limit)
  // most deliveries are accepted
  const isOfHook = hook !== null && (state === null || state === 'accepted')
  const sql = isOfHook ? selectOfHook : state === null ? selectOfSource : selectOfState
  return db.all(sql, last, state, hook, source, limit, first)
}

const selectKeptIn = (table: string, what: string) => `SELECT ${table}.seq AS seq FROM ${what}
    AND ${table}.seq < ?1 AND d.head IS NOT NULL AND d.state <> 'pending' AND d.received_at >= ?2 AND (?3 IS NULL OR d.hook = ?3)
    AND (?4 IS NULL OR d.source = ?4) AND (?5 IS NULL OR d.mapping_id IN (SELECT value FROM json_each(?5)))
  ORDER BY ${table}.seq DESC LIMIT ?6`
/** `?5`: a JSON array of mapping ids, or null. */
const selectKept = selectKeptIn('d', 'deliveries d INDEXED BY deliveries_kept WHERE true')
/** The catalog has the rows of a hook, so that those of other hooks are not read, however many they are. */
const selectKeptOfHook = `SELECT seq FROM (
    SELECT * FROM (${selectKeptIn('l', 'listed l CROSS JOIN deliveries d ON d.seq = l.seq WHERE l.hook = ?3')})
    UNION ALL SELECT * FROM (${selectKeptIn('d', `deliveries d WHERE d.${whereBehind('deliveries')}`)}))
  ORDER BY seq DESC LIMIT ?6`

/** The newest first. */
export function findKept(db: Database, { limit, before, hook, source, since = 0, mappings }: KeptQuery): Row[] {
  const place = before === undefined ? end : findSeq(db, before)
  const among = mappings === undefined ? null : JSON.stringify(mappings)
  const sql = hook === undefined ? selectKept : selectKeptOfHook
  return db.all(sql, place, since, hook ?? null, source ?? null, among, limit)
}

/** The delivery that is about `rows` older than `before`, or than the newest one: the end of one step of a search. */
export function stepBack(db: Database, { before, after, rows }: Parameters<StoreReader['stepBack']>[0]) {
  const place = before === undefined ? null : findSeq(db, before)
  if (before !== undefined && place === null) return undefined
  const row = db.get(selectStep, place, rows, after === undefined ? start : findSeq(db, after))
  return row && toStep(row)
}
