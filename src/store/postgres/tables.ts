// The tables that only the scripts of `Store` read and write: ../plain.ts.
import { selectAwaits, someAwait } from '../awaits.ts'

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

const waits = selectAwaits({ hook: 'd.hook', key: 'a.session_key', char: 'chr' })
/** Two numbers are a wait that goes on. */
const awaited = `FROM added a JOIN deliveries d ON d.seq = a.delivery_seq
        JOIN cursors c ON c.name >= ${waits.from} COLLATE "C" AND c.name < ${waits.to} COLLATE "C"
      WHERE split_part(c.value, ' ', 3) = '' AND split_part(c.value, ' ', 2) > a.created_at::text`

/**
 * Completes the waits for deliveries whose runs a statement stores. They are locked in a fixed order, so that two gateways do not block each other.
 * The search path is that of the migration, because a restore has none.
 */
export const awaitsSchema = `
CREATE FUNCTION hookloom_jobs_awaited() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
  IF ${someAwait} THEN
    PERFORM 1 FROM cursors WHERE name IN (SELECT c.name ${awaited}) ORDER BY name FOR UPDATE;
    UPDATE cursors SET value = value || ' ' || came.id FROM (SELECT c.name, min(d.id) AS id ${awaited} GROUP BY c.name) came
    WHERE cursors.name = came.name;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER jobs_awaited AFTER INSERT ON jobs REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION hookloom_jobs_awaited();
`
