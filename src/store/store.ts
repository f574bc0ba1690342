// The store: deliveries, jobs, sessions and events that survive a crash. Every engine implements these interfaces and keeps
// the promises in their comments; test/contract/store.ts tests each promise against each engine.
//
// A delivery is one received request. A job is one action of an agent: a delivery causes it, or a task such as a heartbeat.
//
//   delivery   pending ──▶ parked · accepted · skipped · dropped      most deliveries are accepted or skipped when they are stored
//              parked  ──▶ accepted · skipped · dropped
//
//   job        queued ──▶ running ──▶ done · dead
//                ▲           │
//                └── retry ──┘
//
// All times are milliseconds since the epoch. Several owners may share a store, each on a machine with its own clock. So the clock of the
// store decides about leases and due times: calls take and return durations for them, and the moments in records are for people.
import type { Alert, Heartbeat, PlannedAction } from '../model/action.ts'
import type { DeliveryHead, DeliveryState } from '../model/delivery.ts'
import type { ClaimedJob, Job, JobState, Message, Post, Recipient, Session, Step, SystemEvent } from '../model/job.ts'
import type { JsonValue } from '../base/json.ts'
import type { ProblemRecord, TraceEntry } from '../model/problem.ts'

/** Identifies a delivery, so that a redelivery is recognised. A key is unique within its hook. */
export type DedupeKey = {
  readonly hook: string
  readonly key: string
  /** SHA-256 of the body, in hex. A redelivery with a different hash sets `bodyDiffered` on the first delivery. */
  readonly bodyHash: string
}

/** The answer to a delivery. A duplicate of the delivery gets the same answer again. */
export type Answered = {
  readonly deliveryId: string
  readonly state: DeliveryState
  readonly status: number
  readonly body: string
  /** SHA-256 of the body of the answered delivery, in hex. */
  readonly bodyHash: string
}

/** A stored request. It is kept while its delivery is pending or parked, and afterwards if `retain` says so. */
export type KeptRequest = { readonly head: DeliveryHead; readonly body: Uint8Array }

/** A system event to store. It is written in the same transaction as the job or report that causes it. */
export type NewEvent = Pick<SystemEvent, 'agentId' | 'sessionKey' | 'text' | 'source' | 'trusted' | 'wakes'>
export type NewMessage = Pick<Message, 'role' | 'text'>

/** A job to store. */
export type NewJob = {
  readonly id: string
  readonly planned: PlannedAction
  /** Jobs in one lane run one at a time, in arrival order. A job without a lane waits for no other job. */
  readonly lane: string | undefined
  /** `done` if storing the job completes it: every step is in `steps`. */
  readonly state: 'queued' | 'done'
  /** Steps that are complete when the job is stored. */
  readonly steps: readonly Step[]
  /** Events of these steps, written with the job. */
  readonly events: readonly NewEvent[]
}

/** A job that no delivery caused, such as a heartbeat. */
export type NewTask = {
  readonly id: string
  readonly planned: Heartbeat | Alert
  readonly lane: string
  /** What the task is for. While a task with the same text is queued, no second one is added. */
  readonly standsFor: string
  /** No task is added either if one with the same `standsFor` was added within this time: another owner was first. Default 0. */
  readonly unlessWithinMs?: number
}

/** The outcome of processing a delivery. */
export type Settlement = {
  readonly state: DeliveryState
  readonly mappingId: string | undefined
  readonly generation: string
  /** The hash of the transform that ran. */
  readonly transformHash?: string | undefined
  /** The module that must be fixed before a parked delivery can run; undefined if the delivery waits for no module. */
  readonly waitsFor?: string | undefined
  readonly jobs: readonly NewJob[]
  readonly problem?: ProblemRecord | undefined
  readonly trace: readonly TraceEntry[]
  readonly log: readonly string[]
  /**
   * Present if the request must be stored. A delivery that stays pending or parked keeps a request stored before.
   * `too large`: it should be kept and is not; `kept` shows that.
   */
  readonly request?: KeptRequest | 'too large' | undefined
  /**
   * Of an accepted or skipped delivery: the number of the newest requests of its mapping that stay stored, counting only deliveries
   * that were stored with a `ring`. The same transaction deletes older ones; their deliveries stay. Deliveries without a mapping
   * count together.
   */
  readonly ring?: number | undefined
}

/** A delivery to store. */
export type NewDelivery = Settlement & {
  readonly id: string
  readonly receivedAt: number
  readonly hook: string
  readonly source: string | undefined
  readonly event: string | undefined
  readonly dedupe: DedupeKey | undefined
  readonly answer: { readonly status: number; readonly body: string }
}

/**
 * A step of a cursor: a position in an external sequence, such as the history id of a mailbox. It is stored with the deliveries
 * read up to it. `from`: the value from which they were read; undefined if the cursor was never set.
 */
export type CursorMove = { readonly name: string; readonly from: string | undefined; readonly to: string }

/** `duplicate`: nothing was stored, because the dedupe key is taken. `first` is the answer to the delivery that has the key. */
export type Appended = { kind: 'stored' } | { kind: 'duplicate'; first: Answered }

/** A worker's report on a job that it has leased. All parts of a report are written in one transaction. */
export type JobReport = {
  /**
   * A step that is complete. If the job already has a step of this name, that step is unchanged, and the events, messages,
   * `consumed`, `runnerState` and `recipient` of this report are ignored.
   */
  readonly step?: Step
  readonly events?: readonly NewEvent[]
  /** Messages to append to the transcript of the job's session. */
  readonly messages?: readonly NewMessage[]
  /** The ids of the events of the job's session that the turn was shown: they are now consumed. No other event is. */
  readonly consumed?: readonly number[]
  /** The runner's state for the job's session, kept until its next turn. Null deletes it. */
  readonly runnerState?: JsonValue
  /** Where the reply was delivered. It is stored with the main session of the job's agent. */
  readonly recipient?: Recipient
  /** The current state of all messages of the reply. It replaces the stored posts, even if `step` is already recorded. */
  readonly posts?: readonly Post[]
  /** Without an outcome: the lease ends this many milliseconds from now. Absent: the end of the lease does not change. */
  readonly leaseMs?: number
  /**
   * Absent: the worker keeps its lease.
   *
   * - `done` ends the job and counts the attempt.
   * - `retry` queues the job for `afterMs` and counts the attempt, unless `counted` is false, for example after a
   *   rate limit. A job that would be due more than two days ahead is due at once: the clock was set back.
   * - `release` queues the job, due at once, without counting the attempt. A shutdown releases its jobs.
   * - `dead` ends the job as failed and counts the attempt, unless `counted` is false because nothing was tried.
   *
   * After `done` and `dead`, the next job of the lane can be claimed.
   */
  readonly outcome?:
    | { readonly kind: 'done' }
    | { readonly kind: 'retry'; readonly afterMs: number; readonly error: string; readonly counted?: boolean }
    | { readonly kind: 'release' }
    | { readonly kind: 'dead'; readonly error: string; readonly counted?: boolean }
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
  /** True: a redelivery had the same key and a different body. */
  readonly bodyDiffered: boolean
  /** When it was accepted, skipped or dropped; undefined while it waits. */
  readonly settledAt: number | undefined
  /** What the sender got. A delivery that waited keeps its first answer. */
  readonly answer: { readonly status: number; readonly body: string }
  readonly problem: ProblemRecord | undefined
  readonly trace: readonly TraceEntry[]
  readonly log: readonly string[]
  readonly jobs: readonly Job[]
}

/** Filters of `deliveries`. All that are given must hold. */
export type DeliveriesQuery = {
  readonly limit: number
  readonly state?: DeliveryState | undefined
  readonly hook?: string | undefined
  readonly source?: string | undefined
  readonly text?: string | undefined
  readonly before?: string | undefined
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
  /** In the order of their ids, up to the limit of the query. */
  readonly events: readonly WaitingEvent[]
  /** The number of all unconsumed events. */
  readonly count: number
  /** True: at least one unconsumed event asks for a turn at once. */
  readonly wakes: boolean
}

/** A pending or parked delivery, with the request to run again. */
export type OpenDelivery = {
  readonly deliveryId: string
  readonly receivedAt: number
  readonly state: 'pending' | 'parked'
  readonly hook: string
  readonly waitsFor: string | undefined
  readonly generation: string
  readonly request: KeptRequest
}

/** A delivery whose request is stored. Undefined: the request was too large. */
export type KeptDelivery = DeliveryRecord & { readonly request: KeptRequest | undefined }

export type KeptQuery = {
  readonly limit: number
  /** The id of a delivery: only those that arrived before it; none if the store has no such id. */
  readonly before?: string | undefined
  readonly hook?: string | undefined
  readonly source?: string | undefined
  /** Only those that were received then or later. */
  readonly since?: number | undefined
  /** Ids of mappings: only deliveries that one of them took. */
  readonly mappings?: readonly string[] | undefined
}

export type StoreHealth = {
  readonly engine: string
  /** Why the store does not work; undefined while it works. */
  readonly trouble: string | undefined
  /** What will become trouble, such as a limit that is near. */
  readonly warning?: string | undefined
  /** Facts about the engine for `hookloom doctor` and /readyz, such as SQLite's journal mode. */
  readonly facts: Readonly<Record<string, string | number>>
}

/** The part of the store that a read-only process has. */
export interface StoreReader {
  /**
   * The newest `limit` deliveries, oldest first. `before` (the id of a delivery or of one of its jobs): only those that arrived
   * before it; none if the store has no such id. `text`: only those whose id begins with it, and those whose hook, source, event
   * or mapping contains it, in any case of ASCII letters. No filter reads a request or a job.
   */
  deliveries(query: DeliveriesQuery): Promise<DeliveryRecord[]>
  /** Finds a delivery by its id or by the id of one of its jobs. */
  delivery(id: string): Promise<DeliveryRecord | undefined>
  /** Finds the request of a delivery by the same ids; undefined if it is not stored, or no longer. */
  request(id: string): Promise<KeptRequest | undefined>
  /** The newest `limit` deliveries whose request is stored, newest first. Those that are pending are left out. */
  kept(query: KeptQuery): Promise<KeptDelivery[]>
  /**
   * The newest `limit` system events, oldest first, consumed ones included. `before` (milliseconds since the epoch): only those that
   * are older. A page has all events of its oldest moment, so it may be longer than `limit`; the `at` of its first event as the
   * next `before` loses nothing and repeats nothing.
   */
  events(query: { limit: number; before?: number | undefined }): Promise<SystemEvent[]>
  /** The `limit` sessions that were updated last; the last one comes last. `before` as for events, by `updatedAt`. */
  sessions(query: { limit: number; before?: number | undefined }): Promise<Session[]>
  /** Undefined if the store has nothing of this session. `runnerState` comes from the last report that set it. */
  session(
    name: Pick<Session, 'agentId' | 'sessionKey'>,
  ): Promise<(Session & { runnerState: JsonValue | undefined }) | undefined>
  /** The unconsumed events of a session: the oldest `limit`, and the number of all. */
  waiting(query: { agentId: string; sessionKey: string; limit: number }): Promise<WaitingEvents>
  /** Finds a job by its id, tasks included. */
  job(id: string): Promise<Job | undefined>
  /** The ids of deliveries and jobs that begin with a text, in the order of the ids. `deliveryId`: undefined for a task. */
  idsFrom(query: { prefix: string; limit: number }): Promise<{ id: string; deliveryId: string | undefined }[]>
  /**
   * The newest `limit` dead jobs, oldest first, tasks included. `before` (a job's id): only those that arrived before it; none if
   * the store has no such job.
   */
  deadJobs(query: { limit: number; before?: string | undefined }): Promise<Job[]>
  /** The milliseconds since the newest task with this `standsFor` was added; undefined if the store has none. */
  taskAgeMs(standsFor: string): Promise<number | undefined>
  /** The value of a cursor; undefined if it was never set. */
  cursor(name: string): Promise<string | undefined>
  /** The newest `limit` messages of a session's transcript, oldest first. `runId`: only those of this run, found by an index. */
  messages(query: { agentId: string; sessionKey: string; limit: number; runId?: string }): Promise<Message[]>
  /** The lanes with unfinished jobs, those with the most jobs first. */
  lanes(query: { limit: number }): Promise<LaneLoad[]>
  /** The number of deliveries and of jobs in each state, for `hookloom doctor` and /metrics. */
  counts(): Promise<{ deliveries: Record<DeliveryState, number>; jobs: Record<JobState, number> }>
  /** The number of parked deliveries that wait for a module. Reads no requests. */
  parkedFor(module: string): Promise<number>
  /** The bytes of what waits: the requests of parked and pending deliveries, and unfinished jobs. Reads one number, not the rows. */
  waitingBytes(): Promise<number>
  /** For how long the job has been due that has been due for longest; undefined if no job is due. */
  dueForMs(): Promise<number | undefined>
  close(): Promise<void>
}

/**
 * The part of the store that its owner has.
 *
 * Durability: a call that writes resolves after its transaction is committed and, on disk, synced. It rejects with
 * `store-unavailable` if the commit failed or its result is unknown.
 *
 * Atomicity: each call but `sweep` is one transaction. After a rejection, either all of its writes are stored or none.
 *
 * Ownership: an engine has one owner or several. Where it has one (SQLite), writes of a second owner reject with `store-locked`.
 * Where it has several (Postgres), every promise applies to all owners together. Rows have a sequence number, drawn when they
 * are inserted; "arrival order" and "oldest first" are its order. Two deliveries that two owners store at the same moment have
 * one order, the same for every reader, but not necessarily that of their requests.
 */
export interface Store extends StoreReader {
  /**
   * Stores a delivery and its jobs. If another delivery of the hook already has the dedupe key, the call stores no delivery
   * and returns the first answer; if the bodies differ, it sets `bodyDiffered` on the first delivery.
   * Rejects with `store-full` if more would wait than the store may hold; nothing that is stored changes.
   * A delivery takes its key only if its answer has status 200, and has it until `forget` removes it or the delivery is deleted.
   */
  append(delivery: NewDelivery): Promise<Appended>
  /**
   * Appends deliveries in order, each as `append` does, and moves the cursor, all in one transaction. Returns `moved`, and
   * writes nothing, if the value of the cursor is not `from`: another owner moved it.
   */
  appendAll(deliveries: readonly NewDelivery[], move: CursorMove): Promise<Appended[] | 'moved'>
  /** The answer to the delivery that has this key; undefined if none has it. */
  answered(key: Pick<DedupeKey, 'hook' | 'key'>): Promise<Answered | undefined>
  /** Sets `bodyDiffered` on a delivery. */
  markDiffering(deliveryId: string): Promise<void>
  /**
   * Stores the outcome of a pending or parked delivery, with its jobs. The outcome may park it, or park it again.
   * The stored answer does not change. Returns false, and writes nothing, if the delivery is no longer pending or parked.
   */
  settle(deliveryId: string, settlement: Settlement): Promise<boolean>
  /** Removes a dedupe key. A redelivery with this key is then a new delivery. */
  forget(key: Pick<DedupeKey, 'hook' | 'key'>): Promise<void>
  /**
   * Pending and parked deliveries with their requests, oldest first. `after` is the id of a delivery, in any state:
   * only deliveries that follow it in this order are returned, and none if the store does not have it.
   */
  open(query: {
    limit: number
    waitsFor?: string
    state?: 'pending' | 'parked'
    id?: string
    after?: string | undefined
  }): Promise<OpenDelivery[]>

  /**
   * Leases up to `limit` due jobs for `leaseMs`, in arrival order. A job waits until every earlier job of its lane has ended,
   * so at most one job of a lane is leased: the database itself makes a second one impossible. Each lease has a new fence: a
   * random number that its reports must name. So no two claims share a fence, not even after a failover that lost a claim.
   *
   * When a lease expires, the job is due again and the attempt counts. No other lease is touched. An engine with one owner ends
   * the leases of the previous owner when it is opened, because its lock proves that this owner is dead. So the attempts of a
   * job that crashes its gateway grow with each crash, and the worker can end such a job as dead instead of starting it again.
   */
  claim(query: { limit: number; leaseMs: number }): Promise<ClaimedJob[]>
  /** Writes a report. Returns false, and writes nothing, if the job is no longer leased under this fence. */
  report(job: { id: string; fence: number }, report: JobReport): Promise<boolean>
  /** Sets leases to end `leaseMs` from now. Returns the ids of the jobs that are still leased under their fence. */
  extend(jobs: readonly { id: string; fence: number }[], leaseMs: number): Promise<string[]>
  /** Milliseconds until the next queued job that its lane does not hold back is due, not above 0 if it is; undefined if there is none. */
  nextDueInMs(): Promise<number | undefined>
  /**
   * Queues a task. Returns false, and writes nothing, if a task with the same `standsFor` is queued, a retry included, or was
   * added within `unlessWithinMs`. A running task does not prevent a new one: the running task may not see what the new one is for.
   */
  addTask(task: NewTask): Promise<boolean>
  /**
   * Queues a dead job again, with zero attempts. Its steps are kept, and of its posts those that were sent; if none was
   * sent, the worker chooses the route again. Returns false, and writes nothing, if the job is not dead.
   */
  requeue(jobId: string): Promise<boolean>
  /** Ends a delivery: pending or parked becomes dropped, and its queued jobs become dead. Returns false if nothing changed. */
  drop(deliveryId: string): Promise<boolean>

  /**
   * Deletes what ended before `before`: deliveries with their jobs, tasks, events, messages and sessions. Drops deliveries
   * and tasks that were stored before `before` and still wait. Returns the number of deliveries that it deleted or dropped.
   * It works in many small transactions, so that it does not delay other calls.
   */
  sweep(before: number): Promise<number>
  health(): Promise<StoreHealth>
}

/** Milliseconds since the epoch. */
export type Clock = () => number
