// The reader thread: answers the slow reads of a large file. See slow-reads.ts.
import { parentPort, workerData } from 'node:worker_threads'
import { Problem } from '../../core/model/problem.ts'
import { createReadConnection } from './connection.ts'
import { createReads } from './reads.ts'
import type { ReaderAnswer, ReaderRequest } from './slow-reads.ts'

// as: slow-reads.ts starts this thread with the file
const connection = createReadConnection(workerData as string)
let now = 0
const reads = createReads(connection, () => now)

async function answer({
  id,
  name,
  args,
  now: at,
}: Extract<ReaderRequest, { readonly kind: 'read' }>): Promise<ReaderAnswer> {
  now = at
  try {
    // as: slow-reads.ts sends the arguments of this call
    const read = reads[name] as (...given: readonly unknown[]) => Promise<unknown>
    return { id, value: await read(...args) }
  } catch (error) {
    const problem = error instanceof Problem ? error : undefined
    const detail = problem?.message ?? `The store cannot be read: ${String(error)}.`
    return { id, failure: { code: problem?.code ?? 'store-unavailable', detail } }
  }
}

parentPort?.on('message', async (request: ReaderRequest) => {
  switch (request.kind) {
    case 'read': {
      const reply = await answer(request)
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port, not a window
      return parentPort?.postMessage(reply)
    }
    case 'reset':
      return connection.reset()
    case 'close':
      connection.close()
      return parentPort?.close()
  }
})
