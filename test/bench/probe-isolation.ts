// How much slower a transform call is in its worker than inline, compared with the minimum cost of a round trip to a thread. All run
// alternately on one processor: the time to wake another processor is 5 µs on some machines, and 50 µs on a virtual one.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { createTransformRuntime } from '../../src/core/transforms/runtime.ts'
import { silentLog } from '../../src/base/log.ts'
import { toTransformKey } from '../../src/core/model/transform.ts'
import type { Transform, TransformCall } from '../../src/core/model/transform.ts'
import { loadTransforms } from '../inline-transforms.ts'
import { startEcho } from './echo.ts'
import type { ProbeOptions, RunningProbe } from './probe.ts'
import { computeQuantile } from './statistics.ts'

const trips = 3000

export async function createIsolationProbe({ folder }: ProbeOptions): Promise<RunningProbe> {
  // later threads run on the same processor; without taskset, the system chooses the processor
  spawnSync('taskset', ['-acp', '0', String(process.pid)])
  const { trip } = await startEcho()
  const { isolated, inline } = await loadBoth(folder)
  const call = buildCall()
  const ways = [() => trip(call.body), () => inline.run(call), () => isolated.run(call)] as const
  await measure(ways)
  return async () => {
    const [bare, without, within] = await measure(ways)
    return { bare, inline: without, worker: within, added: within - without, ratio: (within - without) / bare }
  }
}

/** The p50 of each way in microseconds. The ways are measured alternately, so that noise affects all of them. */
async function measure<Ways extends readonly (() => Promise<unknown>)[]>(ways: readonly [...Ways]) {
  const times = ways.map((): number[] => [])
  for (let trip = 0; trip < trips; trip += 1) {
    for (const [way, go] of ways.entries()) {
      const start = performance.now()
      await go()
      times[way]?.push((performance.now() - start) * 1000)
    }
  }
  // as: there is one number for each way
  return times.map((each) => computeQuantile(each, 0.5)) as { [Way in keyof Ways]: number }
}

/** Loads a transform that returns its input: isolated and inline. */
async function loadBoth(folder: string): Promise<{ isolated: Transform; inline: Transform }> {
  const root = realpathSync(mkdtempSync(join(folder, 'modules-')))
  writeFileSync(join(root, 'echo.ts'), 'export default ({ payload }) => ({ text: payload.text })\n')
  const ref = { module: 'echo.ts' }
  const settings = { timeoutMs: 10_000, memoryMb: 128, workers: 1, env: {} }
  const runtime = createTransformRuntime({ clock: Date.now, log: silentLog })
  const isolated = (await runtime.load({ root, refs: [ref], settings })).get(toTransformKey(ref))
  const inline = (await loadTransforms({ root, refs: [ref], ...settings })).get(toTransformKey(ref))
  if (isolated?.problem !== undefined || inline?.problem !== undefined) throw new Error('A module did not load.')
  if (isolated === undefined || inline === undefined) throw new Error('A module was not loaded.')
  return { isolated, inline }
}

/** A call with a body of 1 kB, in the form in which the pipe builds it. */
function buildCall(): TransformCall {
  return {
    head: {
      headers: { 'content-type': 'application/json', host: '127.0.0.1', 'user-agent': 'bench' },
      query: {},
      url: '/hooks/echo',
      path: 'echo',
      method: 'POST',
      source: undefined,
      event: undefined,
      receivedAt: 0,
      deliveryId: 'd',
    },
    body: Buffer.from(JSON.stringify({ text: 'x'.repeat(985) })),
    syntax: 'json',
  }
}
