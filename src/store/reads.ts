// The read side over a read-only connection: point reads and short lists by index, and only what is committed.
import type { Database, SqlValue } from './driver.ts'
import { selectAnswered } from './deliveries.ts'
import { jobColumns } from './jobs.ts'
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
  toSystemEvent,
} from './rows.ts'
import type { Job } from '../model/job.ts'
import type { DeliveryRecord, Store, StoreReader } from './store.ts'

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
const selectJobs = `SELECT ${jobColumns} FROM jobs j JOIN deliveries d ON d.seq = j.delivery_seq
  WHERE j.delivery_seq IN (SELECT value FROM json_each(?)) ORDER BY j.seq`
const selectEvents = newest('SELECT * FROM events', 'seq')
const selectSessions = newest('SELECT * FROM sessions', 'updated_at')
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

export function createReads(connection: ReadConnection): Reads {
  const all = (sql: string, ...values: SqlValue[]) => connection.use([], (db) => db.all(sql, ...values))
  return {
    deliveries: async ({ limit, state }) =>
      connection.use([], (db) =>
        toRecords(db, state ? db.all(selectDeliveriesByState, state, limit) : db.all(selectDeliveries, limit)),
      ),
    delivery: async (id) => connection.use([], (db) => toRecords(db, db.all(selectDelivery, id)))[0],
    request: async (id) => {
      const row = connection.use(undefined, (db) => db.get(selectRequest, id))
      return row && toKeptRequest(row)
    },
    events: async ({ limit }) => all(selectEvents, limit).map(toSystemEvent),
    sessions: async ({ limit }) => all(selectSessions, limit).map(toSession),
    messages: async ({ agentId, sessionKey, limit }) => all(selectMessages, agentId, sessionKey, limit).map(toMessage),
    counts: async () => ({
      deliveries: toDeliveryCounts(all('SELECT state, count(*) AS count FROM deliveries GROUP BY state')),
      jobs: toJobCounts(all(countJobs)),
    }),
    answered: async ({ hook, key }) => {
      const row = connection.use(undefined, (db) => db.get(selectAnswered, hook, key))
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
    nextRunAt: async () => {
      const runAt = connection.use(undefined, (db) => db.get(nextDue))?.['run_at']
      return typeof runAt === 'number' ? runAt : undefined
    },
    close: async () => connection.close(),
  }
}

function toRecords(db: Database, rows: ReturnType<Database['all']>): DeliveryRecord[] {
  const jobs = new Map<SqlValue | undefined, Job[]>(rows.map(({ seq }) => [seq, []]))
  for (const row of db.all(selectJobs, JSON.stringify([...jobs.keys()])))
    jobs.get(row['delivery_seq'])?.push(toJob(row))
  return rows.map((row) => toDeliveryRecord(row, jobs.get(row['seq']) ?? []))
}
