// A thread that returns each message. It measures the minimum cost of a round trip to a thread.
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'

const source = `const { parentPort } = require('node:worker_threads')
parentPort.on('message', (message) => parentPort.postMessage(message))`

export type Echo = {
  /** Sends one message and receives it again. Several trips may overlap; they end in order. */
  trip(message: Uint8Array | number): Promise<void>
}

export async function startEcho(): Promise<Echo> {
  const worker = new Worker(source, { eval: true })
  const waiting: (() => void)[] = []
  worker.on('message', () => waiting.shift()?.())
  await once(worker, 'online')
  return {
    trip: (message) =>
      new Promise((resolve) => {
        waiting.push(resolve)
        // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port, not a window
        worker.postMessage(message)
      }),
  }
}
