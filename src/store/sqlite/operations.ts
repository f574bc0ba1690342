// The operations that the main thread sends to the writer. Most records in them are JSON text, so that a batch is cheap to clone.
import type { ProblemCode } from '../../core/model/problem.ts'
import type { QuarantineBounds } from '../quarantine.ts'
import type { Reservation, ReserveResult, SettledTurn } from '../budgets.ts'
import type { Row, SqlValue } from './driver.ts'
import type { NodeInfo } from '../owners.ts'
import type { SharedLimits } from '../../core/model/flow.ts'
import type { Ending } from '../../model/job.ts'
import type { PlainWrite } from '../plain.ts'
import type { Appended, DedupeKey, EndedRun, FlowCancel, StoreHealth } from '../records.ts'
import type { CursorMove } from '../cursors.ts'
import type { TranscriptBounds } from '../transcripts.ts'

/** The columns of a settlement, in the order of its values. */
export const settlementColumns =
  'state mapping_id generation transform_hash waits_for problem trace log settled_at plan wake_id wake_steps head body'.split(
    ' ',
  )

/** The columns of a new delivery, in the order of its values. */
export const deliveryColumns = [
  ...'id received_at hook source event dedupe_key body_hash answer_status answer_body recovered'.split(' '),
  ...settlementColumns,
]

/**
 * The event of a wake that is done when its delivery is accepted: agentId, sessionKey, trusted and wakes (0 or 1), and the sum of the event. The wake is
 * in the row of the delivery, so it needs no job row, and its event needs no text.
 */
export type WakeValues = readonly [string, string, number, number, number]

/** agentId, sessionKey, text, source, trusted and wakes (0 or 1). */
export type EventValues = readonly [string, string, string, string, number, number]

export type JobValues = {
  readonly id: string
  /** The plan; empty if it is in the row of the delivery. */
  readonly planned: string
  readonly lane: string | null
  readonly state: 'queued' | 'done'
  readonly steps: string
  /** The labels as JSON. */
  readonly labels: string | null
  /** ring, key, the lane that the job enters when it is claimed, milliseconds until it expires, and settings as JSON. `lane` of such a job is null. */
  readonly flow: readonly [string, string, string | null, number | null, string] | undefined
  readonly events: readonly EventValues[]
  /** Set for a task, which belongs to no delivery. */
  readonly standsFor: string | null
}

/** See `ringName` and `ringSize` of `Settlement`. `ringOf` is empty for a delivery without a mapping. */
export type RingValues = { readonly ringOf: string; readonly size: number }

type AppendOperation = {
  readonly kind: 'append'
  readonly at: number
  readonly values: readonly SqlValue[]
  /** `isStored`: whether the new row takes the key. */
  readonly key: (DedupeKey & { readonly isStored: boolean }) | undefined
  readonly id: string
  readonly ring: RingValues | undefined
  readonly jobs: readonly JobValues[]
  /** The wake of the delivery, which is not in `jobs`. */
  readonly wake: WakeValues | undefined
  readonly cancel: FlowCancel | undefined
}

/** `at` is the time of the call, by the clock of the main thread. */
export type Operation =
  | AppendOperation
  | {
      readonly kind: 'appendAll'
      readonly at: number
      readonly appends: readonly AppendOperation[]
      readonly moves: readonly CursorMove[]
    }
  /** A call that is a script of `createPlainWrites`. */
  | { readonly kind: 'plain'; readonly at: number; readonly name: PlainWrite; readonly args: readonly unknown[] }
  | {
      readonly kind: 'settle'
      readonly at: number
      readonly id: string
      readonly values: readonly SqlValue[]
      readonly ring: RingValues | undefined
      readonly jobs: readonly JobValues[]
      readonly wake: WakeValues | undefined
      readonly moves: readonly CursorMove[]
      readonly cancel: FlowCancel | undefined
    }
  | {
      readonly kind: 'quarantine'
      readonly at: number
      /** The values of `quarantineColumns`. */
      readonly requests: readonly (readonly SqlValue[])[]
      readonly bounds: QuarantineBounds
    }
  | { readonly kind: 'drop'; readonly at: number; readonly id: string }
  | {
      readonly kind: 'addTask'
      readonly at: number
      readonly id: string
      readonly planned: string
      readonly lane: string
      readonly standsFor: string
      readonly labels: string | null
      readonly unlessWithinMs: number
    }
  | {
      readonly kind: 'claim'
      readonly at: number
      readonly limit: number
      readonly leaseMs: number
      readonly limits: SharedLimits
      readonly only: 'tasks' | undefined
    }
  | {
      readonly kind: 'report'
      readonly at: number
      readonly id: string
      readonly fence: number
      readonly steps: readonly { readonly name: string; readonly json: string }[]
      readonly events: readonly EventValues[]
      readonly messages: readonly { readonly role: string; readonly text: string }[]
      readonly keeps: TranscriptBounds | undefined
      /** The seq and the time of each event. */
      readonly consumed: readonly (readonly [seq: number, at: number])[]
      readonly leavesLane: boolean
      readonly settled: readonly SettledTurn[]
      readonly leaseMs: number | undefined
      /** JSON; null deletes the stored state. */
      readonly runnerState: string | null | undefined
      readonly recipient: { readonly channel: string; readonly to: string | null } | undefined
      /** The posts as JSON. */
      readonly posts: string | undefined
      readonly outcome:
        | { readonly kind: 'done' | 'release' | 'goes on' }
        | {
            readonly kind: 'retry'
            readonly afterMs: number
            readonly error: string
            readonly counted: boolean
            readonly isDelay: boolean
            readonly spentMs?: number | undefined
          }
        | { readonly kind: 'dead'; readonly error: string; readonly counted: boolean }
    }
  | {
      readonly kind: 'reserve'
      readonly at: number
      readonly id: string
      readonly fence: number
      readonly reservations: readonly Reservation[]
    }
  | { readonly kind: 'join'; readonly at: number; readonly node: NodeInfo }
  | { readonly kind: 'leave'; readonly id: string }
  | { readonly kind: 'requeue'; readonly at: number; readonly id: string }
  | { readonly kind: 'end'; readonly at: number; readonly id: string; readonly ending: Ending }
  | {
      readonly kind: 'sweep'
      readonly at: number
      readonly before: number
      /** The sweep has already visited the deliveries up to this seq. */
      readonly after: number
      readonly limit: number
    }
  | { readonly kind: 'prune'; readonly at: number; readonly before: number; readonly limit: number }
  /** Writes a page, and a file next to the database, to test whether writing works. */
  | { readonly kind: 'probe' }

export type Results = {
  append: Appended
  appendAll: Appended[] | 'moved'
  plain: unknown
  settle: boolean | 'moved'
  quarantine: undefined
  drop: boolean
  addTask: boolean
  /** `isSorted`: false if there is more to prepare before all due jobs can be claimed. */
  claim: { readonly rows: Row[]; readonly ended: readonly EndedRun[]; readonly isSorted: boolean }
  report: boolean
  reserve: ReserveResult
  join: undefined
  leave: undefined
  requeue: boolean
  end: 'ended' | 'ending' | undefined
  /** `after` is undefined at the end of the sweep. */
  sweep: { count: number; after: number | undefined }
  /** The number of rows deleted or ended. */
  prune: number
  probe: undefined
}
export type OperationOf<Kind extends Operation['kind']> = Extract<Operation, { kind: Kind }>

export type OperationResult =
  | { readonly ok: true; readonly value: Results[Operation['kind']] }
  | { readonly ok: false; readonly cause: string }

/** Why a whole batch failed. `detail` may be shown to senders. */
export type OperationFailure = { readonly code: ProblemCode; readonly detail: string; readonly cause: string }

export type Request = { readonly kind: 'batch'; readonly operations: readonly Operation[] } | { readonly kind: 'close' }
/** The inodes of the database and of its lock file: a file that replaces another has another inode. */
export type Inodes = { readonly database: number | undefined; readonly lock: number | undefined }
/** `isReplacement`: the file opened before was deleted or replaced. */
export type OpenedFile = {
  readonly facts: StoreHealth['facts']
  readonly inodes: Inodes
  /** The bytes that waited in the file when it was opened. */
  readonly waitingBytes: number
  readonly isReplacement: boolean
}

/** `opened` is set if this batch opened the file. */
export type BatchReply = {
  readonly opened: OpenedFile | undefined
  readonly tookMs: number
  readonly result: BatchResult
}
/**
 * `outcomes` is undefined if each operation is an append that was stored. `waitingChange`: the change in the bytes that wait in the store.
 */
export type BatchResult =
  | { readonly outcomes: readonly OperationResult[] | undefined; readonly waitingChange: number }
  | { readonly failure: OperationFailure }

export type WriterOptions = {
  readonly file: string
  /** Milliseconds that the writer sleeps before each commit, to simulate a slow disk. */
  readonly commitDelayMs: number
  /** When jobs that a dead owner left running are due again. Undefined once a writer thread of this process has opened the file. */
  readonly recoverAt: number | undefined
  /** The maximum number of pages that the file may have, to simulate a full disk. */
  readonly maxPages?: number
}

/** Executes operations, each one once and in the order of the calls. */
export type Writer = {
  /** Resolves after the operation is committed. Rejects with a Problem if the commit failed or its result is unknown. */
  run<Kind extends Operation['kind']>(operation: OperationOf<Kind>): Promise<Results[Kind]>
  state(): {
    readonly trouble: string | undefined
    readonly commits: number
    readonly waiting: number
    /** The bytes that wait in the store; undefined if they are not known yet. */
    readonly waitingBytes: number | undefined
    /** When the commit in flight began, in milliseconds since the epoch. */
    readonly busySince: number | undefined
  }
  facts(): StoreHealth['facts']
  close(): Promise<void>
}
