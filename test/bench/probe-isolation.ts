// What crossing to a thread and back costs on this machine, with nothing of the gateway in it.
import { once } from 'node:events'
import { performance } from 'node:perf_hooks'
import { Worker } from 'node:worker_threads'
import type { RunningProbe } from './probe.ts'
import { toQuantile } from './statistics.ts'

const trips = 3000
const echo = `const { parentPort } = require('node:worker_threads')
parentPort.on('message', (message) => parentPort.postMessage(message))`

export async function createIsolationProbe(): Promise<RunningProbe> {
  const worker = new Worker(echo, { eval: true })
  await once(worker, 'online')
  const measure = async (message: Uint8Array | number): Promise<number> => {
    const times: number[] = []
    for (let trip = 0; trip < trips; trip += 1) {
      const start = performance.now()
      const answered = once(worker, 'message')
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port, not a window
      worker.postMessage(message)
      await answered
      times.push((performance.now() - start) * 1000)
    }
    return toQuantile(times, 0.5)
  }
  return async () => ({ empty: await measure(0), kilobyte: await measure(new Uint8Array(1000)) })
}
