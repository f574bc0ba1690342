// Finds why queued jobs wait, with one script for all engines. deliveries/waits.ts turns the reasons into sentences.
import type { SharedLimits } from '../core/model/flow.ts'
import { listPresentFailures } from '../model/job.ts'
import { countRunning, findBlocker, type Place, type TurnCounts } from './flow-blockers.ts'
import { type LineFacts, jobsOfKey, readFlowSettings, readLabels, whereQueued } from './flow-script.ts'
import { type Dialect, readNow, run, type Script } from './script.ts'
import type { Hold } from './records.ts'
import { type Row, toHold } from './rows.ts'

/** The position of a job among the jobs that wait for the same thing. `place`: 1 is next; undefined beyond 1,000. */
type Queue = { readonly place: number | undefined; readonly oldestForMs: number }

/** The first thing that keeps a queued job back. `…Ms`: milliseconds from now or until now, by the clock of the store. */
export type Wait = { readonly jobId: string } & (
  | { readonly kind: 'hold'; readonly hold: Hold; readonly agoMs: number }
  | { readonly kind: 'budget'; readonly name: string; readonly forMs: number }
  /** `failing`: for how long the present step has been failing, and how often it failed, of the newest `maxFailures` attempts. */
  | {
      readonly kind: 'retry'
      readonly forMs: number
      readonly attempts: number
      readonly failing: { readonly forMs: number; readonly times: number } | undefined
    }
  | { readonly kind: 'quiet'; readonly forMs: number }
  /** The job waits for jobs of its key that come first. */
  | { readonly kind: 'behind'; readonly jobs: number }
  /** `max`: the number of turns of its key that may run at a time. `endingId`: the run that the job replaces, and that has not ended yet. */
  | { readonly kind: 'key'; readonly max: number; readonly endingId: string | undefined }
  /** The job waits for another job of its session: `runningId` is running, or `jobs` earlier jobs wait. */
  | { readonly kind: 'session'; readonly runningId: string | undefined; readonly jobs: number }
  /** The share of its key in a concurrency limit is used up. */
  | { readonly kind: 'share'; readonly limit: string; readonly max: number }
  /** The concurrency limit `name`, or that of the mapping of the job, is reached. */
  | ({
      readonly kind: 'limit' | 'mapping'
      readonly name: string
      readonly used: number
      readonly max: number
    } & Queue)
  /** A rate limit is reached: no more turns may start in this period. */
  | ({ readonly kind: 'starts'; readonly name: string; readonly max: number; readonly periodMs: number } & Queue)
  /** The job waits only for a free slot. `running`: the number of jobs that run on all gateways. */
  | { readonly kind: 'slot'; readonly running: number }
)

/** The part of the store that says why jobs wait. */
export interface WaitReader {
  /** The reasons why these jobs wait, in any order. Jobs that are not queued are left out. */
  waits(query: { readonly ids: readonly string[]; readonly limits: SharedLimits }): Promise<Wait[]>
  /** The number of queued jobs of a key; `max` if there are more. It reads up to `max` jobs of the key, and all jobs to which no claim has given a key yet. */
  countQueuedOfKey(query: FlowQueue): Promise<number>
  /** The numbers of keys and jobs that wait. It reads index entries of each of them. */
  waitCounts(): Promise<WaitCounts>
}

/**
 * The numbers of keys and jobs that wait, by reason. Keys of flows: `quiet` wait for a moment; `blocked` for a turn of their key or session, for their
 * share of a limit, or for the end of a hold of their session; `ready` for a limit or a slot. Jobs: `paused` have no flow and wait for the end of a
 * hold; `budget` wait for a budget.
 */
export type WaitCounts = { readonly [Reason in 'quiet' | 'blocked' | 'ready' | 'paused' | 'budget']: number }

/** `ring` and `key`: those in the flow of a job. */
export type FlowQueue = { readonly ring: string; readonly key: string; readonly max: number }

type WaitsQuery = { readonly ids: readonly string[]; readonly limits: SharedLimits }

const maxCounted = 1_000
const selectCount = (rows: string) => `(SELECT count(*) FROM (SELECT 1 FROM ${rows} LIMIT ${maxCounted}) first)`
const selectRunningInLane = (lane: string) => `SELECT e.id FROM jobs e WHERE e.lane = ${lane} AND e.ended_at IS NULL
  AND e.state = 'running' LIMIT 1`

const selectWaiting = (
  ids: string,
) => `SELECT j.seq, j.id, j.attempts, j.failing_since, j.failures, j.run_at, j.created_at,
    j.labels, j.lane, j.budget, j.delivery_seq, j.flow, f.ring, f.key, f.settings, f.lane AS flow_lane, k.id AS key_id,
    k.state AS key_state, k.rank, k.due_at, k.line,
    ${selectCount(`jobs e WHERE e.flow = k.id AND e.ended_at IS NULL AND e.state = 'queued' AND e.seq < j.seq`)} AS before,
    ${selectCount('jobs e WHERE e.lane = j.lane AND e.ended_at IS NULL AND e.seq < j.seq')} AS lane_before,
    (${selectRunningInLane('coalesce(j.lane, f.lane)')}) AS lane_running,
    CASE WHEN EXISTS (SELECT 1 FROM jobs o WHERE o.lane = f.lane AND o.ended_at IS NULL) THEN 1 ELSE 0 END AS lane_used,
    (SELECT r.id FROM jobs r JOIN endings e ON e.job_seq = r.seq WHERE r.flow = k.id AND r.ended_at IS NULL
      AND r.state = 'running' LIMIT 1) AS ending_id
  FROM jobs j LEFT JOIN job_flow f ON f.job_seq = j.seq LEFT JOIN flow_keys k ON k.id = j.flow
  WHERE j.state = 'queued' AND j.ended_at IS NULL AND j.id IN (${ids})`

/** The facts that are read once for all jobs. */
type Shared = {
  readonly query: WaitsQuery
  readonly now: number
  readonly holds: readonly Hold[]
  readonly counts: TurnCounts
  readonly running: number
  readonly lines: readonly Line[]
}

export function* readWaits(query: WaitsQuery, { texts }: Dialect): Script<Wait[]> {
  const jobs = query.ids.length === 0 ? [] : yield* run(selectWaiting(texts('$1')), JSON.stringify(query.ids))
  if (jobs.length === 0) return []
  const now = yield* readNow()
  const holds = yield* run('SELECT * FROM holds WHERE until IS NULL OR until > $1', now)
  const [counted] = yield* run(`SELECT count(*) AS count FROM jobs WHERE state = 'running' AND ended_at IS NULL`)
  const hasFlow = jobs.some(({ key_id: keyId }) => keyId !== null)
  const shared: Shared = {
    query,
    now,
    holds: holds.map((row) => toHold(row, now)),
    counts: hasFlow ? yield* countRunning([]) : new Map(),
    running: Number(counted?.['count']),
    lines: hasFlow ? yield* readLines() : [],
  }
  const waits: Wait[] = []
  for (const job of jobs) waits.push({ jobId: String(job['id']), ...(yield* findWait(job, shared)) })
  return waits
}

type Found = Wait extends infer Each ? (Each extends Wait ? Omit<Each, 'jobId'> : never) : never

function* findWait(job: Row, shared: Shared): Script<Found> {
  const { now } = shared
  const settings = job['settings'] === null ? undefined : readFlowSettings(job)
  const held = findHold(job, settings?.limits ?? [], shared.holds)
  if (held !== undefined) return { kind: 'hold', hold: held, agoMs: now - held.at }
  const runAt = Number(job['run_at'])
  const isLater = runAt > now && job['run_at'] !== job['created_at']
  if (isLater && job['budget'] !== null) return { kind: 'budget', name: String(job['budget']), forMs: runAt - now }
  if (isLater)
    return { kind: 'retry', forMs: runAt - now, attempts: Number(job['attempts']), failing: readFailing(job, now) }
  if (settings !== undefined && job['key_id'] !== null) return yield* findFlowWait(job, shared)
  // the next claim gives the job its key, with the same quiet period
  const quietMs = settings === undefined ? 0 : Number(job['created_at']) + settings.delayMs - now
  if (quietMs > 0) return { kind: 'quiet', forMs: quietMs }
  const runningId = readId(job['lane'] === null ? null : job['lane_running'])
  const jobs = Number(job['lane_before'])
  if (runningId !== undefined || jobs > 0) return { kind: 'session', runningId, jobs }
  return { kind: 'slot', running: shared.running }
}

function readFailing({ failing_since: since, failures }: Row, now: number) {
  if (since === null) return undefined
  // as: only the stores write this column
  const known = (failures === null ? [] : JSON.parse(String(failures))) as readonly { readonly at: number }[]
  const failingSince = Number(since)
  return { forMs: now - failingSince, times: listPresentFailures({ failingSince, failures: known }).length }
}

function readId(value: Row[string] | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined
}

/** The hold that keeps the job back. A pause by an operator is named before other holds. */
function findHold(job: Row, limits: readonly string[], holds: readonly Hold[]): Hold | undefined {
  const all = new Set([
    ...readLabels(job),
    ...limits.map((name) => `limit:${name}`),
    ...(job['delivery_seq'] === null ? [] : ['all']),
  ])
  const found = holds.filter(({ label }) => all.has(label))
  return found.find(({ kind }) => kind === 'pause') ?? found[0]
}

function* findFlowWait(job: Row, { query: { limits }, now, counts, running, lines }: Shared): Script<Found> {
  const settings = readFlowSettings(job)
  const jobs = Number(job['before'])
  if (jobs > 0 && settings.onNew !== 'gather') return { kind: 'behind', jobs }
  const dueAt = Number(job['due_at'])
  if (job['key_state'] === 'later' && dueAt > now) return { kind: 'quiet', forMs: dueAt - now }
  const id = Number(job['key_id'])
  const place: Place = { id, ring: String(job['ring']), key: String(job['key']), limits: settings.limits }
  const usedLane = job['lane_used'] === 1 ? (job['flow_lane'] ?? null) : null
  const blocker = findBlocker(place, { settings, usedLane, counts, limits })
  if (blocker !== undefined) return parseBlocker(blocker, job)
  const { ring, total } = { ring: place.ring, total: settings.total }
  const used = counts.get(`mapping:${ring}`) ?? 0
  if (total !== undefined && used >= total) {
    const ofMapping = lines.filter((line) => line.ring === ring)
    return { kind: 'mapping', name: ring, used, max: total, ...(yield* findPlace(job, ofMapping, now)) }
  }
  for (const name of settings.limits) {
    const limit = Object.hasOwn(limits, name) ? limits[name] : undefined
    if (limit === undefined) continue
    const ofLimit = lines.filter((line) => line.limits.includes(name))
    const running = counts.get(`limit:${name}`) ?? 0
    if (limit.total !== undefined && running >= limit.total) {
      return { kind: 'limit', name, used: running, max: limit.total, ...(yield* findPlace(job, ofLimit, now)) }
    }
    const { starts } = limit
    if (starts === undefined) continue
    const { period, burst = starts.limit } = starts
    const share = Math.floor((period * burst) / starts.limit)
    for (const [max, periodMs] of [[starts.limit, period] as const, [burst, share] as const]) {
      if ((yield* countStarts(name, now - periodMs)) < max) continue
      return { kind: 'starts', name, max, periodMs, ...(yield* findPlace(job, ofLimit, now)) }
    }
  }
  return { kind: 'slot', running }
}

function* countStarts(limit: string, after: number): Script<number> {
  const sql = 'SELECT count(*) AS count FROM flow_counts WHERE name = $1 AND at > $2'
  return Number((yield* run(sql, `start:${limit}`, after))[0]?.['count'])
}

/** Parses the blocker that `findBlocker` found: `<max> <name>`. */
function parseBlocker(blocker: string, job: Row): Found {
  const [, count, kind, rest = ''] = /^(\d+) (\w+):([^]*)$/.exec(blocker) ?? []
  const max = Number(count)
  if (kind === 'lane') return { kind: 'session', runningId: readId(job['lane_running']), jobs: 0 }
  if (kind !== 'slot') return { kind: 'key', max, endingId: readId(job['ending_id']) }
  // as: only `listCountNames` makes this name
  const [limit] = JSON.parse(rest) as [string, string]
  return { kind: 'share', limit, max }
}

type Line = LineFacts & { readonly text: string; readonly rank: number }

/** Whether the key `k` has a queued job. Until a claim finds room in its line, a key is ready even if its only turn is running or was ended. */
const hasQueued = `(SELECT q.seq FROM ${jobsOfKey('q', 'k.id', whereQueued('q'))} LIMIT 1) IS NOT NULL`

/** The lines in which jobs are due, each with the rank of its first key that has one. */
function* readLines(): Script<Line[]> {
  const first = `SELECT k.rank FROM flow_keys k WHERE k.state = 'ready' AND k.line = l.line AND ${hasQueued} ORDER BY k.rank, k.id LIMIT 1`
  const lines = `SELECT DISTINCT line FROM flow_keys WHERE state = 'ready'`
  const rows = yield* run(
    `SELECT * FROM (SELECT l.line, (${first}) AS rank FROM (${lines}) l) f WHERE rank IS NOT NULL`,
  )
  // as: only `toLineText` makes this text
  return rows.map((row) => ({
    ...(JSON.parse(String(row['line'])) as LineFacts),
    text: String(row['line']),
    rank: Number(row['rank']),
  }))
}

function* findPlace(job: Row, lines: readonly Line[], now: number): Script<Queue> {
  let before = 0
  for (const { text } of lines) {
    const isBefore = '(k.rank < $2 OR (k.rank = $2 AND k.id < $3))'
    const rows = `flow_keys k WHERE k.state = 'ready' AND k.line = $1 AND ${isBefore} AND ${hasQueued}`
    const sql = `SELECT ${selectCount(rows)} AS count`
    before += Number((yield* run(sql, text, Number(job['rank']), Number(job['key_id'])))[0]?.['count'])
  }
  const since = Math.min(now, ...lines.map(({ rank, headStartMs }) => rank + headStartMs))
  return { place: before >= maxCounted ? undefined : before + 1, oldestForMs: now - since }
}

/** The number of new jobs that `countQueued` reads first. */
const maxNew = 1_000

/**
 * Looks up the keys of the first `maxNew` new jobs one by one, because a join may read the flow of every stored job. A join follows only if there are
 * more new jobs, which is rare after a claim.
 */
export function* countQueued({ ring, key, max }: FlowQueue): Script<number> {
  const isQueued = whereQueued('j')
  const keyId = '(SELECT k.id FROM flow_keys k WHERE k.ring = $1 AND k.key = $2)'
  const sorted = `(SELECT count(*) FROM (SELECT 1 FROM ${jobsOfKey('j', keyId, isQueued)} LIMIT $3) s)`
  const isOfKey = '(SELECT 1 FROM job_flow f WHERE f.job_seq = n.seq AND f.ring = $1 AND f.key = $2)'
  const first = `SELECT j.seq FROM ${jobsOfKey('j', '0', isQueued)} LIMIT ${maxNew}`
  const sql = `SELECT ${sorted} AS sorted, count(*) AS looked, count(${isOfKey}) AS unsorted FROM (${first}) n`
  const [row] = yield* run(sql, ring, key, max)
  const all = `SELECT count(*) AS unsorted FROM (SELECT 1 FROM jobs j JOIN job_flow f ON f.job_seq = j.seq
    WHERE j.flow = 0 AND j.ended_at IS NULL AND ${isQueued} AND f.ring = $1 AND f.key = $2 LIMIT $3) u`
  const [rest] = Number(row?.['looked']) < maxNew ? [row] : yield* run(all, ring, key, max)
  return Math.min(max, Number(row?.['sorted'] ?? 0) + Number(rest?.['unsorted'] ?? 0))
}

export function* countWaits(): Script<WaitCounts> {
  const count = (rows: string) => `(SELECT count(*) FROM ${rows})`
  // until the next claim, a key whose only turn runs is not idle
  const keys = (state: string) =>
    count(`flow_keys k WHERE k.state = '${state}'
      AND EXISTS (SELECT 1 FROM jobs j WHERE j.flow = k.id AND j.ended_at IS NULL AND j.state = 'queued')`)
  const [row] = yield* run(`SELECT ${keys('later')} AS quiet, ${keys('blocked')} AS blocked, ${keys('ready')} AS ready,
    ${count("jobs WHERE state = 'queued' AND gate = 4 AND ended_at IS NULL")} AS paused,
    ${count("jobs WHERE state = 'queued' AND budget IS NOT NULL")} AS budget`)
  const readCount = (reason: string) => Number(row?.[reason] ?? 0)
  return {
    quiet: readCount('quiet'),
    blocked: readCount('blocked'),
    ready: readCount('ready'),
    paused: readCount('paused'),
    budget: readCount('budget'),
  }
}
