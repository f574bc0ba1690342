// A process that runs one job queue: callers add jobs one by one, and as many handlers as a gateway has slots work them.
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createEventBody } from './events.ts'
import { findPort } from './peers.ts'
import { peersFolder, type QueueKind } from './queues.ts'

/** `url`: the database, for the queues on Postgres. */
export type QueueOptions = {
  readonly kind: QueueKind
  readonly url: string
  readonly schema: string
  readonly dir: string
  readonly slots: number
}
export type QueueRequest = { readonly seconds: number } | 'stop'

const callers = 64
/** The time that the jobs may take to end after the last one was added. */
const drainMs = 20_000
const load = createRequire(join(peersFolder, 'package.json'))

type Running = { add(job: object): Promise<unknown>; stop(): void }
type Start = (options: QueueOptions, onDone: (jobs: number) => void) => Promise<Running>

const starts: Readonly<Record<QueueKind, Start>> = {
  async 'graphile-worker'({ url, schema, slots }, onDone) {
    const { run, makeWorkerUtils, Logger } = load('graphile-worker')
    const common = { connectionString: url, schema, logger: new Logger(() => () => {}) }
    const utils = await makeWorkerUtils(common)
    await utils.migrate()
    const taskList = { echo: async () => onDone(1) }
    await run({ ...common, concurrency: slots, noHandleSignals: true, taskList })
    return { add: (job) => utils.addJob('echo', job), stop: () => {} }
  },
  async 'pg-boss'({ url, schema, slots }, onDone) {
    const PgBoss = load('pg-boss')
    const boss = new PgBoss({ connectionString: url, schema, max: 10 })
    await boss.start()
    await boss.createQueue('echo')
    const polling = { batchSize: slots, pollingIntervalSeconds: 0.5 }
    await boss.work('echo', polling, async (jobs: readonly object[]) => onDone(jobs.length))
    return { add: (job) => boss.send('echo', job), stop: () => {} }
  },
  async bullmq({ dir, slots }, onDone) {
    const { Queue, Worker } = load('bullmq')
    const { port, redis } = await startRedis(dir)
    const connection = { host: '127.0.0.1', port, maxRetriesPerRequest: null }
    const queue = new Queue('echo', { connection })
    const worker = new Worker('echo', async () => onDone(1), { connection, concurrency: slots })
    await worker.waitUntilReady()
    return { add: (job) => queue.add('echo', job), stop: () => void redis.kill('SIGKILL') }
  },
}

async function startRedis(dir: string): Promise<{ port: number; redis: ChildProcess }> {
  mkdirSync(dir, { recursive: true })
  const port = await findPort()
  const settings = [
    '--port',
    String(port),
    '--dir',
    dir,
    '--save',
    '',
    '--appendonly',
    'yes',
    '--appendfsync',
    'always',
  ]
  const redis = spawn('redis-server', settings, { stdio: 'ignore' })
  process.once('exit', () => redis.kill('SIGKILL'))
  return { port, redis }
}

let done = 0
// as: probe-runs.ts wrote these options
const options = JSON.parse(process.argv[2] ?? '{}') as QueueOptions
const starting = starts[options.kind](options, (jobs) => {
  done += jobs
})

/** The number of jobs a second that were added and ended. */
async function measure(seconds: number): Promise<number> {
  const { add } = await starting
  const begun = performance.now()
  const end = begun + seconds * 1_000
  const before = done
  let added = 0
  const call = async (_: unknown, seed: number) => {
    const { bytes } = createEventBody(1_000, seed)
    for (const job = JSON.parse(bytes.toString()); performance.now() < end; added += 1) await add(job)
  }
  await Promise.all(Array.from({ length: callers }, call))
  const hasJobs = () => done - before < added
  while (hasJobs() && performance.now() < end + drainMs) await pause(10)
  return (done - before) / ((performance.now() - begun) / 1_000)
}

async function reply(request: QueueRequest): Promise<number> {
  if (request !== 'stop') return measure(request.seconds)
  const { stop } = await starting
  stop()
  return 0
}

function send(answer: Promise<unknown>): void {
  answer.then(
    (result) => process.send?.({ result }),
    (error: unknown) => process.send?.({ failure: String(error) }),
  )
}

send(starting.then(() => 'ready'))
process.on('message', (request: QueueRequest) => send(reply(request)))
process.on('disconnect', () => process.exit())
