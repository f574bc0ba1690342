// How much slower the intake is while a thousand runs wait for a slow model.
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { startTimedModel } from './battery/model.ts'
import { startChild } from './child.ts'
import { createClient } from './client.ts'
import type { LoadJob, LoadResult } from './load.ts'
import type { ProbeOptions, RunningProbe } from './probe.ts'
import { token } from './run.ts'
import type { ServerOptions, ServerRequest } from './server.ts'
import { queuedRuns } from './figures.ts'

/** The duration of a turn, so long that the queue outlasts the measurement. */
const turnMs = 250
const connections = 16

export async function createQueueProbe({ folder, built, seconds }: ProbeOptions): Promise<RunningProbe> {
  const { url: modelUrl } = await startTimedModel(() => turnMs)
  const { child: generator } = await startChild<LoadJob, LoadResult>(join(folder, 'load.mjs'), [])

  /** The p99 of the intake with this number of queued runs, and how many of them were still queued at the end. */
  async function measure(queued: number): Promise<{ p99Ms: number; left: number }> {
    const dir = mkdtempSync(join(folder, 'store-'))
    const server: ServerOptions = { kind: 'sqlite', delayMs: 0, modelUrl, dir, built, token }
    const started = await startChild<ServerRequest, number>(join(folder, 'server.mjs'), [JSON.stringify(server)])
    const { first: port, child } = started
    try {
      const load = () => generator.ask({ port, path: '/hooks/bench', token, connections, bytes: 1000, seconds })
      await load()
      const client = createClient({ port, token })
      for (let sent = 0; sent < queued; sent += 50) {
        await Promise.all(Array.from({ length: 50 }, () => client.post('/hooks/bench-agent', { action: 'wait' })))
      }
      const { p99Ms } = await load()
      return { p99Ms, left: await child.ask('queued') }
    } finally {
      await child.kill()
    }
  }

  return async (round) => {
    const first = round % 2 === 0 ? await measure(0) : undefined
    const full = await measure(queuedRuns)
    const idle = first ?? (await measure(0))
    return { ratio: full.p99Ms / idle.p99Ms, idle: idle.p99Ms, full: full.p99Ms, left: full.left }
  }
}
