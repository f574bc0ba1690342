// The failed runs of deliveries by their cause, so that the list of causes reads neither the runs nor the deliveries, however many failed. Triggers keep
// both tables correct, whatever a statement does to a job. They write nothing for a run that never failed.
import { column } from '../rows.ts'
import { selectErrorOf, type Trouble, whereDead, whereFailing, whereTroubled } from '../troubles.ts'
import type { Database, Row } from './driver.ts'

const selectRuns = (
  condition: string,
) => `SELECT j.seq, j.state, d.hook, ${selectErrorOf('j')} AS error, j.delivery_seq, j.created_at
    FROM jobs j JOIN deliveries d ON d.seq = j.delivery_seq WHERE ${condition}`
/** Each half reads a partial index. */
const selectStored = `${selectRuns(whereDead('j'))} UNION ALL ${selectRuns(whereFailing('j'))}`

const remove = 'DELETE FROM failed_runs WHERE job_seq = old.seq;'
const selectOwn = `SELECT new.state, hook, ${selectErrorOf('new')} FROM deliveries WHERE seq = new.delivery_seq`
const add = `
  INSERT OR IGNORE INTO causes (state, hook, error) ${selectOwn};
  INSERT INTO failed_runs SELECT new.seq, id, new.delivery_seq, new.created_at FROM causes WHERE (state, hook, error) = (${selectOwn});`

/** failed_runs.at: when the run was stored. A run that is claimed again is in neither table until it fails again. */
export const failedRunsSchema = `
CREATE TABLE causes (
  id INTEGER PRIMARY KEY,
  state TEXT NOT NULL,
  hook TEXT NOT NULL,
  error TEXT NOT NULL,
  UNIQUE (state, hook, error)
) STRICT;
CREATE TABLE failed_runs (
  job_seq INTEGER PRIMARY KEY,
  cause INTEGER NOT NULL,
  delivery_seq INTEGER NOT NULL,
  at INTEGER NOT NULL
) STRICT;
INSERT INTO causes (state, hook, error) SELECT DISTINCT state, hook, error FROM (${selectStored});
INSERT INTO failed_runs SELECT s.seq, c.id, s.delivery_seq, s.created_at
  FROM (${selectStored}) s JOIN causes c ON (c.state, c.hook, c.error) = (s.state, s.hook, s.error);
CREATE INDEX failed_runs_cause ON failed_runs (cause, delivery_seq, at);
CREATE TRIGGER failed_runs_deleted AFTER DELETE ON failed_runs BEGIN
  DELETE FROM causes WHERE id = old.cause AND NOT EXISTS (SELECT 1 FROM failed_runs WHERE cause = old.cause);
END;
CREATE TRIGGER jobs_failed AFTER INSERT ON jobs WHEN ${whereTroubled('new')} BEGIN ${add} END;
CREATE TRIGGER jobs_fail AFTER UPDATE OF state, attempts, failing_since, last_error ON jobs WHEN ${whereTroubled('new')} BEGIN ${remove} ${add} END;
CREATE TRIGGER jobs_recover AFTER UPDATE OF state, attempts, failing_since ON jobs WHEN ${whereTroubled('old')} AND NOT (${whereTroubled('new')}) BEGIN ${remove} END;
CREATE TRIGGER jobs_fail_deleted AFTER DELETE ON jobs WHEN ${whereTroubled('old')} BEGIN ${remove} END;
`

const ranked = `SELECT dense_rank() OVER (ORDER BY state, hook, error) AS cause, * FROM (${selectStored})`
/** The tables for a file that lacks them. */
export const failedRunsViews = `CREATE TEMP VIEW causes AS SELECT DISTINCT cause AS id, state, hook, error FROM (${ranked});
CREATE TEMP VIEW failed_runs AS SELECT seq AS job_seq, cause, delivery_seq, created_at AS at FROM (${ranked})`

/** Visits one index entry of each failed run. */
const selectCauses = `SELECT c.state, c.error, c.hook, c.id, r.count, r.since, r.newest
  FROM (SELECT cause, count(DISTINCT delivery_seq) AS count, min(at) AS since, max(delivery_seq) AS newest FROM failed_runs GROUP BY cause) r
    CROSS JOIN causes c ON c.id = r.cause`
const selectNewest = `SELECT r.seq, r.at, d.id
  FROM (SELECT delivery_seq AS seq, min(at) AS at FROM failed_runs WHERE cause = ? GROUP BY delivery_seq ORDER BY delivery_seq DESC LIMIT ?) r
    CROSS JOIN deliveries d ON d.seq = r.seq ORDER BY r.seq DESC`

export function findTroubles(db: Database, query: { limit: number; each: number }): Trouble[] {
  const causes = db
    .all(selectCauses)
    .toSorted((one, other) => Number(other['newest']) - Number(one['newest']))
    .slice(0, query.limit)
  const depth = findDepth(causes, query)
  return causes
    .flatMap((cause) => buildTroubles(cause, db.all(selectNewest, column(cause, 'id'), depth)))
    .toSorted((one, other) => one.place - other.place || other.seq - one.seq)
    .slice(0, query.limit)
    .map(({ trouble }) => trouble)
}

/** How many deliveries of each cause are enough for `limit` in all. */
function findDepth(causes: readonly Row[], { limit, each }: { limit: number; each: number }): number {
  const countTo = (depth: number) => causes.reduce((sum, row) => sum + Math.min(depth, Number(row['count'])), 0)
  let depth = 1
  while (depth < each && countTo(depth) < limit) depth += 1
  return depth
}

/** `runs`: the newest deliveries of the cause, the newest first. */
function buildTroubles(cause: Row, runs: readonly Row[]): { seq: number; place: number; trouble: Trouble }[] {
  const group = {
    state: column<Trouble['state']>(cause, 'state'),
    error: column<string>(cause, 'error'),
    hook: column<string>(cause, 'hook'),
    count: Number(cause['count']),
    since: Number(cause['since']),
  }
  return runs.map((run, place) => {
    const trouble = { ...group, deliveryId: column<string>(run, 'id'), at: Number(run['at']) }
    return { seq: Number(run['seq']), place, trouble }
  })
}
