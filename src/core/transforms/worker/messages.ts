// The messages between the main thread and a transform worker, and the numbers in their shared memory.
import { readlinkSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import type { MessagePort } from 'node:worker_threads'
import type { ProblemRecord } from '../../model/problem.ts'
import type { TransformCall, TransformOutcome } from '../../model/transform.ts'
import type { Bundle } from '../modules/build.ts'

/** A bundle with a number. Two modules with the same code are two bundles, because each has its own file name. */
export type BundlePost = Pick<Bundle, 'root' | 'file' | 'code' | 'map'> & { readonly id: number }

/** One call in the text of a batch. Its body is the next `size` bytes of the bodies of the batch. */
export type CallPost = Pick<TransformCall, 'head' | 'syntax' | 'serves'> & {
  /** The number of the call in its thread, from 1. */
  readonly seq: number
  readonly bundle: number
  readonly export?: string | undefined
  readonly size: number
  /** Whether all bytes are ASCII, so that they need no decoding. */
  readonly isAscii: boolean
  /** False: `context.state` is empty at the beginning. */
  readonly hasState: boolean
}

export type ToWorker =
  | { readonly kind: 'load'; readonly bundle: BundlePost; readonly timeoutMs: number }
  /** The worker answers with `checked` when the bundle is evaluated. */
  | { readonly kind: 'check'; readonly bundle: number; readonly exports: readonly (string | undefined)[] }
  | { readonly kind: 'unload'; readonly bundle: number }
  /**
   * `calls` is JSON of CallPost[], because a text is copied faster than an object, which is cloned field by field. Small bodies are also
   * sent as a text, with one character for each byte, because the transfer of a buffer costs 10 µs.
   */
  | { readonly kind: 'calls'; readonly calls: string; readonly bodies: ArrayBuffer | string }
  | { readonly kind: 'ping' }
  /** The answer to the message `state` of the worker. `isRead`: false if the store could not be read. */
  | {
      readonly kind: 'state'
      readonly seq: number
      readonly key: string
      readonly json: string | undefined
      readonly isRead: boolean
    }

export type ThreadExit = {
  readonly kind: 'leaving'
  readonly why: 'globals' | 'memory' | 'exit' | 'uncaught'
  /** `globals`: the changed global. `exit`: the function that was called. `uncaught`: the kind of the exception. `memory`: empty. */
  readonly what: string
  readonly problem?: ProblemRecord
  /** The call whose code caused the problem, if it is known. The call may have ended before. */
  readonly seq: number | undefined
  readonly bundle: number | undefined
}

export type FromWorker =
  /** `systemId`: the id of the thread in the operating system, if the system shows it. */
  | { readonly kind: 'ready'; readonly systemId: number | undefined }
  /** `outcomes`: the JSON of SettledCall[]. */
  | { readonly kind: 'outcomes'; readonly outcomes: string }
  /** Calls that did not begin, and will not begin in this thread. */
  | { readonly kind: 'unrun'; readonly seqs: readonly number[] }
  | {
      readonly kind: 'checked'
      readonly bundle: number
      /** One result for each requested export; undefined if it is a function. */
      readonly problems: readonly (ProblemRecord | undefined)[]
      /** The result of `listSchemaPaths` for each requested export. */
      readonly reads: unknown
      /** The global that the module changed while it loaded. */
      readonly changed: string | undefined
    }
  | { readonly kind: 'pong' }
  /** Sent before each outcome by a thread that measures coverage: see `CoverageProbe`. */
  | { readonly kind: 'covered'; readonly bundle: number; readonly parts: readonly number[] }
  /** A call reads a key of its module for the first time. */
  | { readonly kind: 'state'; readonly seq: number; readonly key: string }
  /** The worker accepts no more calls. Calls in flight may end. With `exit` the thread ends at once. */
  | ThreadExit

export type SettledCall = readonly [seq: number, outcome: TransformOutcome]

/** `port`: the channel between both threads. `parentPort` is not used, because every module in the thread can import it. */
export type WorkerStart = {
  readonly sharedState: SharedArrayBuffer
  readonly memoryMb: number
  readonly port: MessagePort
  /** Whether the thread measures which code its calls run. */
  readonly measures: boolean
  /** Whether the thread runs shadows: see `blockEffects`. */
  readonly isShadow: boolean
}

/**
 * Numbers in shared memory, which each side can read while the other one is busy.
 * - `running`: the call whose synchronous code runs in the thread, else 0.
 * - `begun`: the newest call that has begun. The worker writes it, then reads `recalled`.
 * - `recalled`: calls up to this one must not begin any more. The main thread writes it, then reads `begun`. So each call is
 *   either run by the worker or recalled, never both.
 * - `loading`: the bundle whose top level runs in the thread, until its first `await`, else 0.
 */
export const stateIndex = { running: 0, begun: 1, recalled: 2, loading: 3 } as const
export const stateBytes = 16

/** The id of the current thread in the operating system; undefined if the system does not show it. */
export function readThreadId(): number | undefined {
  try {
    // <process>/task/<thread>
    const id = Number(readlinkSync('/proc/thread-self').split('/').at(-1))
    return Number.isSafeInteger(id) ? id : undefined
  } catch {
    return undefined
  }
}

/** Lowers the priority of one thread on Linux, and does nothing on other systems. Only a privileged user can raise it again. */
export function lowerPriority(threadId: number | undefined): void {
  if (threadId === undefined) return
  try {
    setPriority(threadId, constants.priority.PRIORITY_LOW)
  } catch {
    // the thread has ended, or the system denies it
  }
}
