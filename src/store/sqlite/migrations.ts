// The schema. Migrations only go forward: `user_version` is the number of migrations applied to a file, and a file with more
// migrations than this code has is refused.
import { Problem } from '../../core/model/problem.ts'
import type { Database } from './driver.ts'
import { flowSchema } from './flow.ts'
import { auditSchema, awaitsSchema, budgetsSchema, quarantineSchema, repeatsSchema } from './tables.ts'
import { nodesSchema } from './nodes.ts'
import { sumsSchema } from './sums.ts'
import { failedRunsSchema } from './troubles.ts'
import { catalogSchema, completeFirstCatalog, eventTimesSchema, listedByHook } from './catalog.ts'
import { dropStoredWaitingBytes, storedWaitingBytes } from './waiting-bytes.ts'

/**
 * Times are milliseconds since the epoch. `seq` is the order of arrival.
 *
 * jobs.fence: a random number; 0 if the job was never claimed, or was queued again without losing its lease.
 * jobs.gate: 0 = may be claimed, 1 = another job of its lane comes first, 2 = waits for its run_at; 3 and 4: see flow.ts. At most one
 * unfinished job of a lane has a gate other than 1. jobs.stands_for is set for tasks only. jobs.queued_again: 1 if the job ran or died, and
 * was then queued.
 *
 * events_waiting contains consumed_at, which is always NULL there, because SQLite otherwise reads every row of the table.
 * Wide columns come last, because SQLite reads a row only up to the last column that a statement needs.
 */
const first = `
CREATE TABLE deliveries (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  received_at INTEGER NOT NULL,
  settled_at INTEGER,
  state TEXT NOT NULL,
  hook TEXT NOT NULL,
  source TEXT,
  event TEXT,
  mapping_id TEXT,
  generation TEXT NOT NULL,
  transform_hash TEXT,
  waits_for TEXT,
  dedupe_key TEXT,
  body_hash TEXT,
  body_differed INTEGER NOT NULL DEFAULT 0,
  answer_status INTEGER NOT NULL,
  answer_body TEXT NOT NULL,
  problem TEXT,
  trace TEXT NOT NULL,
  log TEXT NOT NULL,
  head TEXT,
  body BLOB
) STRICT;
CREATE UNIQUE INDEX deliveries_key ON deliveries (hook, dedupe_key) WHERE dedupe_key IS NOT NULL;
CREATE INDEX deliveries_state ON deliveries (state);
CREATE INDEX deliveries_open ON deliveries (received_at) WHERE state IN ('pending', 'parked');
CREATE INDEX deliveries_waiting ON deliveries (waits_for, received_at) WHERE state IN ('pending', 'parked');

CREATE TABLE jobs (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  delivery_seq INTEGER REFERENCES deliveries (seq) ON DELETE CASCADE,
  lane TEXT,
  state TEXT NOT NULL,
  gate INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  run_at INTEGER NOT NULL,
  locked_until INTEGER,
  fence INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0,
  ended_at INTEGER,
  stands_for TEXT,
  last_error TEXT,
  steps TEXT NOT NULL,
  posts TEXT NOT NULL DEFAULT '[]',
  planned TEXT NOT NULL
) STRICT;
CREATE INDEX jobs_delivery ON jobs (delivery_seq);
CREATE INDEX jobs_queued ON jobs (gate, seq) WHERE state = 'queued';
CREATE INDEX jobs_later ON jobs (run_at) WHERE state = 'queued' AND gate = 2;
CREATE INDEX jobs_leased ON jobs (locked_until) WHERE state = 'running';
CREATE INDEX jobs_dead ON jobs (seq) WHERE state = 'dead';
CREATE INDEX jobs_lane ON jobs (lane, seq) WHERE lane IS NOT NULL AND ended_at IS NULL;
CREATE INDEX jobs_standing ON jobs (stands_for) WHERE stands_for IS NOT NULL AND state = 'queued';
CREATE INDEX jobs_task ON jobs (stands_for, created_at) WHERE stands_for IS NOT NULL;

CREATE TABLE events (
  seq INTEGER PRIMARY KEY,
  agent_id TEXT NOT NULL,
  session_key TEXT NOT NULL,
  at INTEGER NOT NULL,
  consumed_at INTEGER,
  trusted INTEGER NOT NULL,
  wakes INTEGER NOT NULL,
  source TEXT NOT NULL,
  delivery_id TEXT,
  text TEXT NOT NULL
) STRICT;
CREATE INDEX events_waiting ON events (agent_id, session_key, wakes, consumed_at) WHERE consumed_at IS NULL;

CREATE TABLE sessions (
  agent_id TEXT NOT NULL,
  session_key TEXT NOT NULL,
  updated_at INTEGER NOT NULL,
  recipient_channel TEXT,
  recipient_to TEXT,
  runner_state TEXT,
  PRIMARY KEY (agent_id, session_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_updated ON sessions (updated_at);

CREATE TABLE messages (
  seq INTEGER PRIMARY KEY,
  agent_id TEXT NOT NULL,
  session_key TEXT NOT NULL,
  at INTEGER NOT NULL,
  role TEXT NOT NULL,
  run_id TEXT NOT NULL,
  text TEXT NOT NULL
) STRICT;
CREATE INDEX messages_session ON messages (agent_id, session_key);

CREATE TABLE cursors (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
`

/**
 * `deliveries_listed` replaces the index of the state alone. It has the columns by which lists filter and search, so that a search reads no row;
 * within a state, it is in the order of arrival.
 */
const listed = `
DROP INDEX deliveries_state;
CREATE INDEX deliveries_listed ON deliveries (state, seq, hook, source, event, mapping_id, id);
CREATE INDEX messages_run ON messages (run_id);
`

/**
 * rings: the deliveries whose requests count as the newest of their mapping; mapping_id is empty for those without a mapping.
 * The table is separate, so a delivery whose request is not kept writes no row. An empty head: the request was too large to keep.
 */
const rings = `
CREATE TABLE rings (
  seq INTEGER PRIMARY KEY REFERENCES deliveries (seq) ON DELETE CASCADE,
  mapping_id TEXT NOT NULL
) STRICT;
CREATE INDEX rings_mapping ON rings (mapping_id, seq);
CREATE INDEX deliveries_kept ON deliveries (seq) WHERE head IS NOT NULL;
`

/** Before this migration, any hook could set the recipient of the channel `last`. The rows do not show which ones did. */
const forgetRecipients = 'UPDATE sessions SET recipient_channel = NULL, recipient_to = NULL'
/** Waiting rows are read in the order of arrival, independent of the clocks. */
const inOrder = `
DROP INDEX deliveries_open;
CREATE INDEX deliveries_open ON deliveries (seq) WHERE state IN ('pending', 'parked');
DROP INDEX deliveries_waiting;
CREATE INDEX deliveries_waiting ON deliveries (waits_for, seq) WHERE state IN ('pending', 'parked');
`

/**
 * deliveries.plan: the plan of its only job. An accepted wake is one row of deliveries and one of events, in four B-trees: the columns
 * wake_* are its job, which was done when it was stored. wake_event is the seq of its event, whose text and source are in the plan.
 *
 * jobs_open has the unfinished jobs, so that its size does not grow with the history. jobs_lane begins with the first job of a lane:
 * the one whose gate is not 1. It is unique, so a lane has one such job, and a second running job of a lane is impossible.
 */
const slim = `
${dropStoredWaitingBytes}
ALTER TABLE deliveries ADD COLUMN wake_id TEXT;
ALTER TABLE deliveries ADD COLUMN wake_event INTEGER;
ALTER TABLE deliveries ADD COLUMN wake_steps TEXT;
ALTER TABLE deliveries ADD COLUMN plan TEXT;
ALTER TABLE events ADD COLUMN delivery_seq INTEGER;
UPDATE jobs SET gate = 1 WHERE lane IS NOT NULL AND ended_at IS NULL AND state = 'queued' AND gate <> 1 AND EXISTS (
  SELECT 1 FROM jobs o WHERE o.lane = jobs.lane AND o.ended_at IS NULL AND o.gate <> 1 AND o.seq <> jobs.seq
    AND (o.state = 'running' OR o.seq < jobs.seq));
DROP INDEX jobs_delivery;
DROP INDEX jobs_queued;
DROP INDEX jobs_leased;
DROP INDEX jobs_lane;
DROP INDEX jobs_running;
CREATE INDEX jobs_open ON jobs (state, gate) WHERE ended_at IS NULL;
CREATE UNIQUE INDEX jobs_lane ON jobs (lane, CASE gate WHEN 1 THEN seq ELSE 0 END) WHERE lane IS NOT NULL AND ended_at IS NULL;
DROP INDEX deliveries_listed;
DROP INDEX messages_session;
DROP INDEX messages_run;
${catalogSchema}
`

/** The runs that wait for another attempt after one that failed: usually few of those that wait. */
const failing = `CREATE INDEX jobs_failing ON jobs (seq) WHERE state = 'queued' AND (attempts > 0 OR failing_since IS NOT NULL)`

/** In order. Never edit a migration that was released; add another one. */
const migrations: readonly string[] = [
  first,
  storedWaitingBytes,
  'ALTER TABLE jobs ADD COLUMN failing_since INTEGER',
  listed,
  rings,
  `CREATE UNIQUE INDEX jobs_running ON jobs (lane) WHERE lane IS NOT NULL AND state = 'running'`,
  'ALTER TABLE deliveries ADD COLUMN failed_by TEXT',
  nodesSchema,
  forgetRecipients,
  repeatsSchema,
  inOrder,
  `CREATE INDEX jobs_dropped ON jobs (seq) WHERE state = 'dropped'`,
  slim,
  flowSchema,
  quarantineSchema,
  'ALTER TABLE deliveries ADD COLUMN recovered INTEGER',
  budgetsSchema,
  auditSchema,
  `ALTER TABLE jobs ADD COLUMN queued_again INTEGER NOT NULL DEFAULT 0;
    UPDATE jobs SET queued_again = 1 WHERE ended_at IS NULL AND run_at <> created_at`,
  'ALTER TABLE jobs ADD COLUMN failures TEXT',
  `CREATE INDEX jobs_preceded ON jobs (gate, run_at) WHERE gate = 1 AND stands_for IS NOT NULL AND state = 'queued'`,
  failing,
  eventTimesSchema,
  listedByHook,
  awaitsSchema,
  sumsSchema,
  failedRunsSchema,
]

/** The number of migrations applied to a file. Throws `config-invalid` if a newer hookloom wrote the file. */
export function readSchemaVersion(db: Database, file: string): number {
  const version = Number(db.get('PRAGMA user_version')?.['user_version'])
  if (version <= migrations.length) return version
  throw new Problem(
    'config-invalid',
    `${file} was written by a newer hookloom (schema ${version}; this one knows ${migrations.length}). ` +
      'Update hookloom, or set another store.file.',
  )
}

/**
 * Applies the missing migrations in one transaction, so that readers of the file never see a schema between two versions. `upTo`: applies only
 * this many, as an older version did.
 */
export function migrate(db: Database, file: string, upTo = migrations.length): void {
  if (readSchemaVersion(db, file) >= upTo) return
  db.exec('BEGIN IMMEDIATE')
  applyMigrations(db, file, upTo)
  db.exec('COMMIT')
}

/** As `migrate`, in a transaction of the caller. */
export function applyMigrations(db: Database, file: string, upTo = migrations.length): void {
  const version = readSchemaVersion(db, file)
  if (version >= upTo) return
  for (const sql of migrations.slice(version, upTo)) {
    db.exec(sql)
    if (sql === slim) completeFirstCatalog(db)
  }
  db.exec(`PRAGMA user_version = ${upTo}`)
}
