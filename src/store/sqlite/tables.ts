// The tables that only the scripts of `Store` read and write: ../plain.ts.
import { selectAwaits, someAwait } from '../awaits.ts'

export const auditSchema = `
CREATE TABLE audit (
  number INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  hash TEXT NOT NULL,
  entry TEXT NOT NULL
) STRICT;
`

/** The index has all columns that decide which requests are deleted, so that no body is read for it. */
export const quarantineSchema = `
CREATE TABLE quarantine (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  received_at INTEGER NOT NULL,
  hook TEXT NOT NULL,
  label TEXT NOT NULL,
  network TEXT NOT NULL,
  known INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  key_id TEXT NOT NULL,
  refusal TEXT NOT NULL,
  sealed BLOB NOT NULL
) STRICT;
CREATE INDEX quarantine_shares ON quarantine (label, network, seq, known, bytes, received_at);
`

/** starts_at: the start of the period. alerted: the percentage of the last alert to the operator. nanos: billionths of a US dollar. */
export const budgetsSchema = `
CREATE TABLE accounts (
  name TEXT NOT NULL,
  starts_at INTEGER NOT NULL,
  nanos INTEGER NOT NULL DEFAULT 0,
  tokens INTEGER NOT NULL DEFAULT 0,
  turns INTEGER NOT NULL DEFAULT 0,
  raised_nanos INTEGER NOT NULL DEFAULT 0,
  raised_tokens INTEGER NOT NULL DEFAULT 0,
  raised_turns INTEGER NOT NULL DEFAULT 0,
  alerted INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (name, starts_at)
) STRICT, WITHOUT ROWID;
CREATE TABLE reservations (
  name TEXT NOT NULL,
  job_id TEXT NOT NULL,
  fence INTEGER NOT NULL,
  starts_at INTEGER NOT NULL,
  nanos INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  turns INTEGER NOT NULL,
  PRIMARY KEY (name, job_id)
) STRICT, WITHOUT ROWID;
ALTER TABLE jobs ADD COLUMN budget TEXT;
CREATE INDEX jobs_budget ON jobs (budget, seq) WHERE budget IS NOT NULL AND state = 'queued';
`

export const repeatsSchema = `
CREATE TABLE repeats (
  seq INTEGER PRIMARY KEY REFERENCES deliveries (seq) ON DELETE CASCADE,
  times INTEGER NOT NULL,
  last_at INTEGER NOT NULL
) STRICT;
`

const sessionKey = `(CASE new.planned WHEN '' THEN d.plan ELSE new.planned END ->> '$.sessionKey')`
const waits = selectAwaits({ hook: 'd.hook', key: sessionKey, char: 'char' })

/** Completes the waits for a delivery when its run is stored. Two numbers are a wait that goes on. */
export const awaitsSchema = `
CREATE TRIGGER jobs_awaited AFTER INSERT ON jobs WHEN new.delivery_seq IS NOT NULL AND ${someAwait} BEGIN
  UPDATE cursors SET value = value || ' ' || (SELECT id FROM deliveries WHERE seq = new.delivery_seq) WHERE name IN (
    SELECT c.name FROM deliveries d CROSS JOIN cursors c ON c.name >= ${waits.from} AND c.name < ${waits.to}
    WHERE d.seq = new.delivery_seq AND c.value NOT GLOB '* * *' AND CAST(substr(c.value, instr(c.value, ' ')) AS INTEGER) > new.created_at);
END;
`
