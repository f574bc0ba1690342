// A transform that never ends: what its neighbours notice of it.
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { startChild } from './child.ts'
import { createClient } from './client.ts'
import type { LoadJob, LoadResult } from './load.ts'
import type { ProbeOptions, RunningProbe } from './probe.ts'
import { token } from './run.ts'
import type { ServerOptions, ServerRequest } from './server.ts'
import { toMedian } from './statistics.ts'
import { runawayTimeoutMs } from './suites.ts'

/** More modules than one: what was stopped three times within a minute is called no more. */
const loopers = 60
const tries = 6
const loop = `export default ({ payload }) => {
  if (payload.loop) for (;;);
  return { text: 'ended' }
}
`
const calm = 'export default ({ payload }) => ({ text: payload.action })\n'

export async function createRunawayProbe({ folder, built, seconds }: ProbeOptions): Promise<RunningProbe> {
  const names = Array.from({ length: loopers }, (_, index) => `loop${index}`)
  const files = { ...Object.fromEntries(names.map((name) => [`${name}.ts`, loop])), 'calm.ts': calm }
  const transforms = { files, limits: { timeoutMs: runawayTimeoutMs } }
  const dir = mkdtempSync(join(folder, 'store-'))
  const server: ServerOptions = { kind: 'sqlite', delayMs: 0, transforms, dir, built, token }
  const args = [JSON.stringify(server)]
  const { first: port } = await startChild<ServerRequest, number>(join(folder, 'server.mjs'), args)
  const { child: generator } = await startChild<LoadJob, LoadResult>(join(folder, 'load.mjs'), [])
  const client = createClient({ port, token })
  let turn = 0
  const nextLooper = () => `/hooks/${names[turn++ % loopers] ?? ''}`
  const load = (path: string) => generator.ask({ port, path, token, connections: 1, bytes: 1000, seconds })
  for (const path of ['/hooks/calm', '/hooks/bench']) await load(path)

  async function measureNext(): Promise<{ next: number; parked: number }> {
    const path = nextLooper()
    const start = performance.now()
    const took = () => performance.now() - start
    const looping = client.post(path, { loop: true }).then(took)
    const calling = client.post(path, { loop: false }).then(took)
    const [parked, next] = await Promise.all([looping, calling])
    return { next, parked }
  }

  /** How many times as long, with one loop after the other beside it. */
  async function measureBeside(path: string, round: number): Promise<number> {
    const beside = async () => {
      const over = new AbortController()
      const looping = (async () => {
        while (!over.signal.aborted) await client.post(nextLooper(), { loop: true })
      })()
      const result = await load(path)
      over.abort()
      await looping
      return result.p99Ms
    }
    const without = async () => (await load(path)).p99Ms
    const first = round % 2 === 0 ? await without() : undefined
    const disturbed = await beside()
    return disturbed / (first ?? (await without()))
  }

  return async (round) => {
    const results: { next: number; parked: number }[] = []
    for (let index = 0; index < tries; index += 1) results.push(await measureNext())
    return {
      next: toMedian(results.map(({ next }) => next)),
      worst: Math.max(...results.map(({ next }) => next)),
      parked: toMedian(results.map(({ parked }) => parked)),
      transform: await measureBeside('/hooks/calm', round),
      template: await measureBeside('/hooks/bench', round),
    }
  }
}
