// The reads that visit more rows the larger the store is: those that only people make, and the waiting events of a main session, which are counted. In
// a large file, a thread of its own answers them, so that no request waits for them.
import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import { Problem, type ProblemCode } from '../../core/model/problem.ts'
import { storeUnavailable } from '../rules.ts'
import type { Clock } from '../store.ts'
import { readSize } from './files.ts'
import type { Reads } from './reads.ts'

const names = [
  'auditLog',
  'countBefore',
  'countInState',
  'counts',
  'deadJobs',
  'deliveries',
  'events',
  'keptBack',
  'keptSeqs',
  'lanes',
  'openJobs',
  'sessions',
  'spent',
  'stepBack',
  'tally',
  'troubles',
  'unfinishedJobs',
  'waitCounts',
  'waitingEvents',
  'waits',
] as const satisfies readonly (keyof Reads)[]
type SlowRead = (typeof names)[number]

export type ReaderRequest =
  | {
      readonly kind: 'read'
      readonly id: number
      readonly name: SlowRead
      readonly args: readonly unknown[]
      /** The time of the clock of the store. */
      readonly now: number
    }
  | { readonly kind: 'reset' }
  | { readonly kind: 'close' }

export type ReaderAnswer =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly failure: { readonly code: ProblemCode; readonly detail: string } }

type SlowReads = {
  readonly calls: Pick<Reads, SlowRead>
  /** The thread opens the file again: it may be another one. */
  reset(): void
  close(): Promise<void>
}

/** In a smaller file, a read of all rows takes about as long as a commit, and a thread would cost more than it saves. */
const largeBytes = 32 * 1024 * 1024

type Call = { readonly resolve: (value: unknown) => void; readonly reject: (problem: Problem) => void }

/** `reads`: answers while the file has less than `aboveBytes` (default 32 MiB). */
export function createSlowReads(parts: {
  readonly file: string
  readonly clock: Clock
  readonly reads: Reads
  readonly aboveBytes?: number | undefined
}): SlowReads {
  const { file, clock, reads, aboveBytes = largeBytes } = parts
  const calls = new Map<number, Call>()
  let thread: Worker | undefined
  let lastId = 0
  let isClosed = false

  function post(request: ReaderRequest): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    thread?.postMessage(request)
  }

  function start(): Worker {
    const started = new Worker(createRequire(import.meta.url).resolve('#reader'), {
      workerData: file,
      name: 'hookloom-reader',
      execArgv: [],
    })
    let cause: unknown
    started.on('message', (reply: ReaderAnswer) => {
      const call = calls.get(reply.id)
      calls.delete(reply.id)
      if ('value' in reply) return call?.resolve(reply.value)
      const { code, detail } = reply.failure
      call?.reject(new Problem(code, detail, { retryAfterSeconds: 5 }))
    })
    started.on('error', (error) => {
      cause = error
    })
    started.on('exit', () => {
      thread = undefined
      const lost = storeUnavailable('The store cannot be read: its thread died and is being restarted.', 5, cause)
      for (const call of calls.values()) call.reject(lost)
      calls.clear()
    })
    return started
  }

  function ask(name: SlowRead, args: readonly unknown[]): Promise<unknown> {
    if (isClosed) throw storeUnavailable('The store is closed.', 5)
    try {
      thread ??= start()
    } catch (error) {
      throw storeUnavailable('The store cannot be read: its thread cannot be started.', 5, error)
    }
    lastId += 1
    const id = lastId
    return new Promise((resolve, reject) => {
      calls.set(id, { resolve, reject })
      post({ kind: 'read', id, name, args, now: clock() })
    })
  }

  const bind = (name: SlowRead) => {
    // as: the arguments and the result of the call of this name
    const read = reads[name] as (...args: readonly unknown[]) => Promise<unknown>
    return async (...args: readonly unknown[]) => (readSize(file) < aboveBytes ? read(...args) : await ask(name, args))
  }
  return {
    // as: each name has its own call
    calls: Object.fromEntries(names.map((name) => [name, bind(name)])) as unknown as Pick<Reads, SlowRead>,
    reset: () => post({ kind: 'reset' }),
    async close() {
      isClosed = true
      if (thread === undefined) return
      const ended = new Promise((resolve) => thread?.once('exit', resolve))
      post({ kind: 'close' })
      await ended
    },
  }
}
