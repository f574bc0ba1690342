// The read calls of the store.
import { toStep } from '../queries.ts'
import { selectNewestRows, selectSeq, recordColumns, selectDeliveries, selectStep, toEscapedBytes } from './search.ts'
import type { Job } from '../../model/job.ts'
import {
  type Row,
  type SqlValue,
  toDeliveryCounts,
  toJob,
  toJobCounts,
  toLaneLoad,
  toMessage,
  toNodeRecord,
  toSession,
  toSessionWithState,
  toSystemEvent,
  toWaitingEvents,
} from '../rows.ts'
import { toDeliveryRecord, toKeptDelivery, toKeptRequest, toOpenDelivery } from '../delivery-rows.ts'
import type { DeliveryRecord } from '../records.ts'
import type { Store, StoreReader } from '../store.ts'
import { selectProgress, toProgress } from '../progress.ts'
import { bindCalls, buildScript, createPlainReads } from '../plain.ts'
import { selectNextFlow } from '../flow.ts'
import { readTaskUsage } from './budgets.ts'
import type { Query } from './pool.ts'
import { dialect, runScript } from './flow.ts'
import { readTroubles } from './troubles.ts'
import { eachHead, heads, whereDue, whereFree, selectJob } from './jobs.ts'

type Reads = Omit<StoreReader, 'close'> &
  Pick<Store, 'findAnswer' | 'openDeliveries' | 'nextDueInMs' | 'jobsToEnd' | 'gatheredJobs'>

/** The newest rows before the moment $1: at least $2, and all rows of the oldest moment among them. */
const newestMoments = (table: string, moment: string, order: string) => `SELECT * FROM ${table}
  WHERE ${moment} < $1 AND ${moment} >= (SELECT min(${moment}) FROM
    (SELECT ${moment} FROM ${table} WHERE ${moment} < $1 ORDER BY ${moment} DESC LIMIT $2) n)
  ORDER BY ${order}`

const selectEachProgress = selectProgress((id) => `${id} = ANY($1)`, {
  parts: 'p',
  join: 'JOIN job_parts p ON p.job_seq = j.seq',
})

const isStored = `r.head <> ''`
const selectKept = `SELECT ${recordColumns}, r.head, CASE WHEN ${isStored} THEN r.body END AS body
  FROM requests r JOIN deliveries d ON d.seq = r.delivery_seq
  WHERE d.seq < $1 AND d.state <> 'pending' AND d.received_at >= $2 AND ($3::text IS NULL OR d.hook = $3)
    AND ($4::text IS NULL OR d.source = $4) AND ($5::text[] IS NULL OR d.mapping_id = ANY ($5))
  ORDER BY d.seq DESC LIMIT $6`
const selectRequest = `SELECT r.head, r.body FROM requests r WHERE r.delivery_seq = ${selectSeq('$1')} AND ${isStored}`
const selectIds = `SELECT id, id AS delivery_id FROM deliveries WHERE id >= $1 AND id < $2
  UNION ALL SELECT j.id, d.id FROM jobs j LEFT JOIN deliveries d ON d.seq = j.delivery_seq WHERE j.id >= $1 AND j.id < $2
  ORDER BY id LIMIT $3`
/** One statement, so the count and the events come from the same snapshot. */
const selectWaiting = `WITH waiting AS (SELECT seq, wakes FROM events
    WHERE agent_id = $1 AND session_key = $2 AND consumed_at IS NULL)
  SELECT sums.*, e.* FROM
    (SELECT count(*) AS count, coalesce(max(wakes), 0) AS any_wakes FROM waiting) sums
    LEFT JOIN events e ON e.seq IN (SELECT seq FROM waiting ORDER BY seq LIMIT $3) ORDER BY e.seq`
const selectOpen = `SELECT d.id, d.received_at, d.state, d.hook, d.waits_for, d.generation, r.head, r.body
  FROM deliveries d JOIN requests r ON r.delivery_seq = d.seq
  WHERE d.state IN ('pending', 'parked') AND ${isStored} AND ($1::text IS NULL OR d.state = $1)
    AND d.seq > $2 AND ($4::text IS NULL OR d.id = $4) AND ($5::text IS NULL OR d.waits_for = $5)
    AND ($6::text[] IS NULL OR NOT $6 && (string_to_array(coalesce(d.failed_by, ''), ' ')
      || CASE WHEN d.state = 'parked' THEN ARRAY[d.generation, d.transform_hash] END))
  ORDER BY d.seq LIMIT $3`
const selectLanes = `SELECT l.lane, l.jobs, j.created_at AS since, (j.state = 'running')::int AS running
  FROM (SELECT lane, count(*) AS jobs, min(seq) AS first FROM jobs
    WHERE lane IS NOT NULL AND ended_at IS NULL GROUP BY lane ORDER BY jobs DESC, lane LIMIT $1) l
  JOIN jobs j ON j.seq = l.first ORDER BY l.jobs DESC, l.lane`
const selectBytes = `SELECT (SELECT coalesce(sum(bytes), 0) FROM jobs WHERE ended_at IS NULL)::bigint
  + (SELECT coalesce(sum(bytes), 0) FROM deliveries WHERE state IN ('pending', 'parked'))::bigint AS bytes`

/** The number of rows in the usual end state is the number of all rows minus the number of rows in other states, which have an index. */
const selectCountsByState = (table: string, usualEnd: string) => `
  WITH others AS (SELECT state, count(*) AS count FROM ${table} WHERE state <> '${usualEnd}' GROUP BY state)
  SELECT * FROM others UNION ALL
  SELECT '${usualEnd}', (SELECT count(*) FROM ${table}) - (SELECT coalesce(sum(count), 0) FROM others)::bigint`

const selectFirstFree = (now: string, condition: string) => `WITH RECURSIVE ${heads}
  SELECT min(j.run_at) AS run_at FROM jobs j WHERE j.seq = ANY (ARRAY(${eachHead})) AND ${whereFree(now)} AND ${condition}`

/** A gateway joins again every ten seconds. */
const aliveMs = 30_000
/** Greater than every seq and every moment. */
const end = Number.MAX_SAFE_INTEGER

const plainReads = createPlainReads(dialect, selectJob)

export async function sumWaitingBytes(query: Query): Promise<number> {
  return Number((await query(selectBytes))[0]?.['bytes'] ?? 0)
}

/** `patientQuery`: for reads that may visit many rows. */
export function createReads(
  { query, patientQuery }: { readonly query: Query; readonly patientQuery: Query },
  now: () => string,
): Reads {
  const one = async (...given: Parameters<Query>) => (await query(...given))[0]
  const findDeliverySeq = async (id: string | undefined): Promise<number | null> => {
    if (id === undefined) return end
    return toNumber((await one(`SELECT ${selectSeq('$1')} AS seq`, id))?.['seq']) ?? null
  }
  const readRecords = async (rows: readonly Row[]): Promise<DeliveryRecord[]> => {
    const jobs = new Map<SqlValue | undefined, Job[]>(rows.map(({ seq }) => [seq, []]))
    if (rows.length === 0) return []
    const seqs = rows.map(({ seq }) => Number(seq))
    for (const row of await query(`${selectJob} WHERE j.delivery_seq = ANY ($1::bigint[]) ORDER BY j.seq`, seqs)) {
      jobs.get(row['delivery_seq'])?.push(toJob(row))
    }
    return rows.map((row) => toDeliveryRecord(row, jobs.get(row['seq']) ?? []))
  }
  return {
    ...bindCalls(plainReads, (name, args) => runScript(query, buildScript(plainReads, name, args), now())),
    deliveries: async ({ limit, before, from, state, hook, source, text, since, until }) => {
      const word = text?.replace(/[A-Z]/g, (letter) => letter.toLowerCase()).trim() || undefined
      const [last, first] = [await findDeliverySeq(before), from === undefined ? 0 : await findDeliverySeq(from)]
      const values = [limit, last, state, hook, source, word, first, since, until, word && toEscapedBytes(word)]
      return readRecords(await patientQuery(selectDeliveries, ...values))
    },
    stepBack: async ({ before, after, rows }) => {
      const place = before === undefined ? undefined : await findDeliverySeq(before)
      const first = after === undefined ? 0 : await findDeliverySeq(after)
      const row = place === null ? undefined : await one(selectStep, place, rows, first)
      return row && toStep(row)
    },
    delivery: async (id) =>
      (
        await readRecords(await query(`SELECT ${recordColumns} FROM deliveries d WHERE d.seq = ${selectSeq('$1')}`, id))
      )[0],
    request: async (id) => {
      const row = await one(selectRequest, id)
      return row && toKeptRequest(row)
    },
    keptDeliveries: async ({ limit, before, hook, source, since = 0, mappings }) => {
      const rows = await patientQuery(selectKept, await findDeliverySeq(before), since, hook, source, mappings, limit)
      return (await readRecords(rows)).map((record, index) => toKeptDelivery(record, rows[index]))
    },
    events: async ({ limit, before = end }) =>
      (await query(newestMoments('events', 'at', 'at, seq'), before, limit)).map(toSystemEvent),
    sessions: async ({ limit, before = end }) => {
      const sql = newestMoments('sessions', 'updated_at', 'updated_at, agent_id, session_key')
      return (await query(sql, before, limit)).map(toSession)
    },
    session: async ({ agentId, sessionKey }) => {
      const row = await one('SELECT * FROM sessions WHERE agent_id = $1 AND session_key = $2', agentId, sessionKey)
      return row && toSessionWithState(row)
    },
    waitingEvents: async ({ agentId, sessionKey, limit }) =>
      toWaitingEvents(await query(selectWaiting, agentId, sessionKey, limit)),
    job: async (id) => {
      const row = await one(`${selectJob} WHERE j.id = $1`, id)
      return row && toJob(row)
    },
    progress: async (ids) => (await query(selectEachProgress, ids)).map(toProgress),
    idsFrom: async ({ prefix, limit }) =>
      (await query(selectIds, prefix, `${prefix}\u{10ffff}`, limit)).map(({ id, delivery_id: deliveryId }) => ({
        id: String(id),
        deliveryId: typeof deliveryId === 'string' ? deliveryId : undefined,
      })),
    messages: async ({ agentId, sessionKey, limit, runId }) => {
      const sql = `SELECT * FROM messages WHERE agent_id = $1 AND session_key = $2 AND ($3::text IS NULL OR run_id = $3)`
      return (await query(selectNewestRows(sql, 'seq', '$4'), agentId, sessionKey, runId, limit)).map(toMessage)
    },
    unfinishedJobs: async ({ key, limit }) => {
      const sql = `${selectJob} WHERE j.ended_at IS NULL AND ((j.session_key = $1 AND j.delivery_seq IS NOT NULL)
        OR j.seq IN (SELECT job_seq FROM job_flow WHERE key = $1)) ORDER BY j.seq LIMIT $2`
      return (await patientQuery(sql, key, limit)).map(toJob)
    },
    lanes: async ({ limit }) => (await patientQuery(selectLanes, limit)).map(toLaneLoad),
    counts: async () => ({
      deliveries: toDeliveryCounts(await patientQuery(selectCountsByState('deliveries', 'accepted'))),
      jobs: toJobCounts(await patientQuery(selectCountsByState('jobs', 'done'))),
    }),
    taskUsage: (given) => readTaskUsage(patientQuery, given, now()),
    nodes: async () => {
      const sql = `SELECT * FROM nodes WHERE seen_at > ${now()} - ${aliveMs} ORDER BY id`
      return (await query(sql)).map(toNodeRecord)
    },
    countInState: async (state) =>
      Number(
        (await patientQuery('SELECT count(*) AS count FROM deliveries WHERE state = $1', state))[0]?.['count'] ?? 0,
      ),
    troubles: (asked) => readTroubles(query, asked),
    waitingBytes: () => sumWaitingBytes(query),
    openDeliveries: async ({ limit, waitsFor, state, id, after, notFailedBy }) => {
      const seq = after === undefined ? 0 : (await one('SELECT seq FROM deliveries WHERE id = $1', after))?.['seq']
      if (seq === undefined) return []
      const rows = await query(selectOpen, state, seq, limit, id, waitsFor, notFailedBy)
      return rows.map((row) => toOpenDelivery(row, toKeptRequest(row)))
    },
    nextDueInMs: async () => {
      // a job that is held back may be due when its hold ends
      const held = '(SELECT min(until) FROM holds)'
      const row = await one(
        `SELECT least((SELECT run_at FROM (${selectFirstFree(now(), 'true')}) f), ${held}, (${selectNextFlow})) - ${now()} AS wait`,
      )
      return toNumber(row?.['wait'])
    },
    dueForMs: async () => {
      const age = toNumber(
        (await one(`SELECT ${now()} - run_at AS age FROM (${selectFirstFree(now(), whereDue(now()))}) f`))?.['age'],
      )
      return age && Math.max(0, age)
    },
  }
}

function toNumber(value: SqlValue | undefined): number | undefined {
  return typeof value === 'number' ? value : undefined
}
