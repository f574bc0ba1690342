// How many runs a second a gateway accepts, performs and records, beside job queues; and how much its runs slow down the intake.
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { startChild } from './child.ts'
import type { LoadJob, LoadResult } from './load.ts'
import type { ProbeOptions, RunningProbe } from './probe.ts'
import { createSchema } from './probe-postgres.ts'
import type { QueueOptions, QueueRequest } from './queue.ts'
import { findQueue, type QueueKind, queueKinds } from './queues.ts'
import { token } from './run.ts'
import type { ServerOptions, ServerRequest } from './server.ts'

const connections = 64
const warmSeconds = 1
/** The time that the runs may take to end after the last request. */
const drainMs = 60_000
const fewSlots = 16
const manySlots = 64

type Gateway = Pick<ServerOptions, 'kind' | 'url' | 'slots' | 'waits'> & { readonly countDone?: () => Promise<number> }

export async function createRunsProbe({ folder, built, seconds }: ProbeOptions): Promise<RunningProbe> {
  const database = process.env['HOOKLOOM_TEST_POSTGRES']
  const { child: generator } = await startChild<LoadJob, LoadResult>(join(folder, 'load.mjs'), [])

  /** Starts a gateway, and calls `measure` with functions to load it and to wait for its runs. */
  async function withGateway<Result>(
    { countDone, ...given }: Gateway,
    measure: (gateway: {
      load(): Promise<LoadResult>
      drain(): Promise<number>
      usage(): Promise<number>
    }) => Promise<Result>,
  ): Promise<Result> {
    const dir = mkdtempSync(join(folder, 'store-'))
    const server: ServerOptions = { ...given, delayMs: 0, dir, built, token }
    const { child, first: port } = await startChild<ServerRequest, number>(join(folder, 'server.mjs'), [
      JSON.stringify(server),
    ])
    let answered = 0
    const count = countDone ?? (() => child.ask('jobs'))
    const load = async (forSeconds: number) => {
      const result = await generator.ask({
        port,
        path: '/hooks/bench-run',
        token,
        connections,
        bytes: 1_000,
        seconds: forSeconds,
      })
      answered += result.answered
      return result
    }
    const drain = async () => {
      const end = performance.now() + drainMs
      let done = await count()
      for (; done < answered && performance.now() < end; done = await count()) await pause(20)
      return done
    }
    try {
      await load(warmSeconds)
      if (given.waits !== true) await drain()
      return await measure({ load: () => load(seconds), drain, usage: () => child.ask('usage') })
    } finally {
      await child.kill()
    }
  }

  /** From the first request to the end of the last run. */
  const countRuns = (gateway: Gateway) =>
    withGateway(gateway, async ({ load, drain, usage }) => {
      const [before, used, begun] = [await drain(), await usage(), performance.now()]
      await load()
      const runs = (await drain()) - before
      const took = (performance.now() - begun) / 1_000
      return { perSecond: runs / took, cpuMs: ((await usage()) - used) / 1_000 / runs }
    })

  async function countRunsOnPostgres(slots: number) {
    const schema = await createSchema(database ?? '')
    const countDone = () => schema.count(`SELECT count(*) FROM jobs WHERE state = 'done' AND delivery_seq IS NOT NULL`)
    try {
      return await countRuns({ kind: 'postgres', url: schema.url, slots, countDone })
    } finally {
      await schema.drop()
    }
  }

  async function countJobs(kind: QueueKind): Promise<number> {
    const schema = await createSchema(database ?? '')
    const queue: QueueOptions = {
      kind,
      url: database ?? '',
      schema: schema.name,
      dir: mkdtempSync(join(folder, 'queue-')),
      slots: fewSlots,
    }
    const { child } = await startChild<QueueRequest, number>(join(folder, 'queue.mjs'), [JSON.stringify(queue)])
    try {
      await child.ask({ seconds: warmSeconds })
      return await child.ask({ seconds })
    } finally {
      await child.ask('stop').catch(() => 0)
      await child.kill()
      await schema.drop()
    }
  }

  async function measureIntake() {
    const measure = (slots: Pick<Gateway, 'waits'>) => withGateway({ kind: 'sqlite', ...slots }, ({ load }) => load())
    const [running, waiting] = [await measure({}), await measure({ waits: true })]
    return { beside: running.perSecond / waiting.perSecond, 'beside p99': running.p99Ms / waiting.p99Ms }
  }

  return async () => {
    const file = await countRuns({ kind: 'sqlite', slots: manySlots })
    const figures: Record<string, number> = {
      sqlite: file.perSecond,
      'sqlite processor': file.cpuMs,
      ...(await measureIntake()),
    }
    if (database === undefined) return figures
    for (const slots of [fewSlots, manySlots]) {
      const { perSecond, cpuMs } = await countRunsOnPostgres(slots)
      figures[`postgres ${slots}`] = perSecond
      figures[`postgres ${slots} processor`] = cpuMs
    }
    for (const kind of queueKinds) if (findQueue(kind) !== undefined) figures[kind] = await countJobs(kind)
    figures['share'] = (figures[`postgres ${fewSlots}`] ?? Number.NaN) / (figures['graphile-worker'] ?? Number.NaN)
    return figures
  }
}
