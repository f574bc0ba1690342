// The priority of one thread of the process (Linux only).
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { lowerPriority, readThreadId } from '../../../../src/core/transforms/worker/messages.ts'
import { Worker } from 'node:worker_threads'
import { once } from 'node:events'

const isLinux = process.platform === 'linux'

/** The niceness of a thread of this process: the 19th field of its stat. The name before it may contain spaces. */
function readNiceness(id: number): number {
  const stat = readFileSync(`/proc/self/task/${id}/stat`, 'utf8')
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16])
}

test.skipIf(!isLinux)(
  'a lowered priority applies to one thread of the process, and a thread that has ended is ignored (skipped: threads have no niceness here)',
  async () => {
    const worker = new Worker(
      `const { parentPort } = require('node:worker_threads')
     const id = require('node:fs').readlinkSync('/proc/thread-self').split('/').at(-1)
     parentPort.on('message', () => {})
     parentPort.postMessage(Number(id))`,
      { eval: true },
    )
    const [id] = await once(worker, 'message')
    const own = readThreadId() ?? 0
    const before = readNiceness(own)
    expect(readNiceness(Number(id))).toBe(before)
    lowerPriority(Number(id))
    expect(readNiceness(Number(id))).toBe(19)
    expect(readNiceness(own)).toBe(before)
    await worker.terminate()
    // a thread that has ended causes no exception
    lowerPriority(Number(id))
    lowerPriority(undefined)
  },
)
