// The schema only moves forward. `user_version` counts the migrations that a file has; a file that has more than this code is refused.
import { Problem } from '../../model/problem.ts'
import type { Database } from './driver.ts'

/**
 * Times are milliseconds since the epoch. `seq` is the order of arrival.
 *
 * jobs.gate: 0 may be claimed · 1 behind another job of its lane · 2 waits for its run_at. Of the unfinished jobs of a lane
 * at most one has a gate other than 1. The partial indexes keep a claim independent of the backlog and of the finished jobs.
 * Wide columns come last: SQLite reads a row only as far as the last column asked for.
 *
 * events_waiting holds consumed_at although it is always NULL there: without it SQLite looks into every row.
 * jobs.stands_for: of a job that no delivery caused, and of no other.
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

/** In order. Never edit one that has shipped: add another. */
const migrations: readonly string[] = [first]

/** How many migrations a file has. Throws `config-invalid` when a newer hookloom wrote it. */
export function toSchemaVersion(db: Database, file: string): number {
  const version = Number(db.get('PRAGMA user_version')?.['user_version'])
  if (version <= migrations.length) return version
  throw new Problem(
    'config-invalid',
    `${file} was written by a newer hookloom (schema ${version}; this one knows ${migrations.length}). ` +
      'Update hookloom, or give it another store.file.',
  )
}

/** Brings a file to the newest schema, each step a transaction of its own. */
export function migrate(db: Database, file: string): void {
  const version = toSchemaVersion(db, file)
  for (const [index, sql] of migrations.entries()) {
    if (index >= version) db.exec(`BEGIN IMMEDIATE; ${sql}; PRAGMA user_version = ${index + 1}; COMMIT`)
  }
}
