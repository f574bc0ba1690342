// The cost of flows: the time of a claim while many jobs wait, the time to accept a job, and the number of turns before a quiet mapping has
// had its turns.
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { Flow, toFlowSettings } from '../../src/core/model/flow.ts'
import type { ClaimedJob } from '../../src/model/job.ts'
import { createPostgresStore } from '../../src/store/postgres/postgres.ts'
import type { Store } from '../../src/store/store.ts'
import { createSqliteStore } from '../../src/store/sqlite/sqlite.ts'
import { newJob } from '../contract/stage.ts'
import { flowJobs, flowKeys } from './figures.ts'
import type { ProbeOptions, RunningProbe } from './probe.ts'
import { createSchema, buildDelivery } from './probe-postgres.ts'
import { computeQuantile } from './statistics.ts'

/** The number of turns that run at the same time. Each claim starts the next turn after a turn has ended. */
const slots = 16
const claims = 1_000
const quietTurns = 20
const leaseMs = 3_600_000
const limits = { model: { total: 64 } }
/** The number of deliveries that are stored at the same time. */
const storedAtOnce = 500
const comparedRounds = 30
const comparedJobs = 64

export async function createFlowProbe({ folder }: ProbeOptions): Promise<RunningProbe> {
  const database = process.env['HOOKLOOM_TEST_POSTGRES']
  if (database === undefined) {
    throw new Error('--only flow needs a database: set HOOKLOOM_TEST_POSTGRES=postgres://user:password@host/database.')
  }
  return async () => {
    const file = join(mkdtempSync(join(folder, 'store-')), 'hookloom.db')
    const sqlite = await measure(createSqliteStore({ file, clock: Date.now }))
    const schema = await createSchema(database)
    try {
      const postgres = await measure(createPostgresStore({ url: schema.url }), () => schema.query('ANALYZE'))
      return { ...prefixKeys('sqlite', sqlite), ...prefixKeys('postgres', postgres) }
    } finally {
      await schema.drop()
    }
  }
}

const prefixKeys = (engine: string, figures: object) =>
  Object.fromEntries(Object.entries(figures).map(([key, value]) => [`${engine} ${key}`, Number(value)]))

type Figures = Record<'p50' | 'p99' | 'processor' | 'turns' | 'accept' | 'hot', number>

async function measure(store: Store, prepare = async () => {}): Promise<Figures> {
  try {
    const accepted = await compareAppends(store)
    const alone = await countTurns(store)
    await storeFlowJobs(store)
    await prepare()
    const running = await store.claim({ limit: slots, leaseMs, limits })
    // the turn of one key never ends, so each claim skips this key
    running.shift()
    const times: number[] = []
    let processorUs = 0
    for (let count = 0; count < claims; count += 1) {
      await endJobs(store, running.splice(0, 1))
      const [startedAt, used] = [performance.now(), process.cpuUsage()]
      running.push(...(await store.claim({ limit: 1, leaseMs, limits })))
      times.push(performance.now() - startedAt)
      const { user, system } = process.cpuUsage(used)
      processorUs += user + system
    }
    if (running.length !== slots - 1) throw new Error(`${running.length} turns run, expected ${slots - 1}`)
    await endJobs(store, running)
    const beside = await countTurns(store)
    const processor = processorUs / 1_000 / claims
    const claimed = { p50: computeQuantile(times, 0.5), p99: computeQuantile(times, 0.99), processor }
    return { ...accepted, ...claimed, turns: beside / alone }
  } finally {
    await store.close()
  }
}

/** The time to commit jobs of a flow, and jobs of one key, each divided by the time to commit jobs without a flow. Measured alternately. */
async function compareAppends(store: Store): Promise<Record<'accept' | 'hot', number>> {
  const kinds = ['plain', 'flow', 'hot'] as const
  const times = { plain: [] as number[], flow: [] as number[], hot: [] as number[] }
  for (let round = 0; round < comparedRounds; round += 1) {
    for (const kind of kinds) {
      const jobs = Array.from({ length: comparedJobs }, (_, index) => {
        const job = buildJob(kind, kind === 'hot' ? 'one key' : `key ${index}`)
        return kind === 'plain' ? { ...job, flow: undefined } : job
      })
      const startedAt = performance.now()
      await Promise.all(jobs.map((job) => store.append(buildDelivery(job))))
      times[kind].push(performance.now() - startedAt)
      for (const { id } of jobs) await store.endJob(id, { state: 'cancelled', reason: 'It was measured.' })
    }
  }
  const [plain, flow, hot] = kinds.map((kind) => computeQuantile(times[kind], 0.5))
  return { accept: Number(flow) / Number(plain), hot: Number(hot) / Number(plain) }
}

async function endJobs(store: Store, jobs: readonly ClaimedJob[]): Promise<void> {
  for (const job of jobs) await store.report(job, { outcome: { kind: 'done' } })
}

async function storeFlowJobs(store: Store): Promise<void> {
  for (let stored = 0; stored < flowJobs; stored += storedAtOnce) {
    const jobs = Array.from({ length: storedAtOnce }, (_, index) =>
      buildJob('busy', `key ${(stored + index) % flowKeys}`),
    )
    await Promise.all(jobs.map((job) => store.append(buildDelivery(job))))
    await store.claim({ limit: 0, leaseMs, limits })
  }
}

/** The number of turns of all mappings, with one slot, until the quiet mapping has had all its turns. */
async function countTurns(store: Store): Promise<number> {
  const quiet = Array.from({ length: quietTurns }, (_, index) => buildJob('quiet', `key ${index % 4}`))
  for (const job of quiet) await store.append(buildDelivery(job))
  const left = new Set(quiet.map(({ id }) => id))
  let turns = 0
  for (; left.size > 0; turns += 1) {
    const jobs = await store.claim({ limit: 1, leaseMs, limits })
    for (const { id } of jobs) left.delete(id)
    await endJobs(store, jobs)
  }
  return turns
}

function buildJob(ring: string, key: string) {
  const settings = toFlowSettings(Flow.parse({ key, limits: ['model'] }), { ring, rateKey: '' })
  const lane = `main/hook:${ring}:${key}`
  const labels = [`session:${lane}`, `mapping:${ring}`, 'agent:main']
  return newJob({ lane, labels, flow: { ring, key, expiresMs: undefined, settings } })
}
