// What the main thread asks of the writer thread: strings, numbers and bytes only, so that a batch is cheap to clone.
import { Problem, type ProblemCode } from '../../model/problem.ts'
import type { Row, SqlValue } from './driver.ts'
import type { Appended, Cursor, DedupeKey, StoreHealth } from '../store.ts'

/** Columns of a settlement, in the order of its values. */
export const settlementColumns = [
  'state',
  'mapping_id',
  'generation',
  'transform_hash',
  'waits_for',
  'problem',
  'trace',
  'log',
  'settled_at',
  'head',
  'body',
] as const

/** Columns of a new delivery: its own, then those of its settlement. */
export const deliveryColumns = [
  'id',
  'received_at',
  'hook',
  'source',
  'event',
  'dedupe_key',
  'body_hash',
  'answer_status',
  'answer_body',
  ...settlementColumns,
] as const

/** agentId, sessionKey, text, source, trusted and wakes (0 or 1). */
export type EventValues = readonly [string, string, string, string, number, number]

export type JobValues = {
  readonly id: string
  readonly planned: string
  readonly lane: string | null
  readonly state: 'queued' | 'done'
  readonly steps: string
  readonly events: readonly EventValues[]
}

type AppendOperation = {
  readonly kind: 'append'
  readonly at: number
  readonly values: readonly SqlValue[]
  /** `kept`: the row holds the key from now on. */
  readonly key: (DedupeKey & { readonly kept: boolean }) | undefined
  readonly id: string
  readonly jobs: readonly JobValues[]
}

/** `at` is the clock of the main thread when the call was made. */
export type Operation =
  | AppendOperation
  | { readonly kind: 'appendAll'; readonly appends: readonly AppendOperation[]; readonly cursor: Cursor }
  | {
      readonly kind: 'settle'
      readonly at: number
      readonly id: string
      readonly values: readonly SqlValue[]
      readonly jobs: readonly JobValues[]
    }
  | { readonly kind: 'forget'; readonly hook: string; readonly key: string }
  | { readonly kind: 'differs'; readonly id: string }
  | { readonly kind: 'drop'; readonly at: number; readonly id: string }
  | {
      readonly kind: 'addTask'
      readonly at: number
      readonly id: string
      readonly planned: string
      readonly lane: string
      readonly standsFor: string
    }
  | { readonly kind: 'claim'; readonly at: number; readonly limit: number; readonly leaseMs: number }
  | {
      readonly kind: 'report'
      readonly at: number
      readonly id: string
      readonly fence: number
      readonly step: { readonly name: string; readonly json: string } | undefined
      readonly events: readonly EventValues[]
      readonly messages: readonly { readonly role: string; readonly text: string }[]
      readonly consumedUpTo: number | undefined
      /** JSON; null forgets what was kept. */
      readonly runnerState: string | null | undefined
      readonly recipient: { readonly channel: string; readonly to: string | null } | undefined
      /** JSON. */
      readonly posts: string | undefined
      readonly outcome:
        | { readonly kind: 'done' | 'release' | 'goes on' }
        | { readonly kind: 'retry'; readonly runAt: number; readonly error: string; readonly counted: boolean }
        | { readonly kind: 'dead'; readonly error: string; readonly counted: boolean }
    }
  | { readonly kind: 'extend'; readonly until: number; readonly jobs: readonly { id: string; fence: number }[] }
  | { readonly kind: 'requeue'; readonly at: number; readonly id: string }
  | {
      readonly kind: 'sweep'
      readonly at: number
      readonly before: number
      /** Deliveries up to this seq have been looked at. */
      readonly after: number
      readonly limit: number
    }
  | { readonly kind: 'prune'; readonly at: number; readonly before: number; readonly limit: number }
  /** Writes a page and a file beside, to find out whether writing works. */
  | { readonly kind: 'probe' }

export type Results = {
  append: Appended
  appendAll: Appended[]
  settle: boolean
  forget: undefined
  differs: undefined
  drop: boolean
  addTask: boolean
  claim: Row[]
  report: boolean
  extend: string[]
  requeue: boolean
  /** `after` is undefined when there is nothing more to look at. */
  sweep: { count: number; after: number | undefined }
  /** Rows that were deleted. */
  prune: number
  probe: undefined
}
export type OperationOf<Kind extends Operation['kind']> = Extract<Operation, { kind: Kind }>

export type Outcome =
  | { readonly ok: true; readonly value: Results[Operation['kind']] }
  | { readonly ok: false; readonly cause: string }

/** Why a whole batch came to nothing. `detail` is fit for a sender. */
export type Failure = { readonly code: ProblemCode; readonly detail: string; readonly cause: string }

export type Request = { readonly kind: 'batch'; readonly operations: readonly Operation[] } | { readonly kind: 'close' }
/** `isAnother`: the file that stood there before was deleted or replaced. */
export type Opened = { readonly facts: StoreHealth['facts']; readonly isAnother: boolean }

/** `opened` is there when this batch had to open the file. */
export type Reply = {
  readonly opened: Opened | undefined
  readonly result: { readonly outcomes: readonly Outcome[] } | { readonly failure: Failure }
}

export type WriterOptions = {
  readonly file: string
  /** Milliseconds for which the writer sleeps before each commit, to imitate a slow disk. */
  readonly commitDelayMs: number
  /** The moment at which jobs that a dead owner left running are due again. Only for the first writer thread of a process. */
  readonly recoverAt: number | undefined
  /** The file may not grow beyond this many pages, to imitate a full disk. */
  readonly maxPages?: number
}

/** Carries operations out, each once and in the order of the calls. */
export type Writer = {
  /** Resolves once the operation is committed; rejects with a Problem when it is not known to be. */
  run<Kind extends Operation['kind']>(operation: OperationOf<Kind>): Promise<Results[Kind]>
  state(): {
    readonly trouble: string | undefined
    readonly commits: number
    readonly waiting: number
    /** When the commit in flight began, in milliseconds since the epoch. */
    readonly busySince: number | undefined
  }
  facts(): StoreHealth['facts']
  close(): Promise<void>
}

export function unavailable(detail: string, retryAfterSeconds: number, cause?: unknown): Problem {
  return new Problem('store-unavailable', detail, { retryAfterSeconds, cause })
}

/** An operation failed by itself, and its batch was committed without it. */
export function unwritable(cause: string | undefined): Problem {
  return unavailable('The store cannot write this.', 5, cause)
}
