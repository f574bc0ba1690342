// How much a transform that never ends slows down other transforms.
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { type Child, startChild } from './child.ts'
import { createClient } from './client.ts'
import type { LoadJob, LoadResult } from './load.ts'
import type { ProbeOptions, RunningProbe } from './probe.ts'
import { token } from './run.ts'
import type { ServerOptions, ServerRequest } from './server.ts'
import { computeMedian } from './statistics.ts'
import { runawayTimeoutMs } from './figures.ts'

/** The number of modules with a loop. A module whose code was stopped three times within a minute gets no more calls. */
const loopers = 60
const tries = 6
const loop = `export default ({ payload }) => {
  if (payload.loop) for (;;);
  return { text: 'ended' }
}
`
const calm = 'export default ({ payload }) => ({ text: payload.action })\n'

type Stage = {
  /** Runs one endless loop, in a module that has not looped yet. Resolves when the loop was stopped. */
  loop(): Promise<number>
  /** Sends an endless loop and another call of the same module together. Returns the time of each. */
  loopAndCall(): Promise<{ parked: number; next: number }>
  load(path: string): Promise<LoadResult>
}

export async function createRunawayProbe(options: ProbeOptions): Promise<RunningProbe> {
  const { child: generator } = await startChild<LoadJob, LoadResult>(join(options.folder, 'load.mjs'), [])
  // one stage with a loop that lasts as long as the measurement, and one with loops that are stopped one after the other
  const held = await openStage(options, { timeoutMs: options.seconds * 1_000 + 1_500, generator })
  const brief = await openStage(options, { timeoutMs: runawayTimeoutMs, generator })

  return async (round) => {
    const results: { next: number; parked: number }[] = []
    for (let index = 0; index < tries; index += 1) results.push(await brief.loopAndCall())
    return {
      next: computeMedian(results.map(({ next }) => next)),
      worst: Math.max(...results.map(({ next }) => next)),
      parked: computeMedian(results.map(({ parked }) => parked)),
      transform: await compareWithLoop(held, '/hooks/calm', round),
      template: await compareWithLoop(held, '/hooks/bench', round),
      'series transform': await compareWithLoop(brief, '/hooks/calm', round),
      'series template': await compareWithLoop(brief, '/hooks/bench', round),
    }
  }
}

async function openStage(
  { folder, built, seconds }: ProbeOptions,
  { timeoutMs, generator }: { timeoutMs: number; generator: Child<LoadJob, LoadResult> },
): Promise<Stage> {
  const names = Array.from({ length: loopers }, (_, index) => `loop${index}`)
  const files = { ...Object.fromEntries(names.map((name) => [`${name}.ts`, loop])), 'calm.ts': calm }
  const dir = mkdtempSync(join(folder, 'store-'))
  const server: ServerOptions = {
    kind: 'sqlite',
    delayMs: 0,
    transforms: { files, limits: { timeoutMs } },
    dir,
    built,
    token,
  }
  const args = [JSON.stringify(server)]
  const { first: port } = await startChild<ServerRequest, number>(join(folder, 'server.mjs'), args)
  const client = createClient({ port, token })
  let turn = 0
  const takeNextLooper = () => `/hooks/${names[turn++ % loopers] ?? ''}`
  const load = (path: string) => generator.ask({ port, path, token, connections: 1, bytes: 1000, seconds })
  for (const path of ['/hooks/calm', '/hooks/bench']) await load(path)
  return {
    load,
    loop: () => client.post(takeNextLooper(), { loop: true }),
    async loopAndCall() {
      const path = takeNextLooper()
      const start = performance.now()
      const measureTime = () => performance.now() - start
      const looping = client.post(path, { loop: true }).then(measureTime)
      const calling = client.post(path, { loop: false }).then(measureTime)
      const [parked, next] = await Promise.all([looping, calling])
      return { parked, next }
    },
  }
}

/** The p99 with a loop, divided by the p99 without one. When a loop is stopped, the next loop starts. */
async function compareWithLoop({ load, loop: runLoop }: Stage, path: string, round: number): Promise<number> {
  const measureWithLoop = async () => {
    const over = new AbortController()
    const looping = (async () => {
      while (!over.signal.aborted) await runLoop()
    })()
    const { p99Ms } = await load(path)
    over.abort()
    await looping
    return p99Ms
  }
  const measureWithoutLoop = async () => (await load(path)).p99Ms
  const first = round % 2 === 0 ? await measureWithoutLoop() : undefined
  const disturbed = await measureWithLoop()
  return disturbed / (first ?? (await measureWithoutLoop()))
}
