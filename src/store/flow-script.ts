// What the scripts of flows share.
import type { FlowEnd, FlowSettings, SharedLimits } from '../core/model/flow.ts'
import type { EndedRun } from './records.ts'
import type { Row } from './rows.ts'
import { type Dialect, run, type Script } from './script.ts'

export type FlowClaim = {
  readonly now: number
  /** The maximum number of turns to start. */
  readonly limit: number
  readonly leaseMs: number
  readonly limits: SharedLimits
  /** The labels of holds. */
  readonly held: readonly string[]
  readonly dialect: Dialect
  /** SQL that selects the due times of the first `$1` due jobs without a flow. */
  readonly selectPlain: string
  /** Starts the queued job `$1` in the lane `$2`, with a lease until `$3`. Returns its row: `seq`, and what the engine needs of it. */
  readonly startJob: string
}

/** Rows that the engine has read in advance for a claim. They are outdated, and not used, if the claim changes keys first. */
export type EarlyReads = Readonly<Record<'running' | 'lines', readonly Row[]>>

/**
 * `started`: the rows of the started jobs, by seq. `lapsed` in a row is the fence of the expired lease of the job, or null. `ended`: the jobs that ended
 * without a turn. `isSorted`: false if the next claim must sort more new jobs, or carry out more cancels.
 */
export type FlowClaimed = {
  readonly started: ReadonlyMap<number, Row>
  readonly ended: readonly EndedRun[]
  readonly isSorted: boolean
}

/** The columns that every statement that ends queued jobs must return. `end`: an SQL expression. */
export const toEndedColumns = (end: string) => `jobs.id AS ended_id, ${end} AS flow_end`

/** Runs a script, and adds the jobs that it ends to `ended`. */
export function* collectEnded<Result>(script: Script<Result>, ended: EndedRun[]): Script<Result> {
  for (let step = script.next([]); ;) {
    if (step.done === true) return step.value
    const rows = yield step.value
    // as: only `toEndedColumns` makes this column
    for (const { ended_id: id, flow_end: end } of rows)
      if (typeof id === 'string') ended.push({ id, end: end as FlowEnd })
    step = script.next(rows)
  }
}

/** The settings in a damaged row: its key is sorted as any other, and the job ends when its turn is due. */
const damagedSettings: FlowSettings = {
  onNew: 'queue',
  perKey: 1,
  limits: [],
  delayMs: 0,
  maxDelayMs: 0,
  headStartMs: 0,
}

export function readFlowSettings({ settings }: Row): FlowSettings {
  // as: only `toFlowSettings` makes this text
  return (readJson(settings) as FlowSettings | undefined) ?? damagedSettings
}

export function readLabels({ labels }: Row): readonly string[] {
  // as: only the planner writes labels
  return (readJson(labels ?? '[]') as string[] | undefined) ?? []
}

/** Whether the settings or the labels of a job cannot be read. */
export function isDamaged({ settings, labels }: Row): boolean {
  return readJson(settings) === undefined || readJson(labels ?? '[]') === undefined
}

function readJson(text: Row[string] | undefined): unknown {
  try {
    return JSON.parse(String(text))
  } catch {
    return undefined
  }
}

/**
 * The unfinished jobs `alias` of a key, in order of arrival. The condition is BETWEEN and not =, and the order is that of the index: otherwise,
 * if Postgres expects many jobs of the key, it reads the jobs of all keys until it finds one of this key.
 */
export const jobsOfKey = (alias: string, key: string, also = 'true') =>
  `jobs ${alias} WHERE ${alias}.flow BETWEEN ${key} AND ${key} AND ${alias}.ended_at IS NULL AND ${also} ORDER BY ${alias}.flow, ${alias}.seq`

/**
 * The condition that an unfinished job is queued. With `state = 'queued'`, SQLite would read the index of all queued jobs instead of that of the key.
 */
export const whereQueued = (alias: string) => `${alias}.state <> 'running'`

/** The columns of the ended jobs that `makeKeysReady` needs. */
export const readyColumns = 'flow, queued_again, run_at'

/**
 * Makes keys `ready` after queued jobs of theirs were ended, so that the next claim looks at them again: a blocked key, because its next job may
 * have another session, and a key that waits for the time of a retry, because the ended job may be this retry. A key in a quiet period is not
 * changed: the period ends later than each of its retries. A job that no claim has given a key yet is left out (`flow` is null or 0).
 */
export function* makeKeysReady(ended: readonly Row[], { rows }: Dialect): Script<void> {
  const never = -1
  const retries = new Map<number, number>()
  for (const { flow, queued_again: again, run_at: runAt } of ended) {
    const id = Number(flow ?? 0)
    const retryAt = again === 1 ? Number(runAt ?? 0) : never
    if (id !== 0) retries.set(id, Math.max(retries.get(id) ?? never, retryAt))
  }
  if (retries.size === 0) return
  const sql = `UPDATE flow_keys SET state = 'ready', blocker = NULL FROM (${rows('$1', { key_id: 'bigint', retry_at: 'bigint' })}) r
    WHERE id = r.key_id AND (state = 'blocked' OR (state = 'later' AND r.retry_at > ${never} AND (due_at <= r.retry_at OR EXISTS (
      SELECT 1 FROM jobs j WHERE j.flow = r.key_id AND j.ended_at IS NULL AND ${whereQueued('j')} AND j.queued_again = 1 AND j.run_at >= due_at))))`
  yield* run(sql, JSON.stringify([...retries]))
}

/** The facts that all keys of a line share. The session is no such fact: each key may have its own session. */
export type LineFacts = {
  readonly ring: string
  readonly total: number | null
  readonly limits: readonly string[]
  readonly labels: readonly string[]
  readonly headStartMs: number
}
