// Checks the threads while calls are in flight: whether a call or the top level of a module blocks its thread, is late, or uses too much memory.
import type { InFlightCall } from './calls-in-flight.ts'
import type { Thread } from './thread.ts'

const tickMs = 10
/** If a call blocks its thread longer than this, the calls that wait for it move to a free thread, if there is one. */
const crowdMs = 20
/** If a call blocks its thread longer than this, no other call waits for it. */
const stallMs = 100
/** A thread that is not blocked answers within this time. */
const answerMs = 50
/** The memory of a call is checked after this time. */
const memoryAfterMs = 25
/** The time for a thread to start. */
const startMs = 5000
const megabyte = 1024 * 1024

type Observation = {
  /** The call that ran in the thread at the last check, and the earliest time at which it may have begun. */
  running: number
  since: number
  isStalled: boolean
  /** The bundle whose top level ran at the last check, and when this was first seen. */
  loading: number
  loadingSince: number
  /** The newest call that has begun, as of the last check. */
  begun: number
  isAsked: boolean
  /** The oldest call, and the memory of all threads when that call was first seen. */
  oldest: number
  memoryThen: number
}

type Watchdog = {
  /** Checks until no call is in flight. */
  watch(): void
  isStalled(thread: Thread): boolean
  close(): void
}

export function createWatchdog(options: {
  limits: { readonly timeoutMs: number; readonly memoryMb: number }
  threads: () => readonly Thread[]
  /** The call exceeded its time limit, and the thread answers. */
  onLate: (thread: Thread, seq: number) => void
  /** The thread does not answer. `culprit`: the call that blocks it, if it is known. */
  onStuck: (thread: Thread, culprit: number | undefined) => void
  /** The top level of the bundle blocks the thread for longer than the time limit, and calls wait for the thread. */
  onStuckLoad: (thread: Thread, bundle: number) => void
  /** A call has blocked the thread for a while, and other calls wait for it. */
  onCrowded: (thread: Thread) => void
  /** A call blocks the thread, and no call should wait for it. */
  onStalled: (thread: Thread) => void
  onOverMemory: (thread: Thread) => void
}): Watchdog {
  const { limits, threads, onLate, onStuck, onStuckLoad, onCrowded, onStalled, onOverMemory } = options
  const { timeoutMs, memoryMb } = limits
  // twice the limit, because garbage counts too; the worker measures its own memory without it
  const maxBytes = 2 * memoryMb * megabyte
  const observations = new WeakMap<Thread, Observation>()
  let timer: NodeJS.Timeout | undefined
  let lastTick = 0

  function tick(): void {
    const before = lastTick
    lastTick = performance.now()
    // if the main thread did not run for a while, messages of the other threads may be unread, but those sent before the last tick are not
    const now = lastTick - before > 10 * tickMs ? before : lastTick
    const busy = threads().filter(({ inFlight }) => inFlight.size > 0)
    if (busy.length === 0) return stopWatching()
    for (const thread of busy) checkCalls(thread, now, before)
    checkMemory(busy, now)
  }

  /** `now`: all messages that the thread sent before this time have been read. `before`: the time of the last tick. */
  function checkCalls(thread: Thread, now: number, before: number): void {
    const observation = findObservation(thread)
    const running = thread.running()
    if (running !== observation.running) Object.assign(observation, { running, since: before, isStalled: false })
    const loading = thread.loading()
    if (loading !== observation.loading) Object.assign(observation, { loading, loadingSince: lastTick })
    if (loading !== 0 && now - observation.loadingSince >= timeoutMs) return onStuckLoad(thread, loading)
    const begun = thread.begun()
    for (; observation.begun < begun; observation.begun += 1) {
      const inFlightCall = thread.inFlight.get(observation.begun + 1)
      if (inFlightCall !== undefined) inFlightCall.begunAt = lastTick
    }
    const blocking = thread.inFlight.get(running)
    if (blocking !== undefined && isLate(blocking, now)) return onStuck(thread, running)
    const [oldest] = thread.inFlight.values()
    if (oldest === undefined) return
    if (isLate(oldest, now)) return handleLate(thread, observation, oldest, now)
    if (running === 0 || observation.isStalled || now - observation.since < crowdMs) return
    if (now - observation.since < stallMs) {
      if (thread.inFlight.size > 1) onCrowded(thread)
      return
    }
    observation.isStalled = true
    onStalled(thread)
  }

  /** The time limit counts from the start of the call: before that, its thread may be starting or blocked. The wait has its own limit. */
  function isLate({ begunAt, postedAt }: InFlightCall, now: number): boolean {
    return begunAt === undefined ? now - postedAt >= 2 * timeoutMs + startMs : now - begunAt >= timeoutMs
  }

  function handleLate(thread: Thread, { running }: Observation, oldest: InFlightCall, now: number): void {
    const { seq, postedAt } = oldest
    if (running === 0) return void askLate(thread, seq)
    // a younger call that blocks the thread still has time, so the result of the older one may merely be delayed
    if (now - postedAt >= 2 * timeoutMs + startMs) onStuck(thread, undefined)
  }

  /** A thread that runs no synchronous call may be idle, or blocked by code after an `await`. */
  async function askLate(thread: Thread, seq: number): Promise<void> {
    const answers = await ask(thread, seq, () => thread.answers(answerMs))
    if (answers === true) onLate(thread, seq)
    // if a call runs now, it blocks the thread, and the next check sees it
    else if (answers === false && thread.running() === 0) onStuck(thread, undefined)
  }

  /** Asks the thread one question at a time. Returns undefined if another question is open, or if the call has ended. */
  async function ask<T>(thread: Thread, seq: number, question: () => Promise<T>): Promise<T | undefined> {
    const observation = findObservation(thread)
    if (observation.isAsked) return undefined
    observation.isAsked = true
    const answer = await question()
    observation.isAsked = false
    return thread.inFlight.has(seq) ? answer : undefined
  }

  function checkMemory(busy: readonly Thread[], now: number): void {
    const old = busy.filter((thread) => {
      const [oldest] = thread.inFlight.values()
      return oldest !== undefined && now - oldest.postedAt > memoryAfterMs
    })
    if (old.length === 0) return
    const used = measureThreads()
    for (const thread of old) {
      const observation = findObservation(thread)
      const [oldest] = thread.inFlight.keys()
      if (oldest === undefined) continue
      if (oldest !== observation.oldest) Object.assign(observation, { oldest, memoryThen: used })
      // the memory of the process is read fast, but another thread may use it
      if (used - observation.memoryThen >= maxBytes * old.length) void askMemory(thread, oldest)
    }
  }

  async function askMemory(thread: Thread, seq: number): Promise<void> {
    if (await ask(thread, seq, () => thread.usesMoreThan(maxBytes, answerMs))) onOverMemory(thread)
  }

  function findObservation(thread: Thread): Observation {
    const known = observations.get(thread)
    if (known !== undefined) return known
    const observation = {
      running: 0,
      since: 0,
      isStalled: false,
      loading: 0,
      loadingSince: 0,
      begun: 0,
      isAsked: false,
      oldest: 0,
      memoryThen: 0,
    }
    observations.set(thread, observation)
    return observation
  }

  function stopWatching(): void {
    clearInterval(timer)
    timer = undefined
  }

  return {
    watch: () => {
      if (timer !== undefined) return
      lastTick = performance.now()
      timer = setInterval(tick, tickMs)
    },
    isStalled: (thread) =>
      observations.get(thread)?.isStalled === true && thread.running() === observations.get(thread)?.running,
    close: stopWatching,
  }
}

/** The memory of the process without that of the main thread. */
function measureThreads(): number {
  const { rss, heapTotal, external } = process.memoryUsage()
  return rss - heapTotal - external
}
