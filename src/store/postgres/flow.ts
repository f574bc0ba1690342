// The tables of flows, how Postgres runs their scripts, and the lock that orders their changes.
import { firstFlow } from '../flow.ts'
import type { Dialect, Script, Statement } from '../script.ts'
import { planOnce } from './naming.ts'
import type { Param, Query } from './pool.ts'

/**
 * jobs.gate: 0 = may be claimed, 3 = waits in a flow, 4 = kept back by a hold. jobs.flow: null if the job has no flow; 0 until a claim has
 * sorted it; then the id of its row in flow_keys. A queued job with a flow has no lane: it enters its lane when it is claimed. jobs.labels: a
 * JSON array of the names by which `holds` find the job. jobs.ended_by: the id of the job that superseded it. jobs.queued_again: 1 if the
 * job ran or died, and was then queued.
 *
 * endings: running jobs that must end in a state, and why. flow_keys has the keys with unfinished jobs, and is made from jobs and job_flow.
 * job_flow.settings is JSON. flow_counts: the starts that rate limits count.
 */
export const flowSchema = `
ALTER TABLE jobs ADD COLUMN gate smallint NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN flow bigint;
ALTER TABLE jobs ADD COLUMN ended_by text COLLATE "C";
ALTER TABLE jobs ADD COLUMN labels text;
DROP INDEX jobs_queued;
CREATE INDEX jobs_queued ON jobs (seq) WHERE state = 'queued' AND gate = 0;
DROP INDEX jobs_unlaned;
CREATE INDEX jobs_unlaned ON jobs (seq) WHERE lane IS NULL AND state = 'queued' AND gate = 0;
CREATE INDEX jobs_held ON jobs (seq) WHERE state = 'queued' AND gate = 4;
CREATE INDEX jobs_flow ON jobs (flow, seq) WHERE flow IS NOT NULL AND ended_at IS NULL;
CREATE INDEX jobs_ended_by ON jobs (ended_by, seq) WHERE ended_by IS NOT NULL;
CREATE TABLE holds (
  label text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  at bigint NOT NULL,
  until bigint,
  author text,
  reason text NOT NULL,
  PRIMARY KEY (label, kind)
);
CREATE TABLE endings (
  job_seq bigint PRIMARY KEY REFERENCES jobs (seq) ON DELETE CASCADE,
  at bigint NOT NULL,
  state text NOT NULL,
  ended_by text,
  reason text NOT NULL
);
CREATE TABLE job_flow (
  job_seq bigint PRIMARY KEY REFERENCES jobs (seq) ON DELETE CASCADE,
  delivery_seq bigint NOT NULL,
  ring text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  lane text COLLATE "C",
  expires_at bigint,
  settings text NOT NULL
);
CREATE INDEX job_flow_expires ON job_flow (expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE flow_keys (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  ring text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  line text COLLATE "C" NOT NULL,
  state text COLLATE "C" NOT NULL,
  rank bigint NOT NULL,
  due_at bigint NOT NULL,
  first_at bigint NOT NULL,
  blocker text COLLATE "C",
  UNIQUE (ring, key)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0);
CREATE INDEX flow_keys_ready ON flow_keys (line, rank, id) WHERE state = 'ready';
CREATE INDEX flow_keys_later ON flow_keys (due_at) WHERE state = 'later';
CREATE INDEX flow_keys_blocked ON flow_keys (blocker, rank, id) WHERE state = 'blocked';
CREATE INDEX flow_keys_idle ON flow_keys (id) WHERE state = 'idle';
CREATE TABLE flow_lines (line text COLLATE "C" PRIMARY KEY, served_at bigint NOT NULL) WITH (fillfactor = 70);
CREATE TABLE flow_counts (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text COLLATE "C" NOT NULL,
  at bigint NOT NULL
);
CREATE INDEX flow_counts_name ON flow_counts (name, at);
CREATE INDEX flow_counts_at ON flow_counts (at);
CREATE TABLE flow_cancels (
  delivery_seq bigint PRIMARY KEY,
  ring text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  reason text NOT NULL
);
`

/** A random number of 52 bits, plus 1, so that it is never 0, which is the fence of a job without a claim. */
export const newFence = '1 + floor(random() * 4503599627370496)::bigint'

const selectElements = (param: string) => `json_array_elements(CAST(${param} AS json)) AS listed (value)`

export const dialect: Dialect = {
  list: (param) => `SELECT CAST(value #>> '{}' AS bigint) FROM ${selectElements(param)}`,
  rows: (param, columns) => {
    const values = Object.entries(columns).map(
      ([name, type], place) => `CAST(value ->> ${place} AS ${type}) AS ${name}`,
    )
    return `SELECT ${values.join(', ')} FROM ${selectElements(param)}`
  },
  texts: (param) => `SELECT json_array_elements_text(CAST(${param} AS json))`,
  planOnce,
  larger: 'greatest',
  forUpdate: 'FOR UPDATE',
  skipLocked: 'FOR UPDATE SKIP LOCKED',
  runs: `SELECT j.seq, j.delivery_seq, j.created_at, j.ended_at, j.state, j.attempts, j.failing_since, j.agent_id AS agent,
      coalesce(run ->> 'model', '') AS model, (run #>> '{usage,inputTokens}')::bigint AS input,
      (run #>> '{usage,outputTokens}')::bigint AS output, (run #>> '{usage,cachedInputTokens}')::bigint AS cached,
      (run #>> '{usage,cacheWriteTokens}')::bigint AS written, (run #>> '{usage,costUsd}')::double precision AS cost
    FROM jobs j JOIN job_parts p ON p.job_seq = j.seq CROSS JOIN LATERAL (SELECT p.steps::jsonb -> 0 AS run) first_step
    WHERE (j.stands_for IS NULL AND j.state <> 'done') OR run ->> 'name' = 'run'`,
  isUntouched: `j.attempts = 0 AND EXISTS (SELECT 1 FROM job_parts p WHERE p.job_seq = j.seq AND p.steps = '[]')`,
  ofSession: 'agent_id = $1 AND session_key = $2',
}

/** `now`: the clock of the store, as an SQL expression. */
export async function runScript<Result>(query: Query, script: Script<Result>, now: string): Promise<Result> {
  for (let step = script.next([]); ;) {
    if (step.done === true) return step.value
    const { sql, params } = joinStatements(step.value)
    step = script.next(
      await query(
        sql.replaceAll('$now', () => now),
        ...params,
      ),
    )
  }
}

/** One statement, which runs those of `also` too. */
function joinStatements({ sql, params, also = [] }: Statement): Statement {
  const all = [...params]
  const others = also.map((other, place) => {
    const own = other.sql.replaceAll(/\$(\d+)/g, (_, number: string) => `$${all.length + Number(number)}`)
    all.push(...other.params)
    return `other${place} AS (${own})`
  })
  if (others.length === 0) return { sql, params }
  return { sql: `${sql.startsWith(planOnce) ? planOnce : ''} WITH ${others.join(', ')} ${sql}`, params: all }
}

/**
 * Everything that changes queued jobs of flows takes this lock before it locks a job: claims, and the calls that end, drop or wake jobs. A report that
 * settles no budget wakes no other job, and does not take it: it has locked only its own job, which runs, before it waits for the key of this job.
 */
const lock = `pg_advisory_xact_lock(hashtextextended('hookloom flow ' || current_schema(), 0))::text`

/** `which`: a condition with its parameters. Takes the lock only if an unfinished job of a flow fulfils it. */
export async function lockFlows(query: Query, which: string, ...params: readonly Param[]): Promise<void> {
  const jobs = `SELECT 1 FROM jobs WHERE flow IS NOT NULL AND ended_at IS NULL AND ${which}`
  await query(`SELECT CASE WHEN EXISTS (${jobs}) THEN ${lock} END AS locked`, ...params)
}

/** Takes the lock if an unfinished job has a flow. The column `flows` is then 1. With OFFSET, the look-up runs only once. */
export const lockIfFlows = `SELECT flows::int, CASE WHEN flows THEN ${lock} END AS locked
  FROM (SELECT (SELECT ${firstFlow}) IS NOT NULL AS flows OFFSET 0) f`
