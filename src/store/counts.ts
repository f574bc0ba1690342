// Counts of deliveries and jobs: a restart does not lose them, and they are the same on every gateway of a store.
import type { DeliveryState } from '../core/model/delivery.ts'
import type { JobState } from '../model/api/answers.ts'
import { column, type Row } from './rows.ts'
import { run, type Script } from './script.ts'
import type { SpentReader } from './spent.ts'

const spans = { minute: 60_000, hour: 3_600_000 }

/** The deliveries of a hook that arrived in one minute, or hour, and are in one state now. `at`: its start, in milliseconds since the epoch. */
export type Tally = {
  readonly at: number
  readonly hook: string
  readonly state: DeliveryState
  readonly count: number
}

/** `since`: a moment. `every`: what is counted together. Default: `minute`. `before`, `from`: as for `deliveries`. */
export type TallyQuery = {
  readonly since: number
  readonly every?: keyof typeof spans | undefined
  readonly before?: string | undefined
  readonly from?: string | undefined
}

export interface CountReader extends SpentReader {
  /** The number of deliveries and of jobs in each state, for `hookloom doctor` and /metrics. */
  counts(): Promise<{ deliveries: Record<DeliveryState, number>; jobs: Record<JobState, number> }>
  /** The number of deliveries in a state. Reads only an index; but Postgres reads the table for `accepted`, and SQLite also the rows that its catalog lacks. */
  countInState(state: DeliveryState): Promise<number>
  /** The number of parked deliveries that wait for a module, or for `someMapping`. Reads no requests. */
  countParkedFor(name: string): Promise<number>

  /** Counts the deliveries that were received at `since` or later. It reads each row between `from` and `before`, so the caller decides how long it takes. */
  tally(query: TallyQuery): Promise<Tally[]>
  /** The number of deliveries that arrived before one. */
  countBefore(id: string): Promise<number>
}

/** `end` is greater than every seq, and `start` is less. */
const end = Number.MAX_SAFE_INTEGER
const start = -end

/** The place of a delivery; before all others if the store does not have it. */
function* findPlace(id: string): Script<number> {
  const [row] = yield* run('SELECT seq FROM deliveries WHERE id = $1', id)
  return Number(row?.['seq'] ?? start)
}

export function* tally({ since, every = 'minute', before, from }: TallyQuery): Script<Tally[]> {
  const last = before === undefined ? end : yield* findPlace(before)
  const first = from === undefined ? start : yield* findPlace(from)
  const sql = `SELECT start, hook, state, count(*) AS count FROM
      (SELECT received_at - received_at % ${spans[every]} AS start, hook, state FROM deliveries
        WHERE seq < $1 AND seq >= $2 AND received_at >= $3) d
    GROUP BY start, hook, state ORDER BY start, hook, state`
  return (yield* run(sql, last, first, since)).map(toTally)
}

function toTally(row: Row): Tally {
  return {
    at: Number(row['start']),
    hook: column(row, 'hook'),
    state: column<DeliveryState>(row, 'state'),
    count: Number(row['count']),
  }
}

export function* countBefore(id: string): Script<number> {
  // the number of all rows comes from an index, so that only the few newest rows are read
  const sql = `SELECT (SELECT count(*) FROM deliveries) - (SELECT count(*) FROM deliveries WHERE seq >= $1) AS count`
  const place = yield* findPlace(id)
  return place === start ? 0 : Number((yield* run(sql, place))[0]?.['count'] ?? 0)
}
