// What is durable, and what that word promises. Every engine keeps these promises; test/contract/store.ts holds each of them against it.
import type { Heartbeat, PlannedAction } from '../model/action.ts'
import type { DeliveryHead, DeliveryState, TraceEntry } from '../model/delivery.ts'
import type { ClaimedJob, Job, JobState, Message, Post, Recipient, Session, Step, SystemEvent } from '../model/job.ts'
import type { JsonValue } from '../model/json.ts'
import type { ProblemRecord } from '../model/problem.ts'

/** Scope and key under which a delivery is recognised when it comes again. */
export type DedupeKey = {
  readonly hook: string
  readonly key: string
  /** SHA-256 of the body, hex: a twin with another body is marked. */
  readonly bodyHash: string
}

/** An answer as it was sent, and will be sent again to a duplicate. */
export type Answered = {
  readonly deliveryId: string
  readonly state: DeliveryState
  readonly status: number
  readonly body: string
  /** Of the body that came with it. */
  readonly bodyHash: string
}

/** The request itself, kept while the delivery may have to run again, or where its mapping says `retain`. */
export type KeptRequest = { readonly head: DeliveryHead; readonly body: Uint8Array }

/** A system event that is written in the same transaction as what caused it. */
export type NewEvent = Pick<SystemEvent, 'agentId' | 'sessionKey' | 'text' | 'source' | 'trusted' | 'wakes'>
export type NewMessage = Pick<Message, 'role' | 'text'>

/**
 * A job to be. `lane`: jobs of one lane run one at a time in arrival order; undefined waits for nobody.
 * `steps` and `events` are effects that are rows themselves, done by being stored with the acceptance.
 * A job whose steps are all there is stored as `done`.
 */
export type NewJob = {
  readonly id: string
  readonly planned: PlannedAction
  readonly lane: string | undefined
  readonly state: 'queued' | 'done'
  readonly steps: readonly Step[]
  readonly events: readonly NewEvent[]
}

/** A job that no delivery caused. `standsFor`: while one with the same text is queued, another is not added. */
export type NewTask = {
  readonly id: string
  readonly planned: Heartbeat
  readonly lane: string
  readonly standsFor: string
}

/** What became of a delivery. `request` is there exactly where the request must be kept. */
export type Settlement = {
  readonly state: DeliveryState
  readonly mappingId: string | undefined
  readonly generation: string
  /** Hash of the transform that ran. */
  readonly transformHash?: string | undefined
  /** The module that must be mended before a parked delivery can run; undefined when none is in its way. */
  readonly waitsFor?: string | undefined
  readonly jobs: readonly NewJob[]
  readonly problem?: ProblemRecord | undefined
  readonly trace: readonly TraceEntry[]
  readonly log: readonly string[]
  readonly request?: KeptRequest | undefined
}

export type NewDelivery = Settlement & {
  readonly id: string
  readonly receivedAt: number
  readonly hook: string
  readonly source: string | undefined
  readonly event: string | undefined
  readonly dedupe: DedupeKey | undefined
  readonly answer: { readonly status: number; readonly body: string }
}

/** A place in somebody else's sequence, such as a mailbox's history id. It moves together with the deliveries that it stands for. */
export type Cursor = { readonly name: string; readonly value: string }

export type Appended = { kind: 'stored' } | { kind: 'duplicate'; first: Answered }

/** What a worker says about a job that it holds. All of it is one transaction, or nothing of it happens. */
export type JobReport = {
  /** Recorded once: a step that is already there stays as it is, and its rows are not written again. */
  readonly step?: Step
  readonly events?: readonly NewEvent[]
  /** Appended to the transcript of the job's session. */
  readonly messages?: readonly NewMessage[]
  /** The events of the job's session up to and including this place were read by the turn that ends here. */
  readonly consumedUpTo?: number
  /** What the runner keeps of the job's session until its next turn; null forgets it. */
  readonly runnerState?: JsonValue
  /** Where the reply was delivered; kept with the main session of the job's agent. */
  readonly recipient?: Recipient
  /** The messages of a reply as they stand now: takes the place of what was there. Written with or without a step. */
  readonly posts?: readonly Post[]
  /**
   * Absent: the lease goes on. `retry` counts an attempt, unless `counted` is false (somebody asked to wait), and waits
   * until `runAt`; one more than two days ahead is due, since the clock was set back after it. `release` gives the job back
   * uncounted and due at once, as a shutdown does; `dead` and `done` end it and let the next of its lane go. Both count the
   * attempt that they end, unless `counted` of a `dead` is false: the job was given up before anything was tried.
   */
  readonly outcome?:
    | { readonly kind: 'done' }
    | { readonly kind: 'retry'; readonly runAt: number; readonly error: string; readonly counted?: boolean }
    | { readonly kind: 'release' }
    | { readonly kind: 'dead'; readonly error: string; readonly counted?: boolean }
}

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
  /** True: a twin came with the same key and another body. */
  readonly bodyDiffered: boolean
  readonly problem: ProblemRecord | undefined
  readonly trace: readonly TraceEntry[]
  readonly log: readonly string[]
  readonly jobs: readonly Job[]
}

/** An event and its place among all: what a turn consumes is told by the place of the last one that it was shown. */
export type WaitingEvent = SystemEvent & { readonly place: number }

/** The events that wait in a session, oldest first: `events` the first of them, `count` all. */
export type WaitingEvents = {
  readonly events: readonly WaitingEvent[]
  readonly count: number
  /** True: at least one of all asked for a turn at once. */
  readonly wakes: boolean
}

/** A delivery that waits to run again, oldest first. */
export type OpenDelivery = {
  readonly deliveryId: string
  readonly receivedAt: number
  readonly state: 'pending' | 'parked'
  readonly hook: string
  readonly waitsFor: string | undefined
  readonly generation: string
  readonly request: KeptRequest
}

export type StoreHealth = {
  readonly engine: string
  /** Undefined while the store works; else why it does not. */
  readonly trouble: string | undefined
  /** Engine facts for doctor and /readyz, such as journal mode and synchronous. */
  readonly facts: Readonly<Record<string, string | number>>
}

/** The read side. A read-only process has this part alone. */
export interface StoreReader {
  /** Newest last; the newest `limit` of them. */
  deliveries(query: { limit: number; state?: DeliveryState }): Promise<DeliveryRecord[]>
  /** By delivery id or by the id of one of its jobs. */
  delivery(id: string): Promise<DeliveryRecord | undefined>
  /** The request of a delivery, by the same ids, for as long as it is kept: while it waits, and after where that was asked for. */
  request(id: string): Promise<KeptRequest | undefined>
  /** The newest `limit` system events, oldest first; pending and consumed. */
  events(query: { limit: number }): Promise<SystemEvent[]>
  sessions(query: { limit: number }): Promise<Session[]>
  /** Undefined where nothing was ever said. `runnerState` as a report left it. */
  session(
    name: Pick<Session, 'agentId' | 'sessionKey'>,
  ): Promise<(Session & { runnerState: JsonValue | undefined }) | undefined>
  /** What waits in a session for its next turn: the oldest `limit`, and how many there are. */
  waiting(query: { agentId: string; sessionKey: string; limit: number }): Promise<WaitingEvents>
  /** One job, by its id: also one that no delivery caused. */
  job(id: string): Promise<Job | undefined>
  /** The newest `limit` jobs that failed for good, oldest first: also those that no delivery caused. */
  deadJobs(query: { limit: number }): Promise<Job[]>
  /** When the newest task that `standsFor` this was added, in milliseconds since the epoch; undefined: none is remembered. */
  lastTaskAt(standsFor: string): Promise<number | undefined>
  /** The value of a cursor, as the last append left it. */
  cursor(name: string): Promise<string | undefined>
  /** The transcript of a session, oldest first. */
  messages(query: { agentId: string; sessionKey: string; limit: number }): Promise<Message[]>
  /** Deliveries by state and jobs by state, for doctor and /metrics. */
  counts(): Promise<{ deliveries: Record<DeliveryState, number>; jobs: Record<JobState, number> }>
  /** When the oldest job that could run now became due, in milliseconds since the epoch; undefined: none waits. */
  dueSince(): Promise<number | undefined>
  close(): Promise<void>
}

/**
 * The durable side of the gateway. A call that writes resolves once the write is on disk (or committed), and rejects with
 * `store-unavailable` when it is not known to be: after a rejection nothing of it is there, or all of it.
 * One process owns a store; a second one is refused with `store-locked`.
 */
export interface Store extends StoreReader {
  /**
   * Makes a delivery and its jobs durable. A dedupe key that is taken (same hook, same key, remembered for the store's
   * retention) writes nothing but the mark of a differing body, and gives back the first answer.
   * Only an answer with status 200 keeps its key.
   */
  append(delivery: NewDelivery): Promise<Appended>
  /**
   * Appends all of them and moves the cursor in one transaction: all of it happens, or nothing. Duplicates among them are
   * left out, as `append` leaves them out.
   */
  appendAll(deliveries: readonly NewDelivery[], cursor: Cursor): Promise<Appended[]>
  /** The first answer under a key, if it is remembered. */
  answered(key: Pick<DedupeKey, 'hook' | 'key'>): Promise<Answered | undefined>
  /** Notes that a twin came with the same key and another body. */
  markDiffering(deliveryId: string): Promise<void>
  /**
   * Ends the waiting of a pending or parked delivery, with its jobs, or parks it (again). False when it no longer waits:
   * somebody else settled it, and nothing was written. Its first answer stays.
   */
  settle(deliveryId: string, settlement: Settlement): Promise<boolean>
  /** Takes the key from the delivery that has it, so that a redelivery runs as a new one. */
  forget(key: Pick<DedupeKey, 'hook' | 'key'>): Promise<void>
  /**
   * Pending and parked deliveries, oldest first, with their requests. `after`: only what came after this delivery, whether
   * it still waits or not.
   */
  open(query: {
    limit: number
    waitsFor?: string
    state?: 'pending' | 'parked'
    id?: string
    after?: string | undefined
  }): Promise<OpenDelivery[]>

  /**
   * Leases up to `limit` due jobs, in arrival order, at most one of a lane, none whose lane has an earlier unfinished job.
   * A job whose lease ran out is due again, under a new fence and with one attempt more counted, and so is a job that a
   * dead owner left running: one that kills its gateway comes back with `attempts` at the limit of whoever claims it, who
   * then makes it dead instead of beginning it.
   */
  claim(query: { limit: number; leaseMs: number }): Promise<ClaimedJob[]>
  /** False: the lease was lost, nothing was written. */
  report(job: { id: string; fence: number }, report: JobReport): Promise<boolean>
  /** Prolongs leases; gives back the ids of those that are still held. */
  extend(jobs: readonly { id: string; fence: number }[], leaseMs: number): Promise<string[]>
  /** The moment at which the next queued job is due, or undefined when none waits. */
  nextRunAt(): Promise<number | undefined>
  /**
   * Queues a job that no delivery caused. False: one that stands for the same is queued, for the first time or for a
   * retry; nothing was written. One that runs does not count: what it has not seen is for the next.
   */
  addTask(task: NewTask): Promise<boolean>
  /**
   * Puts a dead job back into the queue, its recorded steps kept and its attempts at zero; of its posts those that were
   * sent, and if none was, none: the route is found anew. False when it is not dead.
   */
  requeue(jobId: string): Promise<boolean>
  /** Ends what waits of a delivery: parked and pending become dropped, queued jobs dead. False when nothing waited. */
  drop(deliveryId: string): Promise<boolean>

  /** Deletes, in small steps, what ended before `before`, and what still waits since then is dropped. Gives back how many deliveries. */
  sweep(before: number): Promise<number>
  health(): Promise<StoreHealth>
}

/** Milliseconds since the epoch. */
export type Clock = () => number
