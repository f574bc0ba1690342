// The read calls of the store, over a read-only connection.
import type { Database, Row, SqlValue } from './driver.ts'
import { failedBy, findAnswered } from './deliveries.ts'
import { buildDamage, factsSql, isFactsIntact, isRequestIntact, maskEvent, maskJob, maskMessage } from './sums.ts'
import { selectNextFlow } from '../flow.ts'
import { selectProgress, toProgress } from '../progress.ts'
import { findWake, whereBehind } from './catalog.ts'
import { dialect, runScript } from './flow.ts'
import { precededTasks } from './holds.ts'
import { bindCalls, buildScript, createPlainReads, type PlainRead } from '../plain.ts'
import { toTaskUsage } from '../accounts.ts'
import { selectJob, selectWake } from './jobs.ts'
import { selectTaskUsage } from './budgets.ts'
import { findNode, readNodes } from './nodes.ts'
import { eventColumns, eventTables, findSession, findSessions } from './sessions.ts'
import { sumWaitingBytes } from './waiting-bytes.ts'
import type { ReadConnection } from './connection.ts'
import { findTroubles } from './troubles.ts'
import { end, findKept, findRows, recordColumns, stepBack, findSeq } from './search.ts'
import {
  toDeliveryCounts,
  toJob,
  toJobCounts,
  toLaneLoad,
  toMessage,
  toSession,
  toSessionWithState,
  toSystemEvent,
  toWaitingEvents,
} from '../rows.ts'
import { toAnswered, toDeliveryRecord, toKeptDelivery, toKeptRequest, toOpenDelivery } from '../delivery-rows.ts'
import { deliveryStates } from '../../core/model/delivery.ts'
import { tryParseJson } from '../../base/json.ts'
import { earlyEnds, type Job } from '../../model/job.ts'
import type { KeptQuery } from '../queries.ts'
import type { DeliveryRecord, KeptDelivery, OpenDelivery } from '../records.ts'
import type { Clock, Store, StoreReader } from '../store.ts'

/** All read calls of a store. */
export type Reads = StoreReader &
  Pick<Store, 'findAnswer' | 'openDeliveries' | 'nextDueInMs' | 'jobsToEnd' | 'gatheredJobs'> & {
    /** The seqs of the deliveries that `keptDeliveries` returns, for `keptAt`. */
    keptSeqs(query: KeptQuery): Promise<readonly number[]>
    keptAt(seqs: readonly number[]): Promise<KeptDelivery[]>
  }

const selectDelivery = `SELECT ${recordColumns} FROM deliveries WHERE seq = ?`
/** `?1`: a JSON array of the seqs of deliveries. A request may have been deleted since its seq was found. */
const selectKept = `SELECT ${recordColumns}, head, body, request_sum FROM deliveries
  WHERE seq IN (SELECT value FROM json_each(?1)) AND head IS NOT NULL ORDER BY seq DESC`
const selectRequest =
  'SELECT id, head, body, request_sum FROM deliveries WHERE seq = ? AND (request_sum IS NOT NULL OR head IS NOT NULL AND body IS NOT NULL)'
/** `?1`: a JSON array of the seqs of deliveries. */
const selectJobs = `${selectJob} WHERE j.seq IN
  (SELECT job_seq FROM jobs_of WHERE delivery_seq IN (SELECT value FROM json_each(?1))
    UNION ALL SELECT seq FROM jobs WHERE ${whereBehind('jobs')} AND delivery_seq IN (SELECT value FROM json_each(?1))) ORDER BY j.seq`
const selectWakes = `${selectWake} WHERE seq IN (SELECT value FROM json_each(?)) AND wake_id IS NOT NULL`
const selectEachProgress = selectProgress((id) => `${id} IN (SELECT value FROM json_each(?1))`, { parts: 'j' })
/** Reads ranges of the indexes of the ids, and the deliveries behind the catalog. */
const selectIds = `SELECT id, id AS delivery_id FROM deliveries WHERE id >= ?1 AND id < ?2
  UNION ALL SELECT w.id, d.id FROM wake_ids w JOIN deliveries d ON d.seq = w.seq WHERE w.id >= ?1 AND w.id < ?2
  UNION ALL SELECT wake_id, id FROM deliveries WHERE ${whereBehind('deliveries')} AND wake_id >= ?1 AND wake_id < ?2
  UNION ALL SELECT j.id, d.id FROM jobs j LEFT JOIN deliveries d ON d.seq = j.delivery_seq WHERE j.id >= ?1 AND j.id < ?2
  ORDER BY id LIMIT ?3`
const eventsBehind = `FROM events WHERE ${whereBehind('events')} AND at < ?1`
/** The newest rows before a moment: at least `?2`, and all rows of the oldest moment among them. */
const selectEvents = `WITH newest AS (SELECT min(at) AS at FROM (SELECT at FROM (
      SELECT * FROM (SELECT at FROM event_times WHERE at < ?1 ORDER BY at DESC LIMIT ?2) UNION ALL SELECT at ${eventsBehind})
    ORDER BY at DESC LIMIT ?2))
  SELECT ${eventColumns} FROM ${eventTables} WHERE e.seq IN (
    SELECT seq FROM event_times WHERE at < ?1 AND at >= (SELECT at FROM newest)
    UNION ALL SELECT seq ${eventsBehind} AND at >= (SELECT at FROM newest)) ORDER BY e.at, e.seq`
const ofWaiting = 'FROM events WHERE agent_id = ?1 AND session_key = ?2 AND consumed_at IS NULL'
/** The index `events_waiting` has them in their order: no other event is read, however many wait. */
const oldestWaiting = [0, 1].map(
  (wakes) => `SELECT * FROM (SELECT seq ${ofWaiting} AND wakes = ${wakes} ORDER BY seq LIMIT ?3)`,
)
/** One statement, so the count and the events come from the same snapshot. */
const selectWaiting = `SELECT (SELECT count(*) ${ofWaiting}) AS count, EXISTS (SELECT 1 ${ofWaiting} AND wakes = 1) AS any_wakes, ${eventColumns}
  FROM (SELECT 1) LEFT JOIN events e ON e.seq IN (SELECT seq FROM (${oldestWaiting.join(' UNION ALL ')}) ORDER BY seq LIMIT ?3)
    LEFT JOIN deliveries d ON d.seq = e.delivery_seq ORDER BY e.seq`
const ofSession = 'agent_id = ?1 AND session_key = ?2'
/** The newest messages in the catalog, and the messages behind it. */
const newestMessages = (catalog: string, condition: string) => `SELECT * FROM messages WHERE ${ofSession} AND seq IN (
    SELECT seq FROM (SELECT * FROM (SELECT seq FROM ${catalog} ORDER BY seq DESC LIMIT ?3)
      UNION ALL SELECT seq FROM messages WHERE ${whereBehind('messages')} AND ${condition})
    ORDER BY seq DESC LIMIT ?3) ORDER BY seq`
const selectMessages = newestMessages(`transcripts WHERE ${ofSession}`, ofSession)
const selectRunMessages = newestMessages('run_messages WHERE run_id = ?4', `run_id = ?4 AND ${ofSession}`)
const selectUnfinished = `${selectJob} WHERE j.ended_at IS NULL AND j.seq IN (
    SELECT seq FROM jobs WHERE ended_at IS NULL AND EXISTS (SELECT 1 FROM json_each(labels)
      WHERE value LIKE 'session:%' AND substr(value, instr(value, '/') + 1) = ?1)
    UNION SELECT job_seq FROM job_flow WHERE key = ?1) ORDER BY j.seq LIMIT ?2`
/** Reads the partial index of unfinished jobs, then one row for each lane that is returned. */
const selectLanes = `SELECT lane, jobs, (SELECT created_at FROM jobs WHERE seq = first) AS since,
    EXISTS (SELECT 1 FROM jobs WHERE seq = first AND state = 'running') AS running
  FROM (SELECT lane, count(*) AS jobs, min(seq) AS first FROM jobs INDEXED BY jobs_lane
    WHERE lane IS NOT NULL AND ended_at IS NULL GROUP BY lane ORDER BY jobs DESC, lane LIMIT ?)`

/** The deliveries after the seq ?2. */
const selectOpen = (table: string, condition: string) => `
  SELECT state, waits_for, generation, head, body, request_sum, ${factsSql} FROM deliveries ${table}
  WHERE state IN ('pending', 'parked') AND (request_sum IS NOT NULL OR head IS NOT NULL AND body IS NOT NULL)
    AND (?1 IS NULL OR state = ?1) AND seq > ?2 AND ${condition}
    AND NOT EXISTS (SELECT 1 FROM json_each(?4) WHERE instr(' ' || ${failedBy} || ' ', ' ' || value || ' ') > 0)
  ORDER BY seq LIMIT ?3`
const selectAnyOpen = selectOpen('INDEXED BY deliveries_open', 'true')
const selectOpenByModule = selectOpen('INDEXED BY deliveries_waiting', 'waits_for = ?5')
const selectOpenById = selectOpen('', 'id = ?5 AND (?6 IS NULL OR waits_for = ?6)')

const selectCount = (state: string) => `((SELECT count(*) FROM listed WHERE state = ${state})
  + (SELECT count(*) FROM deliveries WHERE ${whereBehind('deliveries')} AND state = ${state}))`
type Counted = { readonly all: string; readonly usualEnd: string; readonly others: Readonly<Record<string, string>> }
/**
 * Counts rows by state. Most rows are in the usual end state, so their number is the number of all rows, which SQLite counts quickly, minus the
 * number of rows in other states.
 */
const selectCountsByState = ({ all, usualEnd, others }: Counted) => `
  WITH others (state, count) AS (
    ${Object.entries(others)
      .map(([state, count]) => `SELECT '${state}', ${count}`)
      .join(' UNION ALL ')})
  SELECT * FROM others UNION ALL
  SELECT '${usualEnd}', ${all} - (SELECT sum(count) FROM others)`
const countDeliveries = selectCountsByState({
  all: '(SELECT count(*) FROM deliveries)',
  usualEnd: 'accepted',
  others: Object.fromEntries(
    deliveryStates.filter((state) => state !== 'accepted').map((state) => [state, selectCount(`'${state}'`)]),
  ),
})
const couldRun = `state = 'queued' AND gate = 0 AND ended_at IS NULL`
const countJobs = selectCountsByState({
  all: `((SELECT count(*) FROM jobs) + (SELECT count(*) FROM wake_ids)
    + (SELECT count(*) FROM deliveries WHERE ${whereBehind('deliveries')} AND wake_id IS NOT NULL))`,
  usualEnd: 'done',
  others: {
    queued: `(SELECT count(*) FROM jobs WHERE state = 'queued' AND ended_at IS NULL)`,
    running: `(SELECT count(*) FROM jobs WHERE state = 'running' AND ended_at IS NULL)`,
    dead: `(SELECT count(*) FROM jobs WHERE state = 'dead')`,
    dropped: `(SELECT count(*) FROM jobs WHERE state = 'dropped')`,
    ...Object.fromEntries(
      earlyEnds.map((state) => [
        state,
        `(SELECT count(*) FROM jobs INDEXED BY jobs_ended_early
      WHERE state = '${state}' AND state IN ('superseded', 'cancelled', 'expired', 'skipped'))`,
      ]),
    ),
  },
})

const waitsForRetry = `FROM jobs INDEXED BY jobs_later WHERE state = 'queued' AND gate = 2`
/** One statement, so one read transaction: the worker reads it after each search for jobs. */
const nextDue = `SELECT min(at) AS at FROM (
  SELECT * FROM (SELECT run_at AS at FROM jobs WHERE ${couldRun} ORDER BY seq LIMIT 1) UNION ALL
  SELECT * FROM (SELECT run_at ${waitsForRetry} ORDER BY run_at LIMIT 1) UNION ALL
  SELECT min(until) FROM holds UNION ALL SELECT min(run_at) FROM ${precededTasks} AND run_at > ? UNION ALL ${selectNextFlow})`
/**
 * Reads only the head of the backlog. Jobs are in order of arrival, and a job that was never tried has been due since its arrival,
 * so no job behind the first such job has been due for longer.
 */
const longestDue = `SELECT min(run_at) AS run_at FROM (
  SELECT min(run_at) AS run_at FROM jobs WHERE ${couldRun} AND seq <= coalesce(
    (SELECT seq FROM jobs WHERE ${couldRun} AND run_at = created_at ORDER BY seq LIMIT 1), (SELECT max(seq) FROM jobs)) UNION ALL
  SELECT min(run_at) ${waitsForRetry} AND run_at <= ?)`

const plainReads = createPlainReads(dialect, selectJob)
/** A file without a store has no rows. */
const noStore = { all: () => [] }

export function createReads(connection: ReadConnection, clock: Clock): Reads {
  const one = (sql: string, ...values: SqlValue[]) => connection.use(undefined, (db) => db.get(sql, ...values))
  const all = (sql: string, ...values: SqlValue[]) => connection.use([], (db) => db.all(sql, ...values))
  const readPlain = async (name: PlainRead, args: readonly unknown[]) => {
    const script = buildScript(plainReads, name, args)
    const found = connection.use(undefined, (db) => ({ result: runScript(db, script, clock()) }))
    return found === undefined ? runScript(noStore, script, clock()) : found.result
  }
  const keptSeqs = async (query: KeptQuery) =>
    connection.use([], (db) => findKept(db, query).map(({ seq }) => Number(seq)))
  const keptAt = async (seqs: readonly number[]) =>
    connection.use([], (db) => {
      const rows = db.all(selectKept, JSON.stringify(seqs))
      return readRecords(db, rows).map((record, index) => toKeptDelivery(record, dropDamagedBody(rows[index])))
    })
  return {
    ...bindCalls(plainReads, readPlain),
    findAnswer: async ({ hook, key }) => {
      const row = connection.use(undefined, (db) => findAnswered(db, { hook, key }))
      return row && toAnswered(row)
    },
    deliveries: async (query) => connection.use([], (db) => readRecords(db, findRows(db, query))),
    stepBack: async (query) => connection.use(undefined, (db) => stepBack(db, query)),
    delivery: async (id) => connection.use([], (db) => readRecords(db, db.all(selectDelivery, findSeq(db, id))))[0],
    request: async (id) => {
      const row = connection.use(undefined, (db) => db.get(selectRequest, findSeq(db, id)))
      if (row !== undefined && !isRequestIntact(row)) throw buildDamage(row['id'], 'The request of the delivery')
      return row && toKeptRequest(row)
    },
    keptDeliveries: async (query) => keptAt(await keptSeqs(query)),
    keptSeqs,
    keptAt,
    events: async ({ limit, before = end }) => all(selectEvents, before, limit).map(maskEvent).map(toSystemEvent),
    sessions: async ({ limit, before = end }) =>
      connection.use([], (db) => findSessions(db, { limit, before })).map(toSession),
    session: async ({ agentId, sessionKey }) => {
      const row = connection.use(undefined, (db) => findSession(db, agentId, sessionKey))
      return row && toSessionWithState(row)
    },
    waitingEvents: async ({ agentId, sessionKey, limit }) =>
      toWaitingEvents(all(selectWaiting, agentId, sessionKey, limit).map(maskEvent)),
    job: async (id) => {
      const row =
        one(`${selectJob} WHERE j.id = ?`, id) ??
        connection.use(undefined, (db) => db.get(`${selectWake} WHERE seq = ?`, findWake(db, id)))
      return row && toJob(maskJob(row))
    },
    progress: async (ids) => all(selectEachProgress, JSON.stringify(ids)).map(toProgress),
    idsFrom: async ({ prefix, limit }) =>
      all(selectIds, prefix, `${prefix}\u{10ffff}`, limit).map(({ id, delivery_id: deliveryId }) => ({
        id: String(id),
        deliveryId: typeof deliveryId === 'string' ? deliveryId : undefined,
      })),
    messages: async ({ agentId, sessionKey, limit, runId }) =>
      (runId === undefined
        ? all(selectMessages, agentId, sessionKey, limit)
        : all(selectRunMessages, agentId, sessionKey, limit, runId)
      )
        .map(maskMessage)
        .map(toMessage),
    unfinishedJobs: async ({ key, limit }) => all(selectUnfinished, key, limit).map(maskJob).map(toJob),
    lanes: async ({ limit }) => all(selectLanes, limit).map(toLaneLoad),
    counts: async () => ({
      deliveries: toDeliveryCounts(all(countDeliveries)),
      jobs: toJobCounts(all(countJobs)),
    }),
    waitingBytes: async () => connection.use(0, sumWaitingBytes),
    openDeliveries: async ({ limit, waitsFor, state = null, id, after, notFailedBy = [] }) => {
      const seq = after === undefined ? 0 : one('SELECT seq FROM deliveries WHERE id = ?', after)?.['seq']
      if (seq === undefined) return []
      const page = [state, seq, limit, JSON.stringify(notFailedBy)]
      if (id !== undefined) return all(selectOpenById, ...page, id, waitsFor ?? null).map(readOpen)
      if (waitsFor !== undefined) return all(selectOpenByModule, ...page, waitsFor).map(readOpen)
      return all(selectAnyOpen, ...page).map(readOpen)
    },
    nextDueInMs: async () => {
      const at = one(nextDue, clock())?.['at']
      return typeof at === 'number' ? at - clock() : undefined
    },
    dueForMs: async () => {
      const now = clock()
      const at = one(longestDue, now)?.['run_at']
      return typeof at === 'number' ? Math.max(0, now - at) : undefined
    },
    troubles: async (query) => connection.use([], (db) => findTroubles(db, query)),
    countInState: async (state) => Number(one(`SELECT ${selectCount('?1')} AS count`, state)?.['count'] ?? 0),
    taskUsage: async ({ names, withinMs }) =>
      toTaskUsage(one(selectTaskUsage, JSON.stringify(names), clock() - withinMs)),
    nodes: async () => connection.use([], readNodes),
    close: async () => connection.close(),
  }
}

/** A damaged row must not prevent the reading of others. */
function readOpen(row: Row): OpenDelivery {
  const isIntact = isFactsIntact(row) && isRequestIntact(row) && isJson(row['head'])
  return toOpenDelivery(row, isIntact ? toKeptRequest(row) : undefined)
}

function isJson(text: SqlValue | undefined): boolean {
  return typeof text === 'string' && tryParseJson(text) !== undefined
}

/** A replay has no request of such a delivery. */
function dropDamagedBody(row: Row | undefined): Row | undefined {
  return row === undefined || isRequestIntact(row) ? row : { ...row, body: null }
}

const selectRepeats = 'SELECT times AS repeats, last_at AS repeated_at FROM repeats WHERE seq = ?'

function readRecords(db: Database, rows: ReturnType<Database['all']>): DeliveryRecord[] {
  const jobs = new Map<SqlValue | undefined, Job[]>(rows.map(({ seq }) => [seq, []]))
  const seqs = JSON.stringify([...jobs.keys()])
  for (const row of [...db.all(selectWakes, seqs), ...db.all(selectJobs, seqs)])
    jobs.get(row['delivery_seq'])?.push(toJob(maskJob(row)))
  return rows.map((row) => {
    const { seq = null } = row
    return toDeliveryRecord({ ...row, ...db.get(selectRepeats, seq) }, jobs.get(seq) ?? [], findNode(db, seq))
  })
}
