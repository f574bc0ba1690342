// Runs the measurements in rounds: in each, all variants run each load in turn, so that noise affects all of them. A server that runs no jobs stays
// for all rounds, because its code is compiled only after tens of thousands of requests.
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { type Child, startChild } from './child.ts'
import { type DiskTimes, measureDisk } from './disk.ts'
import { measureBusy } from './machine.ts'
import type { LoadJob, LoadResult } from './load.ts'
import type { ServerOptions, ServerRequest } from './server.ts'
import { type Load, type Suite, type Variant, warmUpPath } from './suites.ts'

export type Sample = LoadResult & {
  readonly suite: Suite['name']
  readonly variant: Variant
  readonly load: Load
  readonly round: number
  /** The processor time of the server's process for one answered request, in all threads. */
  readonly cpuMicros: number
  /** The processor time of its main thread. 0 if unknown. */
  readonly mainMicros: number
  readonly jobsPerSecond: number | undefined
}

export type RunOptions = {
  readonly suites: readonly Suite[]
  readonly rounds: number
  readonly seconds: number
  /** The folder of the compiled children and of the stores. */
  readonly folder: string
  /** The URL of the built package's `index.js`. */
  readonly built: string
  readonly onProgress: (text: string) => void
}

export type Measured = {
  readonly samples: readonly Sample[]
  readonly disk: readonly DiskTimes[]
  readonly busy: readonly number[]
}

type Running = { readonly port: number; readonly child: Child<ServerRequest, number> }
type Generator = Child<LoadJob, LoadResult>

export const token = 'bench-token-0123456789abcdef'
const warmUp: Load = { connections: 16, bytes: 1_000 }
/** The limits of the warm-up, in which code is compiled: this many requests, or this time. */
const warmUpRequests = 20_000
const warmUpSeconds = 5

export async function runSuites(options: RunOptions): Promise<Measured> {
  const { suites, rounds, onProgress } = options
  const samples: Sample[] = []
  const disk: DiskTimes[] = []
  const busy: number[] = []
  const { child: generator } = await startChild<LoadJob, LoadResult>(join(options.folder, 'load.mjs'), [])
  const servers = new Map<string, Running>()
  try {
    for (const variant of suites.flatMap((suite) => suite.variants)) {
      if (variant.runsJobs || servers.has(toServerName(variant))) continue
      onProgress(`warming up ${variant.name}`)
      servers.set(toServerName(variant), await startServer(variant, generator, options))
    }
    for (let round = 0; round < rounds; round += 1) {
      busy.push(await measureBusy())
      disk.push(measureDisk(options.folder))
      for (const suite of suites) {
        onProgress(`round ${round + 1} of ${rounds}: ${suite.name}`)
        for (const { variant, load } of planTurns(suite, round)) {
          const known = servers.get(toServerName(variant))
          const server = known ?? (await startServer(variant, generator, options))
          try {
            const sample = await measure(server, { variant, load, seconds: options.seconds, generator })
            samples.push({ suite: suite.name, round, ...sample })
          } finally {
            if (known === undefined) await stopServer(server)
          }
        }
      }
    }
  } finally {
    for (const server of servers.values()) await stopServer(server)
    await generator.kill()
  }
  return { samples, disk, busy }
}

async function stopServer({ child }: Running): Promise<void> {
  try {
    await child.ask('stop')
  } catch {
    // the server has already ended
  }
  await child.kill()
}

/** Each round begins with another variant, so that no variant is always the first after a pause. */
function planTurns({ variants, loads }: Suite, round: number): { variant: Variant; load: Load }[] {
  const first = round % variants.length
  const turned = [...variants.slice(first), ...variants.slice(0, first)]
  return loads.flatMap((load) => turned.map((variant) => ({ variant, load })))
}

/** The key of a variant's server. Variants with the same key share a server. */
function toServerName({ server, runsJobs = false }: Variant): string {
  return JSON.stringify([server, runsJobs])
}

async function startServer(variant: Variant, generator: Generator, { folder, built }: RunOptions): Promise<Running> {
  const dir = mkdtempSync(join(folder, 'store-'))
  const server: ServerOptions = { ...variant.server, dir, built, token }
  const args = [JSON.stringify(server)]
  const { child, first: port } = await startChild<ServerRequest, number>(join(folder, 'server.mjs'), args)
  try {
    await warmUpServer(port, generator, variant)
  } catch (error) {
    await child.kill()
    throw error
  }
  return { port, child }
}

/** Sends the load of the warm-up, but never to the hook that runs jobs: it would leave a backlog. */
async function warmUpServer(port: number, generator: Generator, { runsJobs, ...variant }: Variant): Promise<void> {
  const path = runsJobs ? warmUpPath : variant.path
  const { method = 'POST', signed = false } = variant
  for (let second = 0, answered = 0; second < warmUpSeconds && answered < warmUpRequests; second += 1) {
    answered += (await generator.ask({ port, path, method, token, signed, ...warmUp, seconds: 1 })).answered
  }
}

type Turn = { variant: Variant; load: Load; seconds: number; generator: Generator }

async function measure({ port, child }: Running, { variant, load, seconds, generator }: Turn) {
  await child.ask('empty')
  const jobsBefore = variant.runsJobs ? await child.ask('jobs') : 0
  const mainBefore = await child.ask('main thread')
  const before = await child.ask('usage')
  const result = await generator.ask({
    port,
    path: variant.path,
    method: variant.method ?? 'POST',
    token,
    signed: variant.signed ?? false,
    ...load,
    seconds,
  })
  const used = (await child.ask('usage')) - before
  const usedByMain = (await child.ask('main thread')) - mainBefore
  const jobs = variant.runsJobs ? (await child.ask('jobs')) - jobsBefore : undefined
  return {
    ...result,
    variant,
    load,
    cpuMicros: used / result.answered,
    mainMicros: usedByMain / result.answered,
    jobsPerSecond: jobs === undefined ? undefined : jobs / result.tookSeconds,
  }
}
