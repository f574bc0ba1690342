// How much slower the intake is while a thousand runs wait for a slow model.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { mkdtempSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
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

const completion = JSON.stringify({
  id: 'c',
  object: 'chat.completion',
  created: 0,
  model: 'slow',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Done.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
})

async function startModel(): Promise<string> {
  const server = createServer((request, response) => {
    request.resume()
    setTimeout(() => response.setHeader('content-type', 'application/json').end(completion), turnMs)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  // as: a server that listens on a port has this address
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
}

export async function createQueueProbe({ folder, built, seconds }: ProbeOptions): Promise<RunningProbe> {
  const modelUrl = await startModel()
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
