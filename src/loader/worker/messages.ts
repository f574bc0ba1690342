// What the main thread and a transform worker say to one another, and the few words that they share in memory.
import { readlinkSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import type { MessagePort } from 'node:worker_threads'
import type { ProblemRecord } from '../../model/problem.ts'
import type { TransformCall, TransformOutcome } from '../../model/transform.ts'
import type { Bundle } from '../modules/build.ts'

/** A bundle under a number: two modules with the same code are two of them, for each has its own file name. */
export type BundlePost = Pick<Bundle, 'root' | 'file' | 'code' | 'map'> & { readonly id: number }

/** One call inside the text of a batch; its body is the next `size` bytes of the batch's bodies. */
export type CallPost = Pick<TransformCall, 'head' | 'syntax'> & {
  /** Rises by one from call to call of a thread, from 1. */
  readonly seq: number
  readonly bundle: number
  readonly export?: string | undefined
  readonly size: number
  /** The bytes are characters: nothing is to be decoded. */
  readonly isAscii: boolean
}

export type ToWorker =
  | { readonly kind: 'load'; readonly bundle: BundlePost; readonly timeoutMs: number }
  /** Answered by `checked`, once the bundle is evaluated. */
  | { readonly kind: 'check'; readonly bundle: number; readonly exports: readonly (string | undefined)[] }
  | { readonly kind: 'unload'; readonly bundle: number }
  /**
   * `calls` is JSON of CallPost[]: a text is copied at the speed of memory, an object is cloned field by field. Few bytes go as
   * a text too, of which each character is a byte: to hand over a buffer costs 10 µs.
   */
  | { readonly kind: 'calls'; readonly calls: string; readonly bodies: ArrayBuffer | string }
  | { readonly kind: 'ping' }

export type Leaving = {
  readonly kind: 'leaving'
  readonly why: 'globals' | 'memory' | 'exit' | 'uncaught'
  /** `globals`: what was changed. `exit`: how. `uncaught`: the problem. */
  readonly what: string
  readonly problem?: ProblemRecord
  /** The call from whose code it came, as far as that is known; it may have ended before. */
  readonly seq: number | undefined
  readonly bundle: number | undefined
}

export type FromWorker =
  /** `systemId`: the system's number of the thread, where the system tells. */
  | { readonly kind: 'ready'; readonly systemId: number | undefined }
  /** JSON of SettledCall[]. */
  | { readonly kind: 'outcomes'; readonly outcomes: string }
  /** Calls that were not begun, and never will be here. */
  | { readonly kind: 'unrun'; readonly seqs: readonly number[] }
  | {
      readonly kind: 'checked'
      readonly bundle: number
      /** One for each export that was asked for; undefined: it is a function. */
      readonly problems: readonly (ProblemRecord | undefined)[]
      /** Which global thing the module changed while it loaded. */
      readonly changed: string | undefined
    }
  | { readonly kind: 'pong' }
  /** No more calls, please; those that are in flight may end. With `exit` the thread is gone at once. */
  | Leaving

export type SettledCall = readonly [seq: number, outcome: TransformOutcome]

/** `port`: both sides talk over it, for every module in the thread can import `parentPort`. */
export type WorkerStart = {
  readonly sharedState: SharedArrayBuffer
  readonly memoryMb: number
  readonly port: MessagePort
}

/**
 * Numbers in shared memory, which both sides read while the other one is busy.
 * - `running`: the call whose synchronous part holds the thread, else 0.
 * - `begun`: the newest call that was begun. The worker writes it, then reads `recalled`.
 * - `recalled`: calls up to this one are not to be begun any more. The main thread writes it, then reads `begun`: a call is
 *   run by one of the two and never by both.
 */
export const stateIndex = { running: 0, begun: 1, recalled: 2 } as const
export const stateBytes = 12

/** The id of the current thread in the operating system; undefined where the system does not give one. */
export function readThreadId(): number | undefined {
  try {
    // <process>/task/<thread>
    const id = Number(readlinkSync('/proc/thread-self').split('/').at(-1))
    return Number.isSafeInteger(id) ? id : undefined
  } catch {
    return undefined
  }
}

/** Lowers the priority of one thread on Linux; elsewhere it does nothing. It cannot be raised again without privileges. */
export function lowerPriority(threadId: number | undefined): void {
  if (threadId === undefined) return
  try {
    setPriority(threadId, constants.priority.PRIORITY_LOW)
  } catch {
    // it has ended, or the system denies it
  }
}
