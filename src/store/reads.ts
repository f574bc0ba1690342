// The read side over a read-only connection: point reads and short lists by index, and only what is committed.
import type { Database, SqlValue } from './driver.ts'
import { selectAnswered } from './deliveries.ts'
import { selectJob } from './jobs.ts'
import type { ReadConnection } from './connection.ts'
import {
  toAnswered,
  toDeliveryCounts,
  toDeliveryRecord,
  toJob,
  toJobCounts,
  toKeptRequest,
  toMessage,
  toOpenDelivery,
  toSession,
  toSessionWithState,
  toSystemEvent,
  toWaitingEvents,
} from './rows.ts'
import type { Job } from '../model/job.ts'
import type { Clock, DeliveryRecord, Store, StoreReader } from './store.ts'

/** What a Store reads beyond the reader's part. */
export type Reads = StoreReader & Pick<Store, 'answered' | 'open' | 'nextRunAt'>

const recordColumns = `seq, id, received_at, hook, source, event, mapping_id, generation, transform_hash, state,
  body_differed, problem, trace, log`

/** Newest `limit` rows of a table, oldest first. */
const newest = (sql: string, order: string) => `SELECT * FROM (${sql} ORDER BY ${order} DESC LIMIT ?) ORDER BY ${order}`

const selectDeliveries = newest(`SELECT ${recordColumns} FROM deliveries`, 'seq')
const selectDeliveriesByState = newest(`SELECT ${recordColumns} FROM deliveries WHERE state = ?`, 'seq')
const selectDelivery = `SELECT ${recordColumns} FROM deliveries
  WHERE seq = coalesce((SELECT seq FROM deliveries WHERE id = ?1), (SELECT delivery_seq FROM jobs WHERE id = ?1))`
const selectRequest = `SELECT head, body FROM deliveries
  WHERE seq = coalesce((SELECT seq FROM deliveries WHERE id = ?1), (SELECT delivery_seq FROM jobs WHERE id = ?1))
    AND head IS NOT NULL AND body IS NOT NULL`
const selectJobs = `${selectJob} WHERE j.delivery_seq IN (SELECT value FROM json_each(?)) ORDER BY j.seq`
const selectEvents = newest('SELECT * FROM events', 'seq')
const selectSessions = newest('SELECT * FROM sessions', 'updated_at')
const selectSession = 'SELECT * FROM sessions WHERE agent_id = ? AND session_key = ?'
/** One statement, so one moment: what arrives meanwhile is neither counted nor shown. */
const selectWaiting = `WITH waiting AS (SELECT seq, wakes FROM events
    WHERE agent_id = ?1 AND session_key = ?2 AND consumed_at IS NULL)
  SELECT sums.*, e.* FROM
    (SELECT count(*) AS count, coalesce(max(seq), 0) AS up_to, coalesce(max(wakes), 0) AS any_wakes FROM waiting) sums
    LEFT JOIN events e ON e.seq IN (SELECT seq FROM waiting ORDER BY seq LIMIT ?3) ORDER BY e.seq`
const selectMessages = newest('SELECT * FROM messages WHERE agent_id = ? AND session_key = ?', 'seq')

const openColumns = `id, received_at, state, hook, waits_for, generation, head, body`
const isOpen = `state IN ('pending', 'parked') AND head IS NOT NULL AND body IS NOT NULL`
const inOrder = 'ORDER BY received_at, seq LIMIT ?'
const selectOpen = `SELECT ${openColumns} FROM deliveries INDEXED BY deliveries_open WHERE ${isOpen} AND (?1 IS NULL OR state = ?1) ${inOrder}`
const selectOpenById = `SELECT ${openColumns} FROM deliveries
  WHERE ${isOpen} AND id = ?2 AND (?1 IS NULL OR state = ?1) AND (?3 IS NULL OR waits_for = ?3) ${inOrder}`
const selectOpenByModule = `SELECT ${openColumns} FROM deliveries
  WHERE ${isOpen} AND waits_for = ?2 AND (?1 IS NULL OR state = ?1) ${inOrder}`

const countJobs = `WITH open (state, count) AS (
    SELECT 'queued', count(*) FROM jobs WHERE state = 'queued' UNION ALL
    SELECT 'running', count(*) FROM jobs WHERE state = 'running' UNION ALL
    SELECT 'dead', count(*) FROM jobs WHERE state = 'dead')
  SELECT * FROM open UNION ALL
  SELECT 'done', (SELECT count(*) FROM jobs) - (SELECT sum(count) FROM open)`

const nextDue = `SELECT min(run_at) AS run_at FROM (
  SELECT run_at FROM (SELECT run_at FROM jobs WHERE state = 'queued' AND gate = 0 ORDER BY seq LIMIT 1) UNION ALL
  SELECT run_at FROM (SELECT run_at FROM jobs INDEXED BY jobs_later WHERE state = 'queued' AND gate = 2 ORDER BY run_at LIMIT 1))`

/** A job that never came back is due since it was stored, and jobs are stored in order of time: behind the first such one nothing is due earlier. */
const selectDueSince = `SELECT min(run_at) AS run_at FROM (
  SELECT run_at FROM (SELECT min(run_at) AS run_at FROM jobs WHERE state = 'queued' AND gate = 0 AND seq <= coalesce(
    (SELECT seq FROM jobs WHERE state = 'queued' AND gate = 0 AND run_at = created_at ORDER BY seq LIMIT 1), 9e18)) UNION ALL
  SELECT run_at FROM (SELECT run_at FROM jobs INDEXED BY jobs_later WHERE state = 'queued' AND gate = 2 AND run_at <= ? ORDER BY run_at LIMIT 1))`

export function createReads(connection: ReadConnection, clock: Clock): Reads {
  const one = (sql: string, ...values: SqlValue[]) => connection.use(undefined, (db) => db.get(sql, ...values))
  const all = (sql: string, ...values: SqlValue[]) => connection.use([], (db) => db.all(sql, ...values))
  return {
    deliveries: async ({ limit, state }) =>
      connection.use([], (db) =>
        toRecords(db, state ? db.all(selectDeliveriesByState, state, limit) : db.all(selectDeliveries, limit)),
      ),
    delivery: async (id) => connection.use([], (db) => toRecords(db, db.all(selectDelivery, id)))[0],
    request: async (id) => {
      const row = one(selectRequest, id)
      return row && toKeptRequest(row)
    },
    events: async ({ limit }) => all(selectEvents, limit).map(toSystemEvent),
    sessions: async ({ limit }) => all(selectSessions, limit).map(toSession),
    session: async ({ agentId, sessionKey }) => {
      const row = one(selectSession, agentId, sessionKey)
      return row && toSessionWithState(row)
    },
    waiting: async ({ agentId, sessionKey, limit }) => toWaitingEvents(all(selectWaiting, agentId, sessionKey, limit)),
    job: async (id) => {
      const row = one(`${selectJob} WHERE j.id = ?`, id)
      return row && toJob(row)
    },
    lastTaskAt: async (standsFor) =>
      toTime(one('SELECT max(created_at) AS at FROM jobs WHERE stands_for = ?', standsFor)?.['at']),
    cursor: async (name) => {
      const value = one('SELECT value FROM cursors WHERE name = ?', name)?.['value']
      return typeof value === 'string' ? value : undefined
    },
    messages: async ({ agentId, sessionKey, limit }) => all(selectMessages, agentId, sessionKey, limit).map(toMessage),
    counts: async () => ({
      deliveries: toDeliveryCounts(all('SELECT state, count(*) AS count FROM deliveries GROUP BY state')),
      jobs: toJobCounts(all(countJobs)),
    }),
    answered: async ({ hook, key }) => {
      const row = one(selectAnswered, hook, key)
      return row && toAnswered(row)
    },
    open: async ({ limit, waitsFor, state, id }) => {
      const rows = () => {
        if (id !== undefined) return all(selectOpenById, state ?? null, id, waitsFor ?? null, limit)
        if (waitsFor !== undefined) return all(selectOpenByModule, state ?? null, waitsFor, limit)
        return all(selectOpen, state ?? null, limit)
      }
      return rows().map(toOpenDelivery)
    },
    nextRunAt: async () => toTime(one(nextDue)?.['run_at']),
    dueSince: async () => toTime(one(selectDueSince, clock())?.['run_at']),
    close: async () => connection.close(),
  }
}

function toTime(value: SqlValue | undefined): number | undefined {
  return typeof value === 'number' ? value : undefined
}

function toRecords(db: Database, rows: ReturnType<Database['all']>): DeliveryRecord[] {
  const jobs = new Map<SqlValue | undefined, Job[]>(rows.map(({ seq }) => [seq, []]))
  for (const row of db.all(selectJobs, JSON.stringify([...jobs.keys()])))
    jobs.get(row['delivery_seq'])?.push(toJob(row))
  return rows.map((row) => toDeliveryRecord(row, jobs.get(row['seq']) ?? []))
}
