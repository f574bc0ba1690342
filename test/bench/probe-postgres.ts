// Compares gateways: one on Postgres with one on SQLite, and two on Postgres with one. Also measures how a backlog slows down the storing of
// deliveries, and how many runs are claimed with a backlog.
import { randomBytes } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { newId } from '../../src/base/id.ts'
import type { NewDelivery } from '../../src/store/records.ts'
import { createPostgresStore } from '../../src/store/postgres/postgres.ts'
import type { Store } from '../../src/store/store.ts'
import { accepted, newJob, planned } from '../contract/stage.ts'
import { type Child, startChild } from './child.ts'
import { backlogJobs, claimedSessions } from './figures.ts'
import type { LoadJob, LoadResult } from './load.ts'
import type { ProbeOptions, RunningProbe } from './probe.ts'
import { token } from './run.ts'
import type { ServerOptions, ServerRequest } from './server.ts'

const connections = 64
const bytes = 1000
/** The number of jobs that a gateway claims in one call, and runs at the same time. */
const claimLimit = 16
const leaseMs = 60_000
const warmSeconds = 3

type Server = { readonly port: number; readonly child: Child<ServerRequest, number> }
export type Schema = {
  readonly name: string
  readonly url: string
  query(sql: string): Promise<void>
  /** The count that the statement returns. */
  count(sql: string): Promise<number>
  drop(): Promise<void>
}

export async function createPostgresProbe({ folder, built, seconds }: ProbeOptions): Promise<RunningProbe> {
  const database = process.env['HOOKLOOM_TEST_POSTGRES']
  if (database === undefined) {
    throw new Error(
      '--only postgres needs a database: set HOOKLOOM_TEST_POSTGRES=postgres://user:password@host/database.',
    )
  }
  const [first, second] = await Promise.all([startLoad(folder), startLoad(folder)])

  async function start(options: Pick<ServerOptions, 'kind' | 'url'>): Promise<Server> {
    const dir = mkdtempSync(join(folder, 'store-'))
    const server: ServerOptions = { ...options, delayMs: 0, dir, built, token }
    const { child, first: port } = await startChild<ServerRequest, number>(join(folder, 'server.mjs'), [
      JSON.stringify(server),
    ])
    return { child, port }
  }

  return async () => {
    const schema = await createSchema(database)
    const servers: Server[] = []
    try {
      const [sqlite, one, two] = [
        await start({ kind: 'sqlite' }),
        await start({ kind: 'postgres', url: schema.url }),
        await start({ kind: 'postgres', url: schema.url }),
      ]
      servers.push(sqlite, one, two)
      const load = (from: typeof first, { port }: Server, count: number, forSeconds = seconds) =>
        from.ask({ port, path: '/hooks/bench', token, connections: count, bytes, seconds: forSeconds })
      for (const server of servers) await load(first, server, connections, warmSeconds)
      const onFile = await load(first, sqlite, connections)
      const alone = await load(first, one, connections)
      const both = await Promise.all([load(first, one, connections / 2), load(second, two, connections / 2)])
      await Promise.all(servers.splice(0).map(({ child }) => child.kill()))
      return {
        accept: alone.perSecond / onFile.perSecond,
        perSecond: alone.perSecond,
        two: both.reduce((sum, { perSecond }) => sum + perSecond, 0) / alone.perSecond,
        ...(await measureStore(schema, seconds)),
      }
    } finally {
      await Promise.all(servers.map(({ child }) => child.kill()))
      await schema.drop()
    }
  }
}

async function startLoad(folder: string): Promise<Child<LoadJob, LoadResult>> {
  return (await startChild<LoadJob, LoadResult>(join(folder, 'load.mjs'), [])).child
}

/** Measures the store without gateways, which would run the jobs of the backlog. */
async function measureStore(schema: Schema, seconds: number): Promise<Record<'claims' | 'backlog', number>> {
  const store = createPostgresStore({ url: schema.url })
  try {
    await countAppends(store, warmSeconds)
    const empty = await countAppends(store, seconds)
    await addBacklog(store, schema)
    const full = await countAppends(store, seconds)
    return { claims: await countRuns(store, seconds), backlog: full / empty }
  } finally {
    await store.close()
  }
}

/** The number of deliveries a second that 64 callers store, each with a finished job. */
async function countAppends(store: Store, seconds: number): Promise<number> {
  const end = performance.now() + seconds * 1000
  let stored = 0
  const appendUntilEnd = async () => {
    for (; performance.now() < end; stored += 1) await store.append(buildDelivery(newJob({ state: 'done' })))
  }
  await Promise.all(Array.from({ length: connections }, appendUntilEnd))
  return stored / seconds
}

/** The number of runs a second that are claimed and reported as done. */
async function countRuns(store: Store, seconds: number): Promise<number> {
  const end = performance.now() + seconds * 1000
  let done = 0
  while (performance.now() < end) {
    const jobs = await store.claim({ limit: claimLimit, leaseMs })
    await Promise.all(jobs.map((job) => store.report(job, { outcome: { kind: 'done' } })))
    done += jobs.length
  }
  return done / seconds
}

/** Copies one queued job many times. The copies are spread over many sessions. */
async function addBacklog(store: Store, schema: Schema): Promise<void> {
  const job = newJob({ planned: planned('hook:bench:0'), lane: 'main\0hook:bench:0' })
  await store.append(buildDelivery(job))
  const lane = `'main' || chr(1) || 'hook:bench:' || n % ${claimedSessions}`
  await schema.query(`INSERT INTO jobs (delivery_seq, created_at, run_at, bytes, id, state, lane, agent_id, session_key)
    SELECT delivery_seq, created_at, run_at, bytes, 'backlog-' || n, state, ${lane}, agent_id, session_key
    FROM jobs, generate_series(1, ${backlogJobs}) n WHERE id = '${job.id}'`)
  await schema.query(`INSERT INTO job_parts (job_seq, step_names, planned, steps, posts)
    SELECT j.seq, p.step_names, p.planned, p.steps, p.posts FROM jobs j, jobs t JOIN job_parts p ON p.job_seq = t.seq
    WHERE t.id = '${job.id}' AND j.id LIKE 'backlog-%'`)
  await schema.query('VACUUM ANALYZE jobs')
  await schema.query('VACUUM ANALYZE job_parts')
}

export function buildDelivery(job: ReturnType<typeof newJob>): NewDelivery {
  const [id, answer] = [newId(), { status: 200, body: '{"ok":true}' }]
  return {
    id,
    receivedAt: Date.now(),
    hook: 'bench',
    source: undefined,
    event: undefined,
    dedupe: undefined,
    answer,
    ...accepted({ jobs: [job] }),
  }
}

export async function createSchema(database: string): Promise<Schema> {
  const schema = `hookloom_bench_${randomBytes(6).toString('hex')}`
  const client = new Client({ connectionString: database })
  await client.connect()
  await client.query(`CREATE SCHEMA ${schema}`)
  await client.query(`SET search_path = ${schema}`)
  const url = new URL(database)
  url.searchParams.set('options', `-c search_path=${schema}`)
  return {
    url: url.href.replaceAll('+', '%20'),
    name: schema,
    query: async (sql) => void (await client.query(sql)),
    count: async (sql) => Number((await client.query(sql)).rows[0]?.count),
    drop: async () => {
      await client.query(`DROP SCHEMA ${schema} CASCADE`)
      await client.end()
    },
  }
}
