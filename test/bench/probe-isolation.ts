// What crossing to a thread and back costs on this machine: bare, and as a call of a transform with nothing else of the gateway.
import { once } from 'node:events'
import { mkdtempSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { Worker } from 'node:worker_threads'
import { createTransformRuntime } from '../../src/loader/runtime.ts'
import { silentLog } from '../../src/model/log.ts'
import type { TransformCall } from '../../src/model/transform.ts'
import type { ProbeOptions, RunningProbe } from './probe.ts'
import { toQuantile } from './statistics.ts'

const trips = 3000
const echo = `const { parentPort } = require('node:worker_threads')
parentPort.on('message', (message) => parentPort.postMessage(message))`

export async function createIsolationProbe({ folder }: ProbeOptions): Promise<RunningProbe> {
  const worker = new Worker(echo, { eval: true })
  await once(worker, 'online')
  const bare = async (message: Uint8Array | number) => {
    const answered = once(worker, 'message')
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port, not a window
    worker.postMessage(message)
    await answered
  }
  const call = await loadCall(folder)
  const bytes = new Uint8Array(1000)
  return async () => {
    const [empty, kilobyte, transform] = await measure([() => bare(0), () => bare(bytes), call])
    return { empty, kilobyte, transform, ratio: transform / kilobyte }
  }
}

/** The p50 of each, in microseconds; taken in turns, so that noise hits all alike. */
async function measure<Ways extends readonly (() => Promise<unknown>)[]>(ways: readonly [...Ways]) {
  const times = ways.map((): number[] => [])
  for (let trip = 0; trip < trips; trip += 1) {
    for (const [way, go] of ways.entries()) {
      const start = performance.now()
      await go()
      times[way]?.push((performance.now() - start) * 1000)
    }
  }
  // as: one for each way
  return times.map((each) => toQuantile(each, 0.5)) as { [Way in keyof Ways]: number }
}

/** One call of a transform that gives back what it gets, a body of 1 kB, as the pipe makes it. */
async function loadCall(folder: string): Promise<() => Promise<unknown>> {
  const root = realpathSync(mkdtempSync(join(folder, 'modules-')))
  writeFileSync(join(root, 'echo.ts'), 'export default ({ payload }) => ({ text: payload.text })\n')
  const runtime = createTransformRuntime({
    limits: () => ({ timeoutMs: 10_000, memoryMb: 128, workers: 1 }),
    env: () => ({}),
    clock: Date.now,
    log: silentLog,
  })
  const [transform] = (await runtime.load({ root, refs: [{ module: 'echo.ts' }] })).values()
  if (transform === undefined || transform.problem !== undefined) throw new Error('A module did not load.')
  const body = Buffer.from(JSON.stringify({ text: 'x'.repeat(985) }))
  const head: TransformCall['head'] = {
    headers: { 'content-type': 'application/json', host: '127.0.0.1', 'user-agent': 'bench' },
    query: {},
    url: '/hooks/echo',
    path: 'echo',
    method: 'POST',
    source: undefined,
    event: undefined,
    receivedAt: 0,
    deliveryId: 'd',
  }
  return () => transform.run({ head, body, contentType: 'application/json' })
}
