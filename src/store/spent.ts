// What runs used, by day, hook, agent and model: read from the rows of the runs themselves, in steps, so that the reading delays no other request.
import { clockMs } from './queries.ts'
import { column, type Row } from './rows.ts'
import { type Dialect, run, type Script } from './script.ts'

const dayMs = 86_400_000

export type SpentQuery = {
  /** Only runs that were stored then or later. The first day begins then. */
  readonly since: number
  /** `next` of the newer step; undefined for the newest runs. */
  readonly before?: number | undefined
  /** The number of runs that one step reads. */
  readonly rows: number
}

/** What one run, or several together, used. `costUsd`: what the runners reported; undefined if none did. */
type Used = {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cachedInputTokens: number
  readonly cacheWriteTokens: number
  readonly costUsd: number | undefined
}

/** Runs of one day with the same hook, agent, model, state and duration. */
export type Spent = Used & {
  /** The number of days after `since`. */
  readonly day: number
  /** Empty for a heartbeat. */
  readonly hook: string
  readonly agentId: string
  /** The model that answered; empty if it is not known. */
  readonly model: string
  /** `failing`: the last attempt failed, and another one is due. `ended`: by a person or by its flow. */
  readonly state: 'done' | 'dead' | 'failing' | 'waiting' | 'ended'
  /** From the moment when the run was stored to its end, rounded down to one digit and zeros; undefined if it is not done. */
  readonly tookMs: number | undefined
  readonly runs: number
  /** How many of the runs say what they used. */
  readonly counted: number
  /** The delivery with the run that used most of all runs of its day, hook, agent and model; undefined if it is in another group. */
  readonly dearest: (Used & { readonly deliveryId: string }) | undefined
}

export interface SpentReader {
  /** The runs of one step, grouped by one statement. `next`: undefined if no older run is of the asked time. */
  spent(query: SpentQuery): Promise<{ readonly groups: Spent[]; readonly next: number | undefined }>
}

const phase = `CASE WHEN s.state = 'queued' AND (attempts > 0 OR failing_since IS NOT NULL) THEN 'failing'
  WHEN s.state IN ('queued', 'running') THEN 'waiting' WHEN s.state IN ('done', 'dead') THEN s.state ELSE 'ended' END`
const took = `CASE WHEN s.state = 'done' AND ended_at IS NOT NULL THEN ended_at - created_at END`
/** 0, 10, 20 … 90, 100, 200 … 900, 1000 and so on. */
const rounded = `CASE ${[10, 100, 1_000, 10_000, 100_000]
  .map((unit) => `WHEN took < ${10 * unit} THEN took / ${unit} * ${unit}`)
  .join(' ')} ELSE took / 1000000 * 1000000 END`
/** An output token costs about as much as five input tokens. */
const weight = 'coalesce(cost, 0) DESC, coalesce(input, 0) + 5 * coalesce(output, 0) DESC, seq'
const usedNames = ['input', 'output', 'cached', 'written', 'cost']
const dearest = usedNames.map((name) => `max(CASE WHEN place = 1 THEN ${name} END) AS most_${name}`)
const sums = ['input', 'output', 'cached', 'written'].map((name) => `CAST(sum(${name}) AS bigint) AS ${name}`)

/** `dialect.runs` has a row for each run, with the usage of its step `run`. */
export function* readSpent(
  { since, before, rows }: SpentQuery,
  dialect: Dialect,
): Script<{
  groups: Spent[]
  next: number | undefined
}> {
  const sql = `WITH step AS (SELECT * FROM (${dialect.runs}) r WHERE seq < $1 ORDER BY seq DESC LIMIT $2),
      named AS (SELECT s.*, coalesce(d.hook, '') AS hook, d.id AS delivery, ${phase} AS phase, ${took} AS took,
        CASE WHEN created_at < CAST($3 AS bigint) THEN -1 ELSE (created_at - CAST($3 AS bigint)) / ${dayMs} END AS day
        FROM step s LEFT JOIN deliveries d ON d.seq = s.delivery_seq),
      placed AS (SELECT n.*, row_number() OVER (PARTITION BY day, hook, agent, model ORDER BY ${weight}) AS place FROM named n)
    SELECT day, hook, agent, model, phase, ${rounded} AS bucket, count(*) AS runs, count(input) AS counted,
      ${sums.join(', ')}, sum(cost) AS cost, min(seq) AS first, min(created_at) AS oldest,
      max(CASE WHEN place = 1 AND input IS NOT NULL THEN delivery END) AS dearest, ${dearest.join(', ')}
    FROM placed GROUP BY day, hook, agent, model, phase, ${rounded}`
  const found = yield* run(sql, before ?? Number.MAX_SAFE_INTEGER, rows, since)
  const least = (name: string) => found.reduce((known, row) => Math.min(known, Number(row[name])), Infinity)
  const read = found.reduce((count, row) => count + Number(row['runs']), 0)
  const isEnd = read < rows || least('oldest') < since - clockMs
  return {
    groups: found.filter((row) => Number(row['day']) >= 0).map(toSpent),
    next: isEnd ? undefined : least('first'),
  }
}

function toSpent(row: Row): Spent {
  const number = (name: string) => Number(row[name] ?? 0)
  const optional = (name: string) => (row[name] === null || row[name] === undefined ? undefined : Number(row[name]))
  return {
    day: number('day'),
    hook: column(row, 'hook'),
    agentId: column(row, 'agent'),
    model: column(row, 'model'),
    state: column<Spent['state']>(row, 'phase'),
    tookMs: optional('bucket'),
    runs: number('runs'),
    counted: number('counted'),
    dearest: typeof row['dearest'] === 'string' ? { deliveryId: row['dearest'], ...toUsed(row, 'most_') } : undefined,
    ...toUsed(row, ''),
  }
}

function toUsed(row: Row, prefix: string): Used {
  const number = (name: string) => Number(row[`${prefix}${name}`] ?? 0)
  return {
    inputTokens: number('input'),
    outputTokens: number('output'),
    cachedInputTokens: number('cached'),
    cacheWriteTokens: number('written'),
    costUsd: row[`${prefix}cost`] == null ? undefined : number('cost'),
  }
}
