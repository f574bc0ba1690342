// The failed runs of deliveries, each with what its cause consists of, so that the list of causes reads neither the runs nor the deliveries, however many
// failed. A trigger keeps the table correct, whatever a statement does to a job. It writes nothing for a run that never failed.
import { column, type Row } from '../rows.ts'
import { selectErrorOf, type Trouble, whereDead, whereFailing, whereTroubled } from '../troubles.ts'
import type { Query } from './pool.ts'

const insertRuns = (from: string) => `INSERT INTO failed_runs
  SELECT j.seq, j.delivery_seq, j.created_at, j.state, d.hook, ${selectErrorOf('j')} FROM ${from} d ON d.seq = j.delivery_seq`

/** failed_runs.at: when the run was stored. A run that is claimed again is not in the table until it fails again. The search path is that of the migration. */
export const failedRunsSchema = `
CREATE TABLE failed_runs (
  job_seq bigint PRIMARY KEY,
  delivery_seq bigint NOT NULL,
  at bigint NOT NULL,
  state text NOT NULL,
  hook text COLLATE "C" NOT NULL,
  error text COLLATE "C" NOT NULL
);
${[whereDead('j'), whereFailing('j')].map((condition) => `${insertRuns('jobs j JOIN deliveries')} WHERE ${condition};`).join('\n')}
CREATE FUNCTION hookloom_jobs_failed() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
  IF TG_OP <> 'INSERT' THEN DELETE FROM failed_runs WHERE job_seq = OLD.seq; END IF;
  IF TG_OP <> 'DELETE' AND ${whereTroubled('NEW')} THEN ${insertRuns('(SELECT NEW.*) j JOIN deliveries')}; END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER jobs_failed AFTER INSERT ON jobs FOR EACH ROW WHEN (${whereTroubled('NEW')}) EXECUTE FUNCTION hookloom_jobs_failed();
CREATE TRIGGER jobs_fail AFTER UPDATE OF state, attempts, failing_since, last_error ON jobs FOR EACH ROW
  WHEN (${whereTroubled('OLD')} OR ${whereTroubled('NEW')}) EXECUTE FUNCTION hookloom_jobs_failed();
CREATE TRIGGER jobs_fail_deleted AFTER DELETE ON jobs FOR EACH ROW WHEN (${whereTroubled('OLD')}) EXECUTE FUNCTION hookloom_jobs_failed();
`

/** One aggregate over all failed runs: a sort of all of them would take twice as long. */
const selectCauses = `SELECT state, error, hook, string_agg(delivery_seq::text || ' ' || at::text, ',') AS runs
  FROM failed_runs GROUP BY state, error, hook`

export async function readTroubles(query: Query, { limit, each }: { limit: number; each: number }): Promise<Trouble[]> {
  const chosen = (await query(selectCauses))
    .flatMap((cause) => listNewest(cause, each))
    .toSorted((one, other) => one.place - other.place || other.seq - one.seq)
    .slice(0, limit)
  const seqs = chosen.map(({ seq }) => seq)
  const rows = await query('SELECT seq, id FROM deliveries WHERE seq = ANY ($1::bigint[])', seqs)
  const ids = new Map(rows.map((row) => [Number(row['seq']), column<string>(row, 'id')]))
  return chosen.flatMap(({ seq, trouble }): Trouble[] => {
    const deliveryId = ids.get(seq)
    return deliveryId === undefined ? [] : [{ ...trouble, deliveryId }]
  })
}

type Chosen = { readonly seq: number; readonly place: number; readonly trouble: Omit<Trouble, 'deliveryId'> }

/** The newest deliveries of a cause. `runs` has the seq of the delivery of each run, and when the run was stored. */
function listNewest(row: Row, each: number): Chosen[] {
  const firstRuns = new Map<number, number>()
  for (const pair of column<string>(row, 'runs').split(',')) {
    const [seq = 0, at = 0] = pair.split(' ').map(Number)
    firstRuns.set(seq, Math.min(at, firstRuns.get(seq) ?? at))
  }
  const group = {
    state: column<Trouble['state']>(row, 'state'),
    error: column<string>(row, 'error'),
    hook: column<string>(row, 'hook'),
    count: firstRuns.size,
    since: [...firstRuns.values()].reduce((first, at) => Math.min(first, at)),
  }
  const newest = [...firstRuns].toSorted(([one], [other]) => other - one).slice(0, each)
  return newest.map(([seq, at], place) => ({ seq, place, trouble: { ...group, at } }))
}
