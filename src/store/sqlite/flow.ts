// The tables of flows, and how SQLite runs their scripts.
import { reopenKeys } from '../flow.ts'
import { makeKeysReady } from '../flow-script.ts'
import type { Dialect, Script, Statement } from '../script.ts'
import { whereBehind } from './catalog.ts'
import type { Database, Row, SqlValue } from './driver.ts'
import type { JobValues } from './operations.ts'

/**
 * jobs.flow: null if the job has no flow; 0 until a claim has sorted it; then the id of its row in flow_keys. A queued job with a flow has
 * gate 3 and no lane: it enters its lane when it is claimed. jobs.labels: a JSON array of the names by which `holds` find the job. Gate 4: a
 * hold keeps the job back. jobs.ended_by: the id of the job that superseded it.
 *
 * endings: running jobs that must end in a state, and why. flow_keys has the keys with unfinished jobs, and is made from jobs and job_flow.
 * job_flow.settings is JSON. flow_counts: the starts that rate limits count.
 */
export const flowSchema = `
ALTER TABLE jobs ADD COLUMN flow INTEGER;
ALTER TABLE jobs ADD COLUMN ended_by TEXT;
ALTER TABLE jobs ADD COLUMN labels TEXT;
CREATE INDEX jobs_flow ON jobs (flow, seq) WHERE flow IS NOT NULL AND ended_at IS NULL;
CREATE INDEX jobs_ended_by ON jobs (ended_by, seq) WHERE ended_by IS NOT NULL;
CREATE INDEX jobs_ended_early ON jobs (state) WHERE state IN ('superseded', 'cancelled', 'expired', 'skipped');
CREATE TABLE holds (
  label TEXT NOT NULL,
  kind TEXT NOT NULL,
  at INTEGER NOT NULL,
  until INTEGER,
  author TEXT,
  reason TEXT NOT NULL,
  PRIMARY KEY (label, kind)
) STRICT, WITHOUT ROWID;
CREATE TABLE endings (
  job_seq INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  state TEXT NOT NULL,
  ended_by TEXT,
  reason TEXT NOT NULL
) STRICT;
CREATE TABLE job_flow (
  job_seq INTEGER PRIMARY KEY,
  delivery_seq INTEGER NOT NULL,
  ring TEXT NOT NULL,
  key TEXT NOT NULL,
  lane TEXT,
  expires_at INTEGER,
  settings TEXT NOT NULL
) STRICT;
CREATE INDEX job_flow_expires ON job_flow (expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE flow_keys (
  id INTEGER PRIMARY KEY,
  ring TEXT NOT NULL,
  key TEXT NOT NULL,
  line TEXT NOT NULL,
  state TEXT NOT NULL,
  rank INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  first_at INTEGER NOT NULL,
  blocker TEXT,
  UNIQUE (ring, key)
) STRICT;
CREATE INDEX flow_keys_ready ON flow_keys (line, rank, id) WHERE state = 'ready';
CREATE INDEX flow_keys_later ON flow_keys (due_at) WHERE state = 'later';
CREATE INDEX flow_keys_blocked ON flow_keys (blocker, rank, id) WHERE state = 'blocked';
CREATE INDEX flow_keys_idle ON flow_keys (id) WHERE state = 'idle';
CREATE TABLE flow_lines (line TEXT PRIMARY KEY, served_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE flow_counts (seq INTEGER PRIMARY KEY, name TEXT NOT NULL, at INTEGER NOT NULL) STRICT;
CREATE INDEX flow_counts_name ON flow_counts (name, at);
CREATE INDEX flow_counts_at ON flow_counts (at);
CREATE TABLE flow_cancels (
  delivery_seq INTEGER PRIMARY KEY,
  ring TEXT NOT NULL,
  key TEXT NOT NULL,
  reason TEXT NOT NULL
) STRICT;
CREATE TRIGGER jobs_flow_deleted AFTER DELETE ON jobs WHEN old.flow IS NOT NULL BEGIN
  DELETE FROM job_flow WHERE job_seq = old.seq;
END;
`

/** A random number of at most 53 bits. It is odd, so it is never 0, which is the fence of a job without a claim. */
export const newFence = '(random() & 9007199254740991) | 1'

type FlowRow = { flow: NonNullable<JobValues['flow']>; seq: number; deliverySeq: number; at: number }

export function insertFlow(db: Database, { flow, seq, deliverySeq, at }: FlowRow): void {
  const [ring, key, lane, expiresMs, settings] = flow
  const sql = `INSERT INTO job_flow (job_seq, delivery_seq, ring, key, lane, expires_at, settings) VALUES (?, ?, ?, ?, ?, ?, ?)`
  db.run(sql, seq, deliverySeq, ring, key, lane, expiresMs === null ? null : at + expiresMs, settings)
}

/** The plan of the job `j`. That of the only job of a delivery is in the row `d` of the delivery, which no report writes again. */
export const planOf = `CASE j.planned WHEN '' THEN d.plan ELSE j.planned END`

export const dialect: Dialect = {
  list: (param) => `SELECT value FROM json_each(${param})`,
  rows: (param, columns) => {
    const values = Object.keys(columns).map((name, place) => `value ->> ${place} AS ${name}`)
    return `SELECT ${values.join(', ')} FROM json_each(${param})`
  },
  texts: (param) => `SELECT value FROM json_each(${param})`,
  planOnce: '',
  larger: 'max',
  forUpdate: '',
  skipLocked: '',
  runs: `SELECT j.seq, j.delivery_seq, j.created_at, j.ended_at, j.state, j.attempts, j.failing_since,
      coalesce((${planOf}) ->> '$.agentId', '') AS agent, coalesce(j.steps ->> '$[0].model', '') AS model,
      ${Object.entries({
        input: 'inputTokens',
        output: 'outputTokens',
        cached: 'cachedInputTokens',
        written: 'cacheWriteTokens',
        cost: 'costUsd',
      })
        .map(([name, key]) => `j.steps ->> '$[0].usage.${key}' AS ${name}`)
        .join(', ')}
    FROM jobs j LEFT JOIN deliveries d ON d.seq = j.delivery_seq
    WHERE (j.stands_for IS NULL AND j.state <> 'done') OR j.steps ->> '$[0].name' = 'run'`,
  isUntouched: `j.attempts = 0 AND j.steps = '[]'`,
  ofSession: `seq IN (SELECT seq FROM transcripts WHERE agent_id = $1 AND session_key = $2 UNION ALL
    SELECT seq FROM messages WHERE ${whereBehind('messages')} AND agent_id = $1 AND session_key = $2)`,
}

export const selectPlain = `SELECT run_at FROM jobs WHERE state = 'queued' AND gate = 0 AND ended_at IS NULL ORDER BY seq LIMIT $1`

export const startJob = `UPDATE jobs SET state = 'running', gate = 0, lane = $2, fence = ${newFence}, locked_until = $3
  WHERE seq = $1 AND state = 'queued' AND ended_at IS NULL RETURNING seq`

type Translated = { readonly sql: string; readonly readsClock: boolean }

/** The statements of scripts, translated to the placeholders of SQLite. Their number is fixed: no statement contains a value. */
const statements = new Map<string, Translated>()

function translateForSqlite({ sql, params }: Statement): Translated {
  const known = statements.get(sql)
  if (known !== undefined) return known
  const numbered = sql.replaceAll('$now', `$${params.length + 1}`).replaceAll(/\$(\d)/g, '?$1')
  const translated = { sql: numbered, readsClock: sql.includes('$now') }
  statements.set(sql, translated)
  return translated
}

/** `at`: the clock of the store. */
export function runScript<Result>(db: Pick<Database, 'all'>, script: Script<Result>, at: number): Result {
  const runOne = (statement: Statement) => {
    const { sql, readsClock } = translateForSqlite(statement)
    return readsClock ? db.all(sql, ...statement.params, at) : db.all(sql, ...statement.params)
  }
  for (let step = script.next([]); ;) {
    if (step.done === true) return step.value
    const rows = runOne(step.value)
    for (const other of step.value.also ?? []) runOne(other)
    step = script.next(rows)
  }
}

/** Takes a queued job with a flow out of its lane. Its key is due again when the job is due. */
export function returnToFlow(db: Database, seq: SqlValue, at: number): void {
  const sql = 'UPDATE jobs SET gate = 3, lane = NULL WHERE seq = ? AND flow IS NOT NULL RETURNING flow, run_at'
  runScript(db, reopenKeys(db.all(sql, seq)), at)
}

/** Checks the keys of queued jobs that were ended: see `makeKeysReady`. */
export function reviewFlows(db: Database, ended: readonly Row[], at: number): void {
  runScript(db, makeKeysReady(ended, dialect), at)
}
