// Claims must not become slower as the store grows. The tests read the query plans of Postgres.
import { Client } from 'pg'
import { expect, onTestFinished, test, vi } from 'vitest'
import { settleSpending } from '../../../../src/store/postgres/budgets.ts'
import { claim, selectHints } from '../../../../src/store/postgres/jobs.ts'
import { runScript } from '../../../../src/store/postgres/flow.ts'
import { planOnce } from '../../../../src/store/postgres/naming.ts'
import type { Query } from '../../../../src/store/postgres/pool.ts'
import { createPostgresStore } from '../../../../src/store/postgres/postgres.ts'
import { countQueued } from '../../../../src/store/waits.ts'
import { flowJob } from '../../../contract/flow.ts'
import { newSchema, whyNoPostgres, withDatabase } from '../../../contract/postgres-stage.ts'
import { newDelivery, newJob } from '../../../contract/stage.ts'

type Plan = {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'Index Cond'?: string
  Plans?: Plan[]
}

const list = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(list)]
const tables = ['deliveries', 'jobs', 'job_flow', 'job_parts']
/** Indexes that contain every row of their table. The other indexes that a claim reads contain only unfinished jobs. */
const wholeIndex = /_(?:pkey|key)$/
/** Scans of a table that read each row of the table. */
const isWhole = (plan: Plan) =>
  tables.includes(plan['Relation Name'] ?? '') &&
  (plan['Node Type'] === 'Seq Scan' || (wholeIndex.test(plan['Index Name'] ?? '') && plan['Index Cond'] === undefined))

/** The scans of whole tables in the plan of a statement. */
async function findWhole(client: Client, sql: string, params: readonly unknown[] = []): Promise<string[]> {
  const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(`EXPLAIN (FORMAT JSON) ${sql}`, [...params])
  const whole = rows.flatMap(({ 'QUERY PLAN': [{ Plan: plan }] }) => list(plan)).filter(isWhole)
  return whole.map((scan) => `${scan['Node Type']} of ${scan['Relation Name']} in ${sql}`)
}

/** Runs statements, and gathers those whose plan reads a table from its first row to its last. */
function createQuery(client: Client, slow: string[]): Query {
  return async (sql, ...params) => {
    slow.push(...(await findWhole(client, sql, params)))
    return (await client.query(sql, [...params])).rows
  }
}

/**
 * Jobs that wait, and some that ended before a claim gave them a key, as skipped ones do. Postgres has separate statistics of states and
 * keys, so it expects to find a waiting job without a key soon.
 */
const fill = `WITH filled AS (INSERT INTO jobs (id, state, agent_id, session_key, bytes, labels, flow, gate, created_at, run_at, ended_at)
    SELECT 'old' || n, CASE WHEN n % 10 = 0 THEN 'skipped' ELSE 'queued' END, 'main', 'x', 9, '[]', CASE WHEN n % 10 = 0 THEN 0 ELSE 1000 + n % 20 END, 3,
      1, 1, CASE WHEN n % 10 = 0 THEN 2 END FROM generate_series(1, 100000) n RETURNING seq),
  parts AS (INSERT INTO job_parts (job_seq, planned, steps) SELECT seq, '{}', '[]' FROM filled),
  stored AS (INSERT INTO deliveries (id, received_at, hook, dedupe_key, answer_status, answer_body, state, generation, trace, log)
    SELECT 'old' || n, 1, 'github', 'old' || n, 200, '{}', 'accepted', 'g', '[]', '[]' FROM generate_series(1, 100000) n)
  INSERT INTO job_flow (job_seq, delivery_seq, ring, key, settings) SELECT seq, 1, 'pr', 'k', '{}' FROM filled`

test.skipIf(whyNoPostgres)(
  'a claim reads no whole table, however many jobs ended before a claim saw them',
  async () => {
    const { url, drop } = await newSchema()
    onTestFinished(drop)
    const store = createPostgresStore({ url })
    await store.append(newDelivery({ at: Date.now(), jobs: [flowJob({})] }))
    const slow: string[] = []
    await withDatabase(async (client) => {
      await client.query(fill)
      await client.query('ANALYZE')
      const query = createQuery(client, slow)
      const now = `(extract(epoch FROM statement_timestamp()) * 1000)::bigint`
      expect(await runScript(query, countQueued({ ring: 'pr', key: 'k', max: 100 }), now)).toBe(1)
      const given = { limit: 3, leaseMs: 9_000, limits: {}, only: undefined, now }
      await client.query('BEGIN')
      const { jobs } = await claim(query, given, await query(selectHints(given)))
      await client.query('COMMIT')
      expect(jobs).toHaveLength(1)
    }, url)
    await store.close()
    expect(slow).toEqual([])
  },
)

test.skipIf(whyNoPostgres)(
  'a settled turn wakes only two turns that wait, even if Postgres can use nothing but nested loops and sequential scans',
  async () => {
    const { url, drop } = await newSchema()
    onTestFinished(drop)
    const store = createPostgresStore({ url })
    const add = async () => void (await store.append(newDelivery({ at: Date.now(), jobs: [newJob()] })))
    await add()
    // from now on, Postgres expects one job
    await withDatabase((client) => client.query('ANALYZE jobs'), url)
    for (let count = 0; count < 4; count += 1) await add()
    const claimed = await store.claim({ limit: 5, leaseMs: 60_000 })
    const account = { name: 'daily', startsAt: 0 }
    const most = { nanos: 0, tokens: 0, turns: 1 }
    const asked = { ...account, endsAt: Date.now() + 3_600_000, limits: { turns: 1 }, most }
    for (const job of claimed) await store.reserve(job, [asked])
    await withDatabase(async (client) => {
      for (const kind of ['hashjoin', 'mergejoin', 'hashagg', 'material', 'indexscan', 'bitmapscan'])
        await client.query(`SET enable_${kind} = off`)
      const query: Query = async (sql, ...params) => (await client.query(sql, [...params])).rows
      const now = `(extract(epoch FROM statement_timestamp()) * 1000)::bigint`
      await settleSpending(query, { id: claimed[0]?.id ?? '', settled: [{ ...account, used: most }], now })
    }, url)
    expect((await store.accounts([account]))[0]?.waiting).toBe(2)
    await store.close()
  },
)

test.skipIf(whyNoPostgres)(
  'a statement that is planned once reads no whole table, whatever its values are',
  async () => {
    const { url, drop } = await newSchema()
    const sent = vi.spyOn(Client.prototype, 'query')
    const store = createPostgresStore({ url })
    onTestFinished(async () => {
      sent.mockRestore()
      await store.close()
      await drop()
    })
    const dedupe = { hook: 'github', key: 'k', bodyHash: 'h' }
    await store.append(newDelivery({ at: Date.now(), jobs: [newJob()] }))
    await store.append(newDelivery({ at: Date.now(), dedupe, jobs: [newJob()] }))
    await store.append(newDelivery({ at: Date.now(), jobs: [flowJob({})] }))
    await store.claim({ limit: 0, leaseMs: 60_000 })
    expect(await store.claim({ limit: 1, leaseMs: 60_000 })).toHaveLength(1)
    const [done, dead] = await store.claim({ limit: 2, leaseMs: 60_000 })
    if (done === undefined || dead === undefined) throw new Error('two jobs are due')
    await store.report(done, { steps: [{ name: 'run', state: 'done', at: 1 }], leaseMs: 60_000 })
    await store.report(done, { outcome: { kind: 'done' } })
    await store.report(dead, { outcome: { kind: 'dead', error: 'x' } })
    const texts = sent.mock.calls.map(([query]) => String(Object(query).text)).filter((sql) => sql.startsWith(planOnce))
    const planned = [...new Set(texts)]
    expect(planned.length).toBeGreaterThan(9)
    await withDatabase(async (client) => {
      await client.query(fill)
      await client.query('ANALYZE')
      await client.query('SET plan_cache_mode = force_generic_plan')
      const slow: string[] = []
      for (const sql of planned) {
        await client.query(`PREPARE planned AS ${sql}`)
        const { rows } = await client.query('SELECT cardinality(parameter_types) AS count FROM pg_prepared_statements')
        const nulls = Array.from({ length: rows[0].count }, () => 'NULL')
        const execute = nulls.length === 0 ? 'EXECUTE planned' : `EXECUTE planned (${nulls.join(', ')})`
        slow.push(...(await findWhole(client, execute)).map((scan) => `${scan}: ${sql}`))
        await client.query('DEALLOCATE planned')
      }
      expect(slow).toEqual([])
    }, url)
  },
)
