// The tables that only the scripts of `Store` read and write: ../plain.ts.

export const auditSchema = `
CREATE TABLE audit (
  number bigint PRIMARY KEY,
  at bigint NOT NULL,
  hash text NOT NULL,
  entry text NOT NULL
);
`

export const quarantineSchema = `
CREATE TABLE quarantine (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  received_at bigint NOT NULL,
  bytes bigint NOT NULL,
  known smallint NOT NULL,
  id text COLLATE "C" NOT NULL UNIQUE,
  hook text COLLATE "C" NOT NULL,
  label text COLLATE "C" NOT NULL,
  network text COLLATE "C" NOT NULL,
  key_id text NOT NULL,
  refusal text NOT NULL,
  sealed bytea NOT NULL
);
`

export const budgetsSchema = `
CREATE TABLE accounts (
  name text COLLATE "C" NOT NULL,
  starts_at bigint NOT NULL,
  nanos bigint NOT NULL DEFAULT 0,
  tokens bigint NOT NULL DEFAULT 0,
  turns bigint NOT NULL DEFAULT 0,
  raised_nanos bigint NOT NULL DEFAULT 0,
  raised_tokens bigint NOT NULL DEFAULT 0,
  raised_turns bigint NOT NULL DEFAULT 0,
  alerted integer NOT NULL DEFAULT 0,
  PRIMARY KEY (name, starts_at)
) WITH (fillfactor = 70);
CREATE TABLE reservations (
  name text COLLATE "C" NOT NULL,
  job_id text COLLATE "C" NOT NULL,
  fence bigint NOT NULL,
  starts_at bigint NOT NULL,
  nanos bigint NOT NULL,
  tokens bigint NOT NULL,
  turns bigint NOT NULL,
  PRIMARY KEY (name, job_id)
);
ALTER TABLE jobs ADD COLUMN budget text COLLATE "C";
CREATE INDEX jobs_budget ON jobs (budget, seq) WHERE budget IS NOT NULL AND state = 'queued';
`
