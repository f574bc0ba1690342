// The store: deliveries, jobs, sessions and events that survive a crash. Every engine implements these interfaces and keeps
// the promises in their comments; test/contract/store.ts tests each promise against each engine.
//
// A delivery is one received request. A job is one action that a delivery caused, or a task: a job that no delivery caused, such as a heartbeat.
//
//   delivery   pending ──▶ parked · accepted · skipped · dropped      most deliveries are accepted or skipped when they are stored
//              parked  ──▶ accepted · skipped · dropped
//
//   job        queued ──▶ running ──▶ done · dead
//                ▲           │
//                └── retry ──┘
//              queued, dead ──▶ dropped, and their delivery from accepted to dropped
//              queued, running ──▶ superseded · cancelled · expired · skipped, by `endJob` or by their flow
//
// All times are milliseconds since the epoch. Several owners may share a store, each on a machine with its own clock. So the clock of the
// store decides about leases and due times: calls take and return durations for them, and the moments in records are for people.
import type { DeliveriesQuery, KeptQuery, SearchStep, StepQuery } from './queries.ts'
import type { ClaimedJob, Ending, Job, Message, Session, SystemEvent } from '../model/job.ts'
import type { JsonValue } from '../base/json.ts'
import type { QuarantineBounds, QuarantinedRequest, QuarantineQuery, SealedRequest } from './quarantine.ts'
import type { AuditKeeper, AuditReader } from './audit.ts'
import type { AccountReader, BudgetKeeper } from './budgets.ts'
import type { CountReader } from './counts.ts'
import type { ProgressReader } from './progress.ts'
import type { FailuresQuery, Lease, NodeInfo, NodeRecord, Signal } from './owners.ts'
import type { KeptBackReader } from './kept-back.ts'
import type { TroubleReader } from './troubles.ts'
import type { TurnKeeper } from './turns.ts'
import type { WaitReader } from './waits.ts'
import type {
  DedupeKey,
  DeliveryAnswer,
  ClaimQuery,
  KeptRequest,
  NewTask,
  Settlement,
  NewDelivery,
  Appended,
  JobReport,
  DeliveryRecord,
  Hold,
  NewHold,
  Repetition,
  LaneLoad,
  WaitingEvents,
  OpenDelivery,
  KeptDelivery,
  StoreHealth,
} from './records.ts'
import type { CursorMoves } from './cursors.ts'
import type { TranscriptKeeper } from './transcripts.ts'

/** The part of the store that a read-only process has. */
export interface StoreReader
  extends AccountReader, AuditReader, CountReader, KeptBackReader, ProgressReader, TroubleReader, WaitReader {
  /**
   * The newest `limit` deliveries, oldest first. `before` (the id of a delivery or of one of its jobs): only those that arrived before it; none if the store has no
   * such id. `from` (such an id): only this one and those that arrived after it. `text`: only those whose id begins with it, or that have it in their hook, source,
   * event, mapping, stored body, problem, message or session key, or in the error or reply of a run; of a long text, only the beginning (`searchedBytes`). The case of
   * ASCII letters does not matter. A search for a text or a time reads each row between `from` and `before`, so the caller decides how long it takes.
   */
  deliveries(query: DeliveriesQuery): Promise<DeliveryRecord[]>
  /**
   * The delivery that is about `rows` deliveries older than `before`, or than the newest one; undefined if there is none, or none that arrived
   * after the delivery `after`. A search uses it to take steps: `from` of one step is `before` of the next.
   */
  stepBack(query: StepQuery): Promise<SearchStep | undefined>
  /** Finds a delivery by its id or by the id of one of its jobs. `request` returns undefined if the request is not stored. */
  delivery(id: string): Promise<DeliveryRecord | undefined>
  request(id: string): Promise<KeptRequest | undefined>
  /** The newest `limit` deliveries whose request is stored, or was too large to be stored, newest first. Pending deliveries are left out. */
  keptDeliveries(query: KeptQuery): Promise<KeptDelivery[]>
  /**
   * The newest `limit` system events, oldest first, consumed ones included. `before` (milliseconds since the epoch): only those that
   * are older. A page has all events of its oldest moment, so it may be longer than `limit`; the `at` of its first event as the
   * next `before` loses nothing and repeats nothing.
   */
  events(query: { limit: number; before?: number | undefined }): Promise<SystemEvent[]>
  /** The `limit` sessions that were updated last, the newest one last. `before`: as for `events`, but compared with `updatedAt`. */
  sessions(query: { limit: number; before?: number | undefined }): Promise<Session[]>
  /** A stored session; undefined if the store has nothing about it. `runnerState` comes from the last report that set it. */
  session(
    name: Pick<Session, 'agentId' | 'sessionKey'>,
  ): Promise<(Session & { runnerState: JsonValue | undefined }) | undefined>
  /** The unconsumed events of a session: the oldest `limit`, and the number of all. */
  waitingEvents(query: { agentId: string; sessionKey: string; limit: number }): Promise<WaitingEvents>
  /** The milliseconds since the newest unconsumed event that asks for a turn was stored; undefined if none does. */
  wokenForMs(name: Pick<Session, 'agentId' | 'sessionKey'>): Promise<number | undefined>
  /** Finds a job by its id, tasks included. */
  job(id: string): Promise<Job | undefined>
  /** The ids of deliveries and jobs that begin with a text, in the order of the ids. `deliveryId`: undefined for a task. */
  idsFrom(query: { prefix: string; limit: number }): Promise<{ id: string; deliveryId: string | undefined }[]>
  /** The milliseconds since the newest task with this `standsFor` was added; undefined if the store has none. */
  taskAgeMs(standsFor: string): Promise<number | undefined>
  /** The value of a cursor; undefined if it was never set. */
  cursor(name: string): Promise<string | undefined>
  /** The cursors whose names begin with a text, in the order of the names (by code point). */
  cursors(prefix: string): Promise<{ name: string; value: string }[]>
  /** The newest `limit` messages of a session's transcript, oldest first. `runId`: only those of this run, found by an index. */
  messages(query: { agentId: string; sessionKey: string; limit: number; runId?: string }): Promise<Message[]>
  /** The lanes with unfinished jobs, those with the most jobs first. */
  lanes(query: { limit: number }): Promise<LaneLoad[]>
  /** The oldest `limit` unfinished jobs of all sessions and flows with this key, in arrival order. It reads all unfinished jobs. */
  unfinishedJobs(query: { key: string; limit: number }): Promise<Job[]>
  /** The holds that apply now, in the order of their labels. */
  holds(): Promise<Hold[]>
  /** The modules that pending and parked deliveries wait for, and `someMapping`, each once. Reads one index entry for each name. */
  waitedFor(): Promise<string[]>
  /** The bytes that wait: the requests of parked and pending deliveries, and unfinished jobs. In SQLite, an owner reads no rows for it. */
  waitingBytes(): Promise<number>
  /** For how long the job that became due first has been due; undefined if no job is due. */
  dueForMs(): Promise<number | undefined>
  /**
   * The gateways that are on the store, in the order of their ids. A gateway that has not joined again for half a minute is left out. An engine
   * with one owner has at most one gateway: the one that joined last, unless it left.
   */
  nodes(): Promise<NodeRecord[]>
  /**
   * Sealed requests without their content, oldest first. With `after`, the requests that follow it; without `after`, the newest `limit`
   * requests.
   */
  quarantinedRequests(query: QuarantineQuery): Promise<QuarantinedRequest[]>
  /** The encrypted content of a sealed request; undefined if the store does not have the request. */
  sealedContent(requestId: string): Promise<Uint8Array | undefined>
  close(): Promise<void>
}

/**
 * The part of the store that only an owner has. Durability: a call that writes resolves after its transaction is committed and, on disk, synced. It rejects with `store-unavailable` if the commit failed or its result is unknown. Atomicity: each call is one transaction, except `sweep` and
 * some claims. After a rejection, either all writes of a transaction are stored or none. Ownership: an engine has one owner or several. With one (SQLite), writes of a
 * second owner reject with `store-locked`. With several (Postgres), every promise applies to all owners together. Rows have a sequence number,
 * drawn when they are inserted; "arrival order" and "oldest first" are its order. Two deliveries that two owners store at the same moment have
 * the same order for every reader, but not necessarily the order of their requests.
 */
export interface Store extends StoreReader, BudgetKeeper, AuditKeeper, TranscriptKeeper, TurnKeeper {
  /**
   * Stores a delivery and its jobs. If another delivery of the hook already has the dedupe key, the call stores no delivery
   * and returns the first answer.
   * Rejects with `store-full` if more would wait than the store may hold; nothing that is stored changes.
   * A delivery takes its key unless it is skipped, and has it until `forget` removes it or the delivery is deleted.
   */
  append(delivery: NewDelivery): Promise<Appended>
  /** True: a claim that is made right after an append, even before the append ends, finds the jobs of this append, and is in the same commit if possible. */
  claimsAppended(): boolean
  /**
   * Appends deliveries in order, each as `append` does, and moves the cursors, all in one transaction. Returns `moved`, and
   * writes nothing, if the value of a cursor is not `from`: another owner moved it.
   */
  appendAll(deliveries: readonly NewDelivery[], moves: CursorMoves): Promise<Appended[] | 'moved'>
  /** The answer to the delivery that has this key; undefined if none has it. */
  findAnswer(key: Pick<DedupeKey, 'hook' | 'key'>): Promise<DeliveryAnswer | undefined>
  /** Adds to the repetitions of deliveries. Deliveries that the store does not have are left out. */
  noteRepeats(repeats: readonly Repetition[]): Promise<void>
  /**
   * Stores sealed requests, and deletes those beyond the bounds: `selectBeyond` says which. A request that is stored already is not
   * changed. Sealed requests do not count as waiting bytes.
   */
  quarantine(requests: readonly SealedRequest[], bounds: QuarantineBounds): Promise<void>
  /** Replaces the reasons for which sealed requests were refused. Requests that the store does not have are left out. */
  noteRefusals(refusals: readonly Pick<QuarantinedRequest, 'requestId' | 'refusal'>[]): Promise<void>
  /** Deletes sealed requests. Returns how many were deleted. */
  deleteSealed(requestIds: readonly string[]): Promise<number>
  /**
   * Stores the outcome of a pending or parked delivery, with its jobs. The outcome may park it, or park it again.
   * The stored answer does not change. Returns false, and writes nothing, if the delivery is no longer pending or parked. With `moves`, the
   * cursors move in the same transaction. Returns `moved`, and writes nothing, if the value of one is not `from`.
   */
  settle(deliveryId: string, settlement: Settlement, moves?: CursorMoves): Promise<boolean | 'moved'>
  /** Removes a dedupe key. A redelivery with this key is then a new delivery. */
  forget(key: Pick<DedupeKey, 'hook' | 'key'>): Promise<void>
  /**
   * Pending and parked deliveries with their requests, in arrival order. `after` is the id of a delivery, in any state:
   * only deliveries that follow it in this order are returned, and none if the store does not have it.
   *
   * A delivery remembers the generation and the transform of each settlement that parked it. `notFailedBy` leaves out deliveries that one of
   * these generations (by id) or transforms (by hash) parked.
   */
  openDeliveries(query: {
    limit: number
    notFailedBy?: readonly string[]
    waitsFor?: string
    state?: 'pending' | 'parked'
    id?: string
    after?: string | undefined
  }): Promise<OpenDelivery[]>

  /**
   * Leases up to `limit` due jobs for `leaseMs`, in arrival order. A job waits until every earlier job of its lane has ended,
   * so at most one job of a lane is leased: the database itself makes a second one impossible. Only a task starts before an earlier job
   * of a delivery that waits for a hold, a budget or its next attempt; that job is then still before the later ones. Each lease has a new fence: a
   * random number that its reports must name. So no two claims share a fence, not even after a failover that lost a claim.
   *
   * When a lease expires, the job is due again and the attempt counts. No other lease is touched. An engine with one owner ends
   * the leases of the previous owner when it is opened, because its lock proves that this owner is dead. So the attempts of a
   * job that crashes its gateway grow with each crash, and the worker can end such a job as dead instead of starting it again.
   *
   * Jobs with a flow start in the order of flow.ts instead, when they are due and have room in `limits` and in their own settings. A claim with
   * the limit 0 starts nothing, but still ends jobs, for example those that newer requests replace or cancel. `only: 'tasks'`: leases jobs that no delivery caused.
   */
  claim(query: ClaimQuery): Promise<ClaimedJob[]>
  /**
   * Writes a report. Returns false, and writes nothing, if the job is no longer leased under this fence. Returns true, and writes
   * nothing, if it ended under this fence with this outcome: an earlier commit of the same report had an unknown result.
   */
  report(job: { id: string; fence: number }, report: JobReport): Promise<boolean>
  /** Sets leases to end `leaseMs` from now. Returns the ids of the jobs that are still leased under their fence. */
  extend(jobs: readonly { id: string; fence: number }[], leaseMs: number): Promise<string[]>
  /**
   * Milliseconds until a claim may find something to do: a queued job is due or expires, or a hold ends. 0 or less if it may find something now. Jobs
   * that wait for an earlier job of their lane or for a hold do not count. Undefined if there is nothing.
   */
  nextDueInMs(): Promise<number | undefined>
  /**
   * Queues a task. Returns false, and writes nothing, if a task with the same `standsFor` is queued in its lane, a retry included, or was added
   * within `unlessWithinMs`. A running task does not prevent a new one: the running task may not see the reason for the new one.
   */
  addTask(task: NewTask): Promise<boolean>
  /** Makes a queued task with this `standsFor` due at once, if it waits for its next attempt. Returns false if there is none. */
  makeDue(standsFor: string): Promise<boolean>
  /** Makes the runs of a delivery whose last attempt failed, or that are in a quiet period, due at once, unless they wait for a budget. Returns the ids of those that waited. */
  tryNow(deliveryId: string): Promise<string[]>
  /**
   * Queues a dead job again, with zero attempts. Its steps and the posts that were sent are kept; if no post was sent, the worker chooses the route
   * again. Returns false, and writes nothing, if the job is not dead. The tasks of a run (`toRunTaskName`) begin again, in any state: without steps,
   * and as if they were added now. A task that runs loses its lease.
   */
  requeue(jobId: string): Promise<boolean>
  /**
   * Ends an unfinished job before its time. `ended`: it was queued. `ending`: it is running, and its owner must stop it. From then on, its
   * reports return false and write only its posts; a report with any outcome, or the end of its lease, ends it. The first reason counts.
   * Undefined, and nothing is written, if the job has ended.
   */
  endJob(jobId: string, ending: Ending): Promise<'ended' | 'ending' | undefined>
  /** The jobs whose messages a job reads (`gather`), oldest first: the first `limit` of them, and the number of all. */
  gatheredJobs(jobId: string, limit: number): Promise<{ readonly jobs: readonly Job[]; readonly count: number }>
  /** The running jobs that must end. */
  jobsToEnd(): Promise<{ readonly id: string; readonly fence: number }[]>
  /** Keeps jobs back, from the next claim on. Replaces a hold of the same label and kind. */
  hold(hold: NewHold): Promise<void>
  /** Removes a hold. Returns false if there is no such hold. */
  unhold(hold: Pick<Hold, 'label' | 'kind'>): Promise<boolean>
  /** Drops a delivery that is pending, parked, or has queued or dead jobs. These jobs are dropped too; running jobs go on. False if nothing changed. */
  drop(deliveryId: string): Promise<boolean>
  /**
   * Takes those of the named leases that are free, each for `leaseMs` and under a new, random fence, and returns them. A lease that expired is
   * free. An engine with one owner begins without leases, because its lock proves that the previous owner is dead.
   */
  lease(query: { names: readonly string[]; leaseMs: number }): Promise<Lease[]>
  /** Sets leases to end `leaseMs` from now, even expired leases that nobody else took. Returns the names of the leases that are still held. */
  extendLeases(held: readonly Lease[], leaseMs: number): Promise<string[]>
  /** Ends leases that are still held under their fence. */
  endLeases(held: readonly Lease[]): Promise<void>
  /**
   * Counts failed attempts of clients, and locks out, for `lockMs`, a client that had `failures` within `windowMs`. Failures
   * during a lock do not prolong it. An engine with one owner counts nothing: its owner does, in memory.
   */
  noteFailures(query: FailuresQuery): Promise<void>
  /** The clients that are locked out, at most ten thousand. `forMs`: how much longer. */
  lockouts(scope: string): Promise<{ client: string; forMs: number }[]>
  /**
   * Registers this gateway on the store: deliveries that it stores from then on name it. It joins again every ten seconds, and when its
   * generation changes.
   */
  join(node: NodeInfo): Promise<void>
  /** Removes a gateway from the store. Its deliveries still name it. */
  leave(id: string): Promise<void>
  /**
   * Calls the listener soon after another owner committed something that this owner may act on. A signal may come late, twice, or for no reason.
   * It may also be lost: about once a second, the listener is called for everything that waits. So a listener may only check for work. Writes of
   * this owner are not signalled to it. An engine with one owner never calls the listener. Returns a function that ends the calls.
   */
  subscribe(listener: (signal: Signal) => void): () => void

  /**
   * Deletes deliveries, with their jobs, and tasks that ended more than `olderThanMs` ago, and events, messages and sessions that are older. Drops
   * deliveries and tasks that were stored before that and still wait. Returns how many deliveries it deleted or dropped. Each step is short.
   */
  sweep(olderThanMs: number): Promise<number>
  /** The time that the store compares with, in milliseconds since the epoch. In Postgres, it is that of the database. */
  now(): Promise<number>
  health(): Promise<StoreHealth>
}

export type OpenedStore = Store & {
  /**
   * Tries to open the store. Resolves even if it cannot be opened now: each call tries again, and health() says why. Rejects with `store-locked`
   * if another gateway owns it, and with `config-invalid` if a newer hookloom wrote it or if its settings would lose deliveries.
   */
  ready(): Promise<void>
}

/** Milliseconds since the epoch. */
export type Clock = () => number
