// The records that go into a store and come out of it. The calls and their promises are in store.ts.
import type { Alert, CallbackPlan, CommitStatusPlan, Heartbeat, PlannedAction } from '../core/model/action.ts'
import type { FlowEnd, PlannedFlow, SharedLimits } from '../core/model/flow.ts'
import type { SettledTurn } from './budgets.ts'
import type { DeliveryHead, DeliveryState } from '../core/model/delivery.ts'
import type { Job, Message, Recipient, Step, StoredPost, SystemEvent } from '../model/job.ts'
import type { JsonValue } from '../base/json.ts'
import type { ProblemRecord, TraceEntry } from '../core/model/problem.ts'
import type { TranscriptBounds } from './transcripts.ts'

/** Identifies a delivery, so that a redelivery is recognised. A key is unique within its hook. */
export type DedupeKey = {
  readonly hook: string
  readonly key: string
  /** SHA-256 of the body, in hex. */
  readonly bodyHash: string
}

/** The answer that a sender got. `contentType`: the media type, if a mapping or a transform set the answer. */
export type StoredAnswer = {
  readonly status: number
  readonly body: string
  readonly contentType?: string | undefined
}

/** The answer to a delivery. A duplicate of the delivery gets the same answer again. */
export type DeliveryAnswer = StoredAnswer & {
  readonly deliveryId: string
  readonly state: DeliveryState
  /** SHA-256 of the body of the answered delivery, in hex. */
  readonly bodyHash: string
}

/** A stored request. It is kept while its delivery is pending or parked, and afterwards if `retain` says so. */
export type KeptRequest = { readonly head: DeliveryHead; readonly body: Uint8Array }

/** A system event to store. It is written in the same transaction as the job or report that causes it. */
export type NewEvent = Pick<SystemEvent, 'agentId' | 'sessionKey' | 'text' | 'source' | 'trusted' | 'wakes'>
type NewMessage = Pick<Message, 'role' | 'text'>

/** Ends the unfinished jobs of a key. `reason`: a sentence for the operator. */
export type FlowCancel = Pick<PlannedFlow, 'ring' | 'key'> & { readonly reason: string }

/** A job to store. */
export type NewJob = {
  readonly id: string
  readonly planned: PlannedAction | CommitStatusPlan | CallbackPlan
  /** If it is set, the job is a task: it belongs to no delivery, so it is not dropped with one. It runs even if all slots are full. */
  readonly standsFor?: string | undefined
  /** Jobs in one lane run one at a time, in arrival order. A job without a lane waits for no other job. */
  readonly lane: string | undefined
  /** `done` if storing the job completes it: every step is in `steps`. */
  readonly state: 'queued' | 'done'
  /** Steps that are complete when the job is stored. */
  readonly steps: readonly Step[]
  /** The names by which holds find the job: see `toLabels` in jobs/plan.ts. Default: none. */
  readonly labels?: readonly string[] | undefined
  /** Decides when the run of the job starts. A job with a flow enters its lane only when it is claimed. */
  readonly flow?: PlannedFlow | undefined
  /** Events of these steps, written with the job. */
  readonly events: readonly NewEvent[]
}

/** A job that no delivery caused, such as a heartbeat. */
export type NewTask = {
  readonly id: string
  readonly planned: Heartbeat | Alert | CommitStatusPlan | CallbackPlan
  readonly lane: string
  /** The purpose of the task. While a task with the same purpose is queued in a lane, no other one is added. */
  readonly standsFor: string
  /** The names by which holds find the task. Default: none, so that no hold keeps it back. */
  readonly labels?: readonly string[]
  /** No task is added if one with the same `standsFor` was added within this time. Default 0. */
  readonly unlessWithinMs?: number
}

/**
 * Keeps back the jobs that have the label, until the hold is removed or its time is over. A job that runs is not stopped. Each label has at most one
 * hold of each kind.
 */
export type Hold = {
  /** `mapping:<ring>`, `source:<source>`, `agent:<id>`, `limit:<name>`, `budget:<name>`, `session:<lane>` or `all`. */
  readonly label: string
  /** `pause`: an operator made it. `turns`: too many turns started in an hour. `provider`: a provider asked to wait. `budget`: a budget is used up. */
  readonly kind: 'pause' | 'turns' | 'provider' | 'budget'
  /** A sentence for the operator. */
  readonly reason: string
  /** Who made the hold; undefined if the gateway did. */
  readonly author: string | undefined
  /** Milliseconds since the epoch. */
  readonly at: number
  /** Milliseconds until the hold ends; undefined if only `unhold` ends it. */
  readonly forMs: number | undefined
}
export type NewHold = Omit<Hold, 'at'>

/** The outcome of processing a delivery. */
export type Settlement = {
  readonly state: DeliveryState
  readonly mappingId: string | undefined
  readonly generation: string
  /** The hash of the transform that ran. */
  readonly transformHash?: string | undefined
  /** The module that must be fixed before a parked delivery can run, or `someMapping`; undefined if the delivery waits for neither. */
  readonly waitsFor?: string | undefined
  readonly jobs: readonly NewJob[]
  readonly problem?: ProblemRecord | undefined
  readonly trace: readonly TraceEntry[]
  readonly log: readonly string[]
  /** The line of `log` that the gateway logs too. It is not stored. */
  readonly warning?: string | undefined
  /**
   * Present if the request must be stored. A delivery that stays pending or parked keeps the request that was stored before. `too large`: the request
   * should be stored but is not; `keptDeliveries` shows that.
   */
  readonly request?: KeptRequest | 'too large' | undefined
  /**
   * Only for an accepted or skipped delivery: how many of the newest requests of its mapping stay stored. Only deliveries that were stored with a
   * `ringSize` count. The same transaction deletes older ones; their deliveries stay. Deliveries without a mapping count together.
   */
  readonly ringSize?: number | undefined
  /** The ring of the mapping of the delivery. Default: the id of the mapping. An id that is a position in the configuration changes when mappings are edited. */
  readonly ringName?: string | undefined
  /** The next claim ends the jobs of this key that earlier deliveries caused. */
  readonly cancel?: FlowCancel | undefined
}

/** A delivery to store. */
export type NewDelivery = Settlement & {
  readonly id: string
  readonly receivedAt: number
  readonly hook: string
  readonly source: string | undefined
  readonly event: string | undefined
  readonly dedupe: DedupeKey | undefined
  readonly answer: StoredAnswer
  /** True: the gateway fetched it from its sender, because no request brought it. */
  readonly recovered?: boolean | undefined
  /** True: an operator replaced the body of a copy. */
  readonly edited?: boolean | undefined
}

/** `duplicate`: nothing was stored, because the dedupe key is taken. `first` is the answer to the delivery that has the key. */
export type Appended = { kind: 'stored' } | { kind: 'duplicate'; first: DeliveryAnswer }

/** A worker's report on a job that it has leased. All parts of a report are written in one transaction. */
export type JobReport = {
  /**
   * The steps that are complete, in order. If the job already has a step of one of these names, its steps are unchanged, and the events,
   * messages, `consumed`, `runnerState` and `recipient` of this report are ignored: an earlier commit of the report had an unknown result.
   */
  readonly steps?: readonly Step[]
  readonly events?: readonly NewEvent[]
  /** Messages to append to the transcript of the job's session. */
  readonly messages?: readonly NewMessage[]
  /** How much of the transcript of the job's session stays, with these messages. Absent: all of it. */
  readonly keeps?: TranscriptBounds
  /**
   * The events of the job's session that the turn read: these events, and no others, are now consumed. SQLite may give the id of an event that was
   * swept to a new one, which has another `at`.
   */
  readonly consumed?: readonly Pick<WaitingEvent, 'id' | 'at'>[]
  /** The runner's state for the job's session, kept until its next turn. Null deletes it. */
  readonly runnerState?: JsonValue
  /** The recipient that `last` means from now on. It is stored with the main session of the job's agent. */
  readonly recipient?: Recipient
  /** The current state of all messages of the reply. It replaces the stored posts, even if its `steps` are already recorded. */
  readonly posts?: readonly StoredPost[]
  /**
   * True: the job has no lane from now on, so that no later job of the lane waits for it. A queued task without a lane does not prevent
   * a new one of the same `standsFor`.
   */
  readonly leavesLane?: boolean
  /** The amounts that the turn used of the budgets that it reserved. A second report of the same turn adds nothing. */
  readonly settled?: readonly SettledTurn[]
  /** Without an outcome: the lease ends this many milliseconds from now. Absent: the end of the lease does not change. */
  readonly leaseMs?: number
  /**
   * Absent: the worker keeps its lease.
   *
   * - `done` ends the job and counts the attempt.
   * - `retry` queues the job again, due in `afterMs`, and counts the attempt, unless `counted` is false, for example after a
   *   rate limit. If `isDelay`, nothing failed, and no failed attempt is kept. A job that would be due more than two days ahead is due at once: the clock was set back.
   * - `release` queues the job, due at once, without counting the attempt. A shutdown releases its jobs.
   * - `dead` ends the job as failed and counts the attempt, unless `counted` is false because nothing was tried.
   *
   * After `done` and `dead`, the next job of the lane can be claimed.
   */
  readonly outcome?:
    | { readonly kind: 'done' }
    | {
        readonly kind: 'retry'
        readonly afterMs: number
        readonly error: string
        readonly counted?: boolean
        readonly isDelay?: boolean
        /** Kept with the failed attempt: see `Job`. */
        readonly spentMs?: number | undefined
      }
    | { readonly kind: 'release' }
    | { readonly kind: 'dead'; readonly error: string; readonly counted?: boolean }
}

/** The repetitions of a delivery since they were last noted. `lastAt`: milliseconds since the epoch. */
export type Repetition = {
  readonly deliveryId: string
  readonly times: number
  readonly lastAt: number
  /** True: one of the repetitions had a different body. */
  readonly bodyDiffered: boolean
}

/** A delivery and its jobs, as commands and the admin API show them. */
export type DeliveryRecord = {
  readonly deliveryId: string
  readonly receivedAt: number
  readonly hook: string
  readonly source: string | undefined
  readonly event: string | undefined
  readonly mappingId: string | undefined
  readonly generation: string
  readonly transformHash: string | undefined
  readonly state: DeliveryState
  /** How many requests with its key repeated it. They had no effect. */
  readonly repeats: number
  readonly repeatedAt: number | undefined
  /** True: a repetition had a different body. */
  readonly bodyDiffered: boolean
  /** True: the gateway fetched it from its sender, because no request brought it. */
  readonly recovered: boolean
  /** True: a copy of another delivery, whose body an operator replaced. */
  readonly edited: boolean
  /** The gateway that stored it; undefined if that gateway had not joined, or if the delivery was copied into a file. */
  readonly node: string | undefined
  /** When it was accepted, skipped or dropped; undefined while it waits. */
  readonly settledAt: number | undefined
  /** The answer that the sender got. A delivery that waited keeps its first answer. */
  readonly answer: StoredAnswer
  readonly problem: ProblemRecord | undefined
  readonly trace: readonly TraceEntry[]
  readonly log: readonly string[]
  readonly jobs: readonly Job[]
}

/** The unfinished jobs of a lane. `since`: when the first of them was stored. */
export type LaneLoad = {
  readonly lane: string
  readonly jobs: number
  readonly since: number
  readonly running: boolean
}

/** A turn consumes exactly the events that it was shown, by their ids: an event with a lower id may become visible later. */
export type WaitingEvent = SystemEvent & { readonly id: number }

/** The unconsumed events of a session. */
export type WaitingEvents = {
  /** The events in the order of their ids, up to the limit of the query. */
  readonly events: readonly WaitingEvent[]
  /** The number of all unconsumed events. */
  readonly count: number
  /** True: at least one unconsumed event asks for a turn at once. */
  readonly wakes: boolean
}

/** A pending or parked delivery, with the request to run again. `request` is undefined if the row is damaged: it must not run. */
export type OpenDelivery = {
  readonly deliveryId: string
  readonly receivedAt: number
  readonly state: 'pending' | 'parked'
  readonly hook: string
  readonly waitsFor: string | undefined
  readonly generation: string
  readonly request: KeptRequest | undefined
}

/** A delivery whose request is kept. `request` is undefined if it was too large to be stored, or is damaged. */
export type KeptDelivery = DeliveryRecord & { readonly request: KeptRequest | undefined }

/** A queued job that its flow ended. */
export type EndedRun = { readonly id: string; readonly end: FlowEnd }

/** `onEnded` gets the queued jobs that the claim ended. */
export type ClaimQuery = {
  readonly limit: number
  readonly leaseMs: number
  readonly limits?: SharedLimits
  readonly only?: 'tasks'
  readonly onEnded?: (ended: readonly EndedRun[]) => void
}

export type StoreHealth = {
  readonly engine: string
  /** Why the store does not work; undefined while it works. */
  readonly trouble: string | undefined
  /** A condition that will become trouble, such as a limit that is near. */
  readonly warning?: string | undefined
  /** Facts about the engine for `hookloom doctor` and /readyz, such as SQLite's journal mode. */
  readonly facts: Readonly<Record<string, string | number>>
}
