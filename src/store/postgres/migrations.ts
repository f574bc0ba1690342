// The schema. Migrations only go forward, in one transaction under a lock: gateways that start at the same time migrate once.
import { Problem } from '../../core/model/problem.ts'
import type { Row } from '../rows.ts'
import { deletionSchema } from './deliveries.ts'
import { failedRunsSchema } from './troubles.ts'
import { flowSchema } from './flow.ts'
import { auditSchema, awaitsSchema, budgetsSchema, quarantineSchema } from './tables.ts'

/**
 * `seq` is the order of arrival; times are milliseconds since the epoch. Identifiers are compared by their bytes.
 * Rows that are claimed and updated are narrow, and their tables leave room on each page for new versions of a row. Requests, plans, steps
 * and posts are in separate tables. The indexes that claims read contain only unfinished jobs, so their size does not grow with the history.
 * `jobs_running` makes two running jobs of a lane impossible. Two gateways that add the same task at once lock its row of `task_names`. An
 * empty head means that the request was too large to be kept.
 */
const first = `
CREATE TABLE deliveries (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text COLLATE "C" NOT NULL UNIQUE,
  received_at bigint NOT NULL,
  settled_at bigint,
  bytes bigint NOT NULL DEFAULT 0,
  answer_status integer NOT NULL,
  body_differed smallint NOT NULL DEFAULT 0,
  state text COLLATE "C" NOT NULL,
  hook text COLLATE "C" NOT NULL,
  source text COLLATE "C",
  event text COLLATE "C",
  mapping_id text COLLATE "C",
  generation text NOT NULL,
  transform_hash text,
  waits_for text COLLATE "C",
  dedupe_key text COLLATE "C",
  body_hash text,
  answer_body text NOT NULL,
  problem text,
  trace text NOT NULL,
  log text NOT NULL
) WITH (fillfactor = 85);
CREATE UNIQUE INDEX deliveries_key ON deliveries (hook, dedupe_key) WHERE dedupe_key IS NOT NULL;
CREATE INDEX deliveries_listed ON deliveries (state, seq);
CREATE INDEX deliveries_open ON deliveries (received_at, seq) INCLUDE (bytes) WHERE state IN ('pending', 'parked');
CREATE INDEX deliveries_waiting ON deliveries (waits_for, received_at, seq) WHERE state IN ('pending', 'parked');

CREATE TABLE requests (
  delivery_seq bigint PRIMARY KEY REFERENCES deliveries (seq) ON DELETE CASCADE,
  head text NOT NULL,
  body bytea NOT NULL
);

CREATE TABLE rings (
  seq bigint PRIMARY KEY REFERENCES deliveries (seq) ON DELETE CASCADE,
  mapping_id text COLLATE "C" NOT NULL
);
CREATE INDEX rings_mapping ON rings (mapping_id, seq);

CREATE TABLE jobs (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  delivery_seq bigint REFERENCES deliveries (seq) ON DELETE CASCADE,
  created_at bigint NOT NULL,
  run_at bigint NOT NULL,
  locked_until bigint,
  failing_since bigint,
  ended_at bigint,
  fence bigint NOT NULL DEFAULT 0,
  bytes bigint NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  id text COLLATE "C" NOT NULL UNIQUE,
  state text COLLATE "C" NOT NULL,
  lane text COLLATE "C",
  stands_for text COLLATE "C",
  agent_id text COLLATE "C" NOT NULL,
  session_key text COLLATE "C" NOT NULL,
  last_error text
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
  autovacuum_analyze_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX jobs_delivery ON jobs (delivery_seq);
CREATE INDEX jobs_queued ON jobs (seq) WHERE state = 'queued';
CREATE INDEX jobs_leased ON jobs (locked_until) WHERE state = 'running';
CREATE INDEX jobs_dead ON jobs (seq) WHERE state = 'dead';
CREATE INDEX jobs_lane ON jobs (lane, seq) WHERE lane IS NOT NULL AND ended_at IS NULL;
CREATE INDEX jobs_unlaned ON jobs (seq) WHERE lane IS NULL AND state = 'queued';
CREATE INDEX jobs_bytes ON jobs (seq) INCLUDE (bytes) WHERE ended_at IS NULL;
CREATE INDEX jobs_states ON jobs (state);
CREATE UNIQUE INDEX jobs_running ON jobs (lane) WHERE lane IS NOT NULL AND state = 'running';
CREATE INDEX jobs_standing ON jobs (stands_for) WHERE stands_for IS NOT NULL AND state = 'queued';
CREATE INDEX jobs_task ON jobs (stands_for, created_at) WHERE stands_for IS NOT NULL;

CREATE TABLE job_parts (
  job_seq bigint PRIMARY KEY REFERENCES jobs (seq) ON DELETE CASCADE,
  step_names text[] NOT NULL DEFAULT '{}',
  planned text NOT NULL,
  steps text NOT NULL,
  posts text NOT NULL DEFAULT '[]'
) WITH (fillfactor = 70);

CREATE TABLE events (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at bigint NOT NULL,
  consumed_at bigint,
  trusted smallint NOT NULL,
  wakes smallint NOT NULL,
  agent_id text COLLATE "C" NOT NULL,
  session_key text COLLATE "C" NOT NULL,
  source text NOT NULL,
  delivery_id text,
  text text NOT NULL
) WITH (fillfactor = 85);
CREATE INDEX events_waiting ON events (agent_id, session_key, seq) INCLUDE (wakes) WHERE consumed_at IS NULL;
CREATE INDEX events_at ON events (at);

CREATE TABLE sessions (
  agent_id text COLLATE "C" NOT NULL,
  session_key text COLLATE "C" NOT NULL,
  updated_at bigint NOT NULL,
  recipient_channel text,
  recipient_to text,
  runner_state text,
  PRIMARY KEY (agent_id, session_key)
) WITH (fillfactor = 70);
CREATE INDEX sessions_updated ON sessions (updated_at);

CREATE TABLE messages (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at bigint NOT NULL,
  agent_id text COLLATE "C" NOT NULL,
  session_key text COLLATE "C" NOT NULL,
  run_id text COLLATE "C" NOT NULL,
  role text NOT NULL,
  text text NOT NULL
);
CREATE INDEX messages_session ON messages (agent_id, session_key, seq);
CREATE INDEX messages_run ON messages (run_id);

CREATE TABLE task_names (
  stands_for text COLLATE "C" PRIMARY KEY
);

CREATE TABLE cursors (
  name text COLLATE "C" PRIMARY KEY,
  value text NOT NULL
);
`

/** leases: rights that only one gateway has at a time. events_wakes: with it, the search for waiting events reads only an index. */
const shared = `
CREATE TABLE leases (
  name text COLLATE "C" PRIMARY KEY,
  fence bigint NOT NULL,
  until bigint NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX events_wakes ON events (seq) WHERE consumed_at IS NULL AND wakes = 1;
`

const nodes = `
CREATE TABLE nodes (
  id text COLLATE "C" PRIMARY KEY,
  version text NOT NULL,
  generation text NOT NULL,
  address text NOT NULL,
  seen_at bigint NOT NULL
) WITH (fillfactor = 70);
ALTER TABLE deliveries ADD COLUMN node text;
`

const lockouts = `
CREATE TABLE lockouts (
  scope text COLLATE "C" NOT NULL,
  client text COLLATE "C" NOT NULL,
  count integer NOT NULL,
  since bigint NOT NULL,
  locked_until bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (scope, client)
) WITH (fillfactor = 70);
`

const repeats = `
CREATE TABLE repeats (
  seq bigint PRIMARY KEY REFERENCES deliveries (seq) ON DELETE CASCADE,
  times bigint NOT NULL,
  last_at bigint NOT NULL
) WITH (fillfactor = 70);
`

/** Waiting rows are read in the order of arrival, independent of the clocks of the gateways. */
const inOrder = `
DROP INDEX deliveries_open;
CREATE INDEX deliveries_open ON deliveries (seq) INCLUDE (bytes) WHERE state IN ('pending', 'parked');
DROP INDEX deliveries_waiting;
CREATE INDEX deliveries_waiting ON deliveries (waits_for, seq) WHERE state IN ('pending', 'parked');
`

/**
 * Most deliveries are accepted and most jobs done, so the indexes of the states contain only rows in other states. A wake adds to neither index.
 */
const rareStates = `
DROP INDEX deliveries_listed;
CREATE INDEX deliveries_listed ON deliveries (state, seq) WHERE state <> 'accepted';
DROP INDEX jobs_states;
CREATE INDEX jobs_states ON jobs (state) WHERE state <> 'done';
`

/** The runs that wait for another attempt after one that failed: usually few of those that wait. */
const failing = `CREATE INDEX jobs_failing ON jobs (seq) WHERE state = 'queued' AND (attempts > 0 OR failing_since IS NOT NULL)`

/** In order. Never edit a migration that was released; add another one. */
const migrations: readonly string[] = [
  first,
  shared,
  'ALTER TABLE deliveries ADD COLUMN failed_by text',
  nodes,
  lockouts,
  // before this migration, any hook could set the recipient of the channel `last`; the rows do not show which ones did
  'UPDATE sessions SET recipient_channel = NULL, recipient_to = NULL',
  repeats,
  inOrder,
  rareStates,
  flowSchema,
  quarantineSchema,
  'ALTER TABLE deliveries ADD COLUMN recovered smallint',
  budgetsSchema,
  deletionSchema,
  auditSchema,
  `ALTER TABLE jobs ADD COLUMN queued_again smallint NOT NULL DEFAULT 0;
    UPDATE jobs SET queued_again = 1 WHERE ended_at IS NULL AND run_at <> created_at`,
  'ALTER TABLE jobs ADD COLUMN failures text',
  failing,
  awaitsSchema,
  failedRunsSchema,
]

type MigrationQuery = (sql: string, ...params: number[]) => Promise<Row[]>

/**
 * Applies the missing migrations: call it only if `isMigrated` returns false, because its lock waits for a backup, which reads every table.
 * `shown`: the database, for errors. Throws `config-invalid` if a newer hookloom wrote it.
 */
export async function migrate(query: MigrationQuery, shown: string): Promise<void> {
  await query('CREATE TABLE IF NOT EXISTS hookloom_schema (version integer NOT NULL)')
  // not an advisory lock: a pooler may give it to another client
  await query('LOCK TABLE hookloom_schema IN EXCLUSIVE MODE')
  const version = await readVersion(query, shown)
  if (version === migrations.length) return
  for (const sql of migrations.slice(version)) await query(sql)
  await query('DELETE FROM hookloom_schema')
  await query('INSERT INTO hookloom_schema VALUES ($1)', migrations.length)
}

/** Whether there is nothing to migrate. Throws `config-invalid` if a newer hookloom wrote it. */
export async function isMigrated(query: MigrationQuery, shown: string): Promise<boolean> {
  return (await findVersion(query, shown)) === migrations.length
}

/**
 * Checks the schema for a reader. Throws `config-missing` if no gateway has used the database yet, and `config-invalid` if its schema is of
 * another version.
 */
export async function checkVersion(query: MigrationQuery, shown: string): Promise<void> {
  const version = await findVersion(query, shown)
  if (version === migrations.length) return
  if (version === 0) throw new Problem('config-missing', `There is no store in ${shown}. Start the gateway once.`)
  throw new Problem(
    'config-invalid',
    `The store in ${shown} has schema ${version}, and this hookloom reads schema ${migrations.length}. ` +
      'Start a gateway of this version: it updates the schema.',
  )
}

/** The version; 0 if there are no tables yet. */
async function findVersion(query: MigrationQuery, shown: string): Promise<number> {
  const [found] = await query(`SELECT to_regclass('hookloom_schema')::text AS name`)
  return found?.['name'] ? await readVersion(query, shown) : 0
}

async function readVersion(query: MigrationQuery, shown: string): Promise<number> {
  const [row] = await query('SELECT version FROM hookloom_schema')
  const version = Number(row?.['version'] ?? 0)
  if (version <= migrations.length) return version
  throw new Problem(
    'config-invalid',
    `The store in ${shown} was written by a newer hookloom (schema ${version}; this one knows ${migrations.length}). ` +
      'Update hookloom, or set another store.url.',
  )
}
