// The calls of `Store` that are the same script in each engine: plain reads and writes of one table or two.
import { addEntry, pruneEntries, readEntries } from './audit-log.ts'
import { noteBudgetAlert, raiseBudget, readAccounts, wakeBudgets } from './accounts.ts'
import { countBefore, tally } from './counts.ts'
import { selectAnswered, toAnswered } from './delivery-rows.ts'
import { selectGathered } from './flow.ts'
import { hold, readHolds, unhold } from './holds.ts'
import { readKeptBack } from './kept-back.ts'
import { deleteSealed, findQuarantined, findSealed, noteRefusals } from './quarantine.ts'
import { noteRepeats } from './repeats.ts'
import { type Row, toCursor, toJob } from './rows.ts'
import { selectWaitedFor } from './rules.ts'
import { countChanged, type Dialect, run, type Script } from './script.ts'
import type { Store } from './store.ts'
import { readSpent } from './spent.ts'
import { tryNow } from './troubles.ts'
import { trimTranscript } from './trim.ts'
import { startTurn } from './turns.ts'
import { countQueued, countWaits, readWaits } from './waits.ts'

type Scripts<Name extends keyof Store> = {
  readonly [Each in Name]: (...args: Parameters<Store[Each]>) => Script<Awaited<ReturnType<Store[Each]>>>
}

/** Each script runs in one transaction. */
export function createPlainWrites(dialect: Dialect) {
  return {
    audit: addEntry,
    pruneAudit: pruneEntries,
    noteRepeats: (repeats) => noteRepeats(repeats, dialect),
    noteRefusals: (refusals) => noteRefusals(refusals, dialect),
    deleteSealed: (requestIds) => deleteSealed(requestIds, dialect),
    *forget({ hook, key }) {
      yield* run('UPDATE deliveries SET dedupe_key = NULL WHERE hook = $1 AND dedupe_key = $2', hook, key)
    },
    trimTranscript: (name, bounds) => trimTranscript(name, bounds, dialect),
    startTurn,
    tryNow: (deliveryId) => tryNow(deliveryId, dialect),
    raiseBudget: (account, by) => raiseBudget(account, by, dialect),
    wakeBudgets: () => wakeBudgets(dialect),
    noteBudgetAlert,
    *extend(jobs, leaseMs) {
      const held = dialect.rows('$1', { job_id: 'text', job_fence: 'bigint' })
      const sql = `UPDATE jobs SET locked_until = $now + CAST($2 AS bigint) FROM (${held}) held
        WHERE jobs.id = held.job_id AND jobs.fence = held.job_fence AND state = 'running' RETURNING id`
      const extended = yield* run(sql, JSON.stringify(jobs.map(({ id, fence }) => [id, fence])), leaseMs)
      return extended.map(({ id }) => String(id))
    },
    // in SQLite, a job that waits for an earlier one of its lane keeps its place
    *makeDue(standsFor) {
      const sql = `UPDATE jobs SET run_at = $now, gate = CASE gate WHEN 2 THEN 0 ELSE gate END
        WHERE stands_for = $1 AND state = 'queued' AND run_at > $now`
      return (yield* countChanged(sql, standsFor)) > 0
    },
    hold,
    unhold,
  } satisfies Partial<Scripts<keyof Store>>
}

export type PlainWrite = keyof ReturnType<typeof createPlainWrites>

/** `selectJob`: selects the columns that `toJob` reads, from the job `j` and its other tables. */
export function createPlainReads(dialect: Dialect, selectJob: string) {
  function* readNewest(condition: string, { limit, before }: { limit: number; before?: string | undefined }) {
    const first =
      before === undefined
        ? [{ seq: Number.MAX_SAFE_INTEGER }]
        : yield* run('SELECT seq FROM jobs WHERE id = $1', before)
    const newest = `SELECT seq FROM jobs WHERE ${condition} AND seq < $1 ORDER BY seq DESC LIMIT $2`
    const sql = `${selectJob} WHERE j.seq IN (${newest}) ORDER BY j.seq`
    return (yield* run(sql, first[0]?.seq ?? null, limit)).map(toJob)
  }

  return {
    accounts: (names) => readAccounts(names, dialect),
    auditLog: readEntries,
    *countParkedFor(name) {
      // the first condition is that of the index
      const isParked = `state IN ('pending', 'parked') AND state = 'parked'`
      const [row] = yield* run(`SELECT count(*) AS count FROM deliveries WHERE ${isParked} AND waits_for = $1`, name)
      return Number(row?.['count'] ?? 0)
    },
    countBefore,
    countQueuedOfKey: countQueued,
    *cursor(name) {
      const [row] = yield* run('SELECT value FROM cursors WHERE name = $1', name)
      return row && String(row['value'])
    },
    *cursors(prefix) {
      const sql = 'SELECT name, value FROM cursors WHERE name >= $1 AND name < $2 ORDER BY name'
      return (yield* run(sql, prefix, `${prefix}\u{10ffff}`)).map(toCursor)
    },
    deadJobs: (query) => readNewest(`state = 'dead'`, query),
    *findAnswer({ hook, key }) {
      const [row] = yield* run(selectAnswered, hook, key)
      return row && toAnswered(row)
    },
    *gatheredJobs(id, limit) {
      const jobs = yield* run(
        `${selectJob} WHERE j.seq IN (${selectGathered} ORDER BY j.seq LIMIT $2) ORDER BY j.seq`,
        id,
        limit,
      )
      const [counted] = yield* run(`SELECT count(*) AS count FROM (${selectGathered}) g`, id)
      return { jobs: jobs.map(toJob), count: Number(counted?.['count'] ?? 0) }
    },
    holds: readHolds,
    *jobsToEnd() {
      // not a join: SQLite would read all jobs, and look up each
      const ending = `SELECT id, fence FROM jobs WHERE seq IN (SELECT job_seq FROM endings) AND state = 'running'`
      return (yield* run(ending)).map(({ id, fence }) => ({ id: String(id), fence: Number(fence) }))
    },
    keptBack: readKeptBack,
    quarantinedRequests: findQuarantined,
    sealedContent: findSealed,
    spent: (query) => readSpent(query, dialect),
    tally,
    *taskAgeMs(standsFor) {
      return readAge(yield* run('SELECT $now - max(created_at) AS age FROM jobs WHERE stands_for = $1', standsFor))
    },
    openJobs: (query) =>
      readNewest(`state IN ('queued', 'running') AND ended_at IS NULL AND delivery_seq IS NOT NULL`, query),
    waitCounts: countWaits,
    *waitedFor() {
      return (yield* run(selectWaitedFor)).map(({ name }) => String(name))
    },
    waits: (query) => readWaits(query, dialect),
    *wokenForMs({ agentId, sessionKey }) {
      const newest =
        'SELECT max(seq) FROM events WHERE agent_id = $1 AND session_key = $2 AND wakes = 1 AND consumed_at IS NULL'
      const age = readAge(
        yield* run(`SELECT $now - at AS age FROM events WHERE seq = (${newest})`, agentId, sessionKey),
      )
      return age && Math.max(0, age)
    },
  } satisfies Partial<Scripts<keyof Store>>
}

export type PlainRead = keyof ReturnType<typeof createPlainReads>

function readAge([row]: readonly Row[]): number | undefined {
  return typeof row?.['age'] === 'number' ? row['age'] : undefined
}

/** The calls of a store that scripts are. `perform` runs the script with this name. */
export function bindCalls<Name extends keyof Store>(
  scripts: Scripts<Name>,
  perform: (name: Name, args: readonly unknown[]) => Promise<unknown>,
): Pick<Store, Name> {
  // as: the type of `scripts` has these names, and `perform` returns what the script returns
  const names = Object.keys(scripts) as Name[]
  return Object.fromEntries(names.map((name) => [name, (...args: unknown[]) => perform(name, args)])) as Pick<
    Store,
    Name
  >
}

/** The script of a call. */
export function buildScript<Name extends keyof Store>(
  scripts: Scripts<Name>,
  name: Name,
  args: readonly unknown[],
): Script<unknown> {
  // as: `bindCalls` got the arguments from a caller of this call
  return scripts[name](...(args as Parameters<Store[Name]>))
}
