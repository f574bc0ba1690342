// Starts the turns that are due and have room.
import type { FlowSettings } from '../core/model/flow.ts'
import {
  addToCounts,
  findBlocker,
  findHeldSession,
  listCountNames,
  type Place,
  type TurnCounts,
  toStoredBlocker,
} from './flow-blockers.ts'
import {
  type EarlyReads,
  type FlowClaim,
  type FlowClaimed,
  type LineFacts,
  isDamaged,
  jobsOfKey,
  readFlowSettings,
  toEndedColumns,
  whereQueued,
} from './flow-script.ts'
import { type Dialect, run, type Script, type Statement } from './script.ts'
import { endDamaged } from './flow-ends.ts'
import type { Row } from './rows.ts'
import { clockSetBackMs, longestPeriodMs } from './rules.ts'

const maxLines = 200
/** The maximum number of keys that one script visits in addition to the keys that it may start. */
const extraVisits = 40
export const gatheredReason = 'A later turn of its key reads its message.'

type Line = LineFacts & {
  readonly text: string
  rank: number
  servedAt: number
  /** Only in the line of the jobs without a flow, which takes turns with the other lines: the due times of the first such jobs. */
  readonly plain?: readonly number[]
}

export const selectLines = `WITH RECURSIVE l (line) AS (SELECT (SELECT line FROM flow_keys WHERE state = 'ready' ORDER BY line LIMIT 1)
    UNION ALL SELECT (SELECT line FROM flow_keys WHERE state = 'ready' AND line > l.line ORDER BY line LIMIT 1) FROM l WHERE l.line IS NOT NULL)
  SELECT l.line, (SELECT k.rank FROM flow_keys k WHERE k.state = 'ready' AND k.line = l.line ORDER BY k.rank LIMIT 1) AS rank,
    (SELECT s.served_at FROM flow_lines s WHERE s.line = l.line) AS served_at FROM l WHERE l.line IS NOT NULL LIMIT ${maxLines}`

function* readLines(early: EarlyReads | undefined): Script<Line[]> {
  return (early?.lines ?? (yield* run(selectLines))).map((row) => ({
    // as: only `toLineText` makes this text
    ...(JSON.parse(String(row['line'])) as LineFacts),
    text: String(row['line']),
    rank: Number(row['rank']),
    servedAt: Number(row['served_at'] ?? 0),
  }))
}

/** The line of the jobs without a flow, if some are due. The engine starts these jobs in the slots that the other lines leave. */
function* readPlain({ limit, selectPlain }: FlowClaim): Script<Line[]> {
  const plain = (yield* run(selectPlain, limit)).map((row) => Number(row['run_at']))
  const [rank] = plain
  if (rank === undefined) return []
  const [row] = yield* run(`SELECT served_at FROM flow_lines WHERE line = ''`)
  const facts: LineFacts = { ring: '', total: null, limits: [], labels: [], headStartMs: 0 }
  return [{ ...facts, text: '', rank, servedAt: Number(row?.['served_at'] ?? 0), plain }]
}

/** The moment since which the line has waited for a turn, less its head start. Lines take turns: after a start, a line is behind the others. */
function waitsSince({ rank, servedAt, headStartMs }: Line): number {
  return Math.max(rank, servedAt - headStartMs)
}

/** `hasPlain`: whether jobs without a flow may be due. */
type TurnReads = { readonly hasPlain: boolean; readonly early: EarlyReads | undefined }

/** Starts turns until the slots are used, no line has room, or it has visited enough keys. */
export function* startTurns(
  counts: TurnCounts,
  claim: FlowClaim,
  { hasPlain, early }: TurnReads,
): Script<FlowClaimed['started']> {
  const started = new Map<number, Row>()
  const open = [...(yield* readLines(early)), ...(hasPlain ? yield* readPlain(claim) : [])]
  let plain = 0
  let plainServedAt = 0
  for (let visits = claim.limit + extraVisits; visits > 0 && started.size + plain < claim.limit; visits -= 1) {
    const line = open.toSorted((one, other) => waitsSince(one) - waitsSince(other))[0]
    if (line === undefined) break
    const close = () => open.splice(open.indexOf(line), 1)
    // later than before, even within a millisecond, so that the line moves behind the others
    const servedAt = Math.max(claim.now, line.servedAt + 1)
    if (line.plain !== undefined) {
      plain += 1
      line.rank = line.plain[plain] ?? Infinity
      line.servedAt = plainServedAt = servedAt
      if (line.rank === Infinity) close()
      continue
    }
    if (!(yield* hasRoom(line, counts, claim))) {
      close()
      continue
    }
    const [key, next] = yield* run(selectReady(claim.dialect), line.text)
    if (key === undefined) {
      close()
      continue
    }
    const job = yield* startKey(key, { line: line.text, servedAt, counts, claim })
    line.rank = Number((next ?? key)['rank'])
    if (job === undefined) continue
    started.set(Number(job['seq']), job)
    line.servedAt = servedAt
  }
  if (plain > 0) yield serve('', plainServedAt)
  return started
}

const serve = (line: string, at: number): Statement => ({
  sql: 'INSERT INTO flow_lines (line, served_at) VALUES ($1, $2) ON CONFLICT (line) DO UPDATE SET served_at = excluded.served_at',
  params: [line, at],
})

function* hasRoom({ ring, total, limits, labels }: Line, counts: TurnCounts, claim: FlowClaim): Script<boolean> {
  const all = [...labels, ...limits.map((limit) => `limit:${limit}`), 'all']
  if (claim.held.some((label) => all.includes(label))) return false
  if (total !== null && (counts.get(`mapping:${ring}`) ?? 0) >= total) return false
  for (const limit of limits) {
    const settings = Object.hasOwn(claim.limits, limit) ? claim.limits[limit] : undefined
    if (settings?.total !== undefined && (counts.get(`limit:${limit}`) ?? 0) >= settings.total) return false
    if (settings?.starts !== undefined && !(yield* hasStart(limit, settings.starts, claim.now))) return false
  }
  return true
}

type Starts = { readonly limit: number; readonly period: number; readonly burst?: number | undefined }

/**
 * Whether one more start is allowed: at most `limit` in a period, and at most `burst` in the part of the period in which `burst` evenly spread
 * starts would fit.
 */
function* hasStart(name: string, { limit, period, burst = limit }: Starts, now: number): Script<boolean> {
  const sql = 'SELECT count(*) AS count FROM flow_counts WHERE name = $1 AND at > $2'
  const inPeriod = Number((yield* run(sql, `start:${name}`, now - period))[0]?.['count'])
  if (inPeriod >= limit) return false
  if (burst >= limit) return true
  const share = Math.floor((period * burst) / limit)
  return Number((yield* run(sql, `start:${name}`, now - share))[0]?.['count']) < burst
}

type Served = {
  readonly line: string
  readonly servedAt: number
  readonly counts: TurnCounts
  readonly claim: FlowClaim
}
type Head = { readonly seq: number; readonly id: string; readonly attempts: number; readonly lapsed: number | null }

/** The columns of the job `j` and its flow `f`. */
const toHeadColumns = ({
  isUntouched,
}: Dialect) => `j.seq, j.id AS job_id, j.run_at, j.created_at, j.attempts, j.fence, j.labels,
    f.settings, f.lane, CASE WHEN ${isUntouched} THEN 1 ELSE 0 END AS untouched,
    CASE WHEN EXISTS (SELECT 1 FROM jobs o WHERE o.lane = f.lane AND o.ended_at IS NULL) THEN 1 ELSE 0 END AS lane_used`

/** The first two keys of the line `$1`, each with its oldest job. */
const selectReady = (
  dialect: Dialect,
) => `${dialect.planOnce} SELECT k.id, k.ring, k.key, k.rank, ${toHeadColumns(dialect)}
  FROM (SELECT id, ring, key, rank FROM flow_keys WHERE state = 'ready' AND line = $1 ORDER BY rank, id LIMIT 2) k
    LEFT JOIN jobs j ON j.seq = (SELECT q.seq FROM ${jobsOfKey('q', 'k.id', whereQueued('q'))} LIMIT 1)
    LEFT JOIN job_flow f ON f.job_seq = j.seq
  ORDER BY k.rank, k.id`

const selectNewest = (
  dialect: Dialect,
) => `SELECT ${toHeadColumns(dialect)} FROM jobs j JOIN job_flow f ON f.job_seq = j.seq
  WHERE j.flow = $1 AND j.ended_at IS NULL AND j.state = 'queued' AND ${dialect.isUntouched} ORDER BY j.seq DESC LIMIT 1`

/**
 * Starts the turn of a key. `oldest`: the row of the key, with its oldest job. Returns undefined if no turn starts: then the key is no longer ready, or
 * the job was ended, for example by its rate limit.
 */
function* startKey(oldest: Row, { line, servedAt, counts, claim }: Served): Script<Row | undefined> {
  const { now, limits, dialect } = claim
  const id = Number(oldest['id'])
  if (oldest['seq'] === null) return yield* setKey(id, { state: 'idle' })
  if (waitsForRetry(oldest, now)) return yield* setKey(id, { state: 'later', dueAt: Number(oldest['run_at']) })
  const gathers = readFlowSettings(oldest).onNew === 'gather' && oldest['untouched'] === 1
  const head = gathers ? (yield* run(selectNewest(dialect), id))[0] : oldest
  if (head === undefined) return undefined
  if (waitsForRetry(head, now)) return yield* setKey(id, { state: 'later', dueAt: Number(head['run_at']) })
  if (isDamaged(head)) return yield* endDamaged(head, now)
  const settings = readFlowSettings(head)
  const place: Place = { id, ring: String(oldest['ring']), key: String(oldest['key']), limits: settings.limits }
  const lane = head['lane'] ?? null
  const usedLane = head['lane_used'] === 1 ? lane : null
  const blocker = findHeldSession(head, claim.held) ?? findBlocker(place, { settings, usedLane, counts, limits })
  if (blocker !== undefined) return yield* setKey(id, { state: 'blocked', blocker: toStoredBlocker(blocker, line) })
  const job: Head = {
    seq: Number(head['seq']),
    id: String(head['job_id']),
    attempts: Number(head['attempts']),
    lapsed: head['fence'] === 0 ? null : Number(head['fence']),
  }
  if (!(yield* countRate(settings, job, now))) return undefined
  if (gathers) yield* gatherOlder({ id, by: job, claim })
  return yield* startJob(job, { place, settings, lane, line, servedAt, counts, claim })
}

function waitsForRetry({ run_at: at, created_at: createdAt }: Row, now: number): boolean {
  const runAt = Number(at)
  return runAt > now && runAt !== createdAt && runAt <= now + clockSetBackMs
}

type Change = {
  readonly state: 'idle' | 'later' | 'blocked'
  readonly dueAt?: number | null
  readonly blocker?: string | null
}

function* setKey(id: number, { state, dueAt = null, blocker = null }: Change): Script<undefined> {
  yield* run(
    'UPDATE flow_keys SET state = $2, due_at = coalesce(CAST($3 AS bigint), due_at), blocker = $4 WHERE id = $1',
    id,
    state,
    dueAt,
    blocker,
  )
  return undefined
}

/** Counts a turn once under its rate limit. If the limit is reached, ends the job and returns false. */
function* countRate({ rate, ...others }: FlowSettings, { seq }: Head, now: number): Script<boolean> {
  if (rate === undefined) return true
  const sql = 'SELECT count(*) AS count FROM flow_counts WHERE name = $1 AND at > $2'
  const used = Number((yield* run(sql, rate.name, now - rate.periodMs))[0]?.['count'])
  if (used < rate.limit) {
    yield* run('INSERT INTO flow_counts (name, at) VALUES ($1, $2)', rate.name, now)
    yield* run('UPDATE job_flow SET settings = $2 WHERE job_seq = $1', seq, JSON.stringify(others))
    return true
  }
  const reason = `The rateLimit was reached: ${rate.limit} in ${Math.round(rate.periodMs / 1_000)} s had started.`
  yield* run(
    `UPDATE jobs SET state = 'skipped', ended_at = $2, last_error = $3 WHERE seq = $1 AND state = 'queued' RETURNING ${toEndedColumns(`'rateLimit'`)}`,
    seq,
    now,
    reason,
  )
  return false
}

function* gatherOlder({ id, by, claim }: { id: number; by: Head; claim: FlowClaim }): Script<void> {
  const ended = yield* run(
    `UPDATE jobs SET state = 'superseded', ended_at = $2, last_error = $3, ended_by = $4 WHERE seq IN (SELECT j.seq FROM jobs j
      WHERE j.flow = $1 AND j.ended_at IS NULL AND j.state = 'queued' AND j.seq < $5 AND ${claim.dialect.isUntouched}) RETURNING ${toEndedColumns(`'gather'`)}`,
    id,
    claim.now,
    gatheredReason,
    by.id,
    by.seq,
  )
  if (ended.length === 0) return
  // an ended job that was claimed before may have gathered others
  yield* run(
    `UPDATE jobs SET ended_by = $1 WHERE last_error = $2
      AND ended_by IN (SELECT id FROM jobs WHERE ended_by = $1 AND last_error = $2)`,
    by.id,
    gatheredReason,
  )
}

type Start = Served & { readonly place: Place; readonly settings: FlowSettings; readonly lane: Row[string] | null }

/** Returns the row of the job, with the fence of an expired lease. */
function* startJob(
  { seq, lapsed }: Head,
  { place, settings, lane, line, servedAt, counts, claim }: Start,
): Script<Row | undefined> {
  const { now, leaseMs, limits, startJob: sql } = claim
  const [job] = yield {
    sql,
    params: [seq, typeof lane === 'string' ? lane : null, now + leaseMs],
    also: [
      { sql: 'UPDATE flow_keys SET rank = $2 WHERE id = $1', params: [place.id, now - settings.headStartMs] },
      serve(line, servedAt),
    ],
  }
  if (job === undefined) return undefined
  addToCounts(counts, listCountNames(place))
  for (const name of settings.limits) {
    if (!Object.hasOwn(limits, name) || limits[name]?.starts === undefined) continue
    yield* run('INSERT INTO flow_counts (name, at) VALUES ($1, $2)', `start:${name}`, now)
    yield* run(
      'DELETE FROM flow_counts WHERE seq IN (SELECT seq FROM flow_counts WHERE at < $1 ORDER BY at LIMIT 4)',
      now - longestPeriodMs,
    )
  }
  return { ...job, lapsed }
}
