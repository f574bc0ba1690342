// Looks at the threads while calls are in flight: which one is held, which call is late, which memory grows.
import type { InFlightCall } from './calls-in-flight.ts'
import type { Thread } from './thread.ts'

const tickMs = 10
/** What waits behind a call that holds its thread longer than this goes to a free thread, if there is one. */
const crowdMs = 20
/** A call that holds its thread longer than this keeps no other one waiting. */
const stallMs = 100
/** Time in which a thread that is not held answers. */
const answerMs = 50
/** Until a call is this old, its memory is not looked at. */
const memoryAfterMs = 25
/** For a thread to start. */
const startMs = 5000
const megabyte = 1024 * 1024

type Observation = {
  /** The call that held the thread at the last look, and the moment since which it may have. */
  running: number
  since: number
  isStalled: boolean
  /** The newest call that was seen to be begun. */
  begun: number
  isAsked: boolean
  /** The oldest call, and the memory of all threads when it was first seen. */
  oldest: number
  memoryThen: number
}

export type Watchdog = {
  /** A call is in flight: look, until none is. */
  watch(): void
  isStalled(thread: Thread): boolean
  close(): void
}

export function createWatchdog(options: {
  limits: () => { readonly timeoutMs: number; readonly memoryMb: number }
  threads: () => readonly Thread[]
  /** This call is out of time; the thread answers. */
  late: (thread: Thread, seq: number) => void
  /** The thread does not give in. `culprit`: the call that holds it, where that is known. */
  stuck: (thread: Thread, culprit: number | undefined) => void
  /** A call has held the thread for a while, and others wait behind it. */
  crowded: (thread: Thread) => void
  /** A call holds the thread: what waits behind it should not. */
  stalled: (thread: Thread) => void
  overMemory: (thread: Thread) => void
}): Watchdog {
  const { limits, threads, late, stuck, crowded, stalled, overMemory } = options
  const observations = new WeakMap<Thread, Observation>()
  let timer: NodeJS.Timeout | undefined
  let lastTick = 0

  function tick(): void {
    const now = performance.now()
    const before = lastTick
    lastTick = now
    // this thread was asleep: what the others said meanwhile comes first
    if (now - before > 10 * tickMs) return
    const busy = threads().filter(({ inFlight }) => inFlight.size > 0)
    if (busy.length === 0) return stopLooking()
    for (const thread of busy) look(thread, now, before)
    lookAtMemory(busy, now)
  }

  function look(thread: Thread, now: number, before: number): void {
    const observation = toObservation(thread)
    const running = thread.running()
    if (running !== observation.running) Object.assign(observation, { running, since: before, isStalled: false })
    const begun = thread.begun()
    for (; observation.begun < begun; observation.begun += 1) {
      const inFlightCall = thread.inFlight.get(observation.begun + 1)
      if (inFlightCall !== undefined) inFlightCall.begunAt = Math.max(before, inFlightCall.postedAt)
    }
    const holder = thread.inFlight.get(running)
    if (holder !== undefined && isLate(holder, now)) return stuck(thread, running)
    const [oldest] = thread.inFlight.values()
    if (oldest === undefined) return
    if (isLate(oldest, now)) return beLate(thread, observation, oldest, now)
    if (running === 0 || observation.isStalled || now - observation.since < crowdMs) return
    if (now - observation.since < stallMs) {
      if (thread.inFlight.size > 1) crowded(thread)
      return
    }
    observation.isStalled = true
    stalled(thread)
  }

  /** Its time runs from its begin: a thread may still be starting, or held by another call. But it does not wait for ever. */
  function isLate({ begunAt, postedAt }: InFlightCall, now: number): boolean {
    const { timeoutMs } = limits()
    return begunAt === undefined ? now - postedAt >= 2 * timeoutMs + startMs : now - begunAt >= timeoutMs + tickMs
  }

  function beLate(thread: Thread, { running }: Observation, oldest: InFlightCall, now: number): void {
    const { seq, postedAt } = oldest
    if (running === 0) {
      void ask(thread, seq, { ifItAnswers: () => late(thread, seq), otherwise: () => stuck(thread, undefined) })
      return
    }
    // a younger one holds the thread, and has time left: the older one may have been done long ago
    if (now - postedAt >= 2 * limits().timeoutMs + startMs) stuck(thread, undefined)
  }

  /** A thread with no call in its synchronous part may be idle, or held by what comes after an `await`. */
  async function ask(
    thread: Thread,
    seq: number,
    { ifItAnswers, otherwise }: { ifItAnswers: () => void; otherwise: () => void },
  ): Promise<void> {
    const observation = toObservation(thread)
    if (observation.isAsked) return
    observation.isAsked = true
    const answers = await thread.answers(answerMs)
    observation.isAsked = false
    if (!thread.inFlight.has(seq)) return
    if (answers) ifItAnswers()
    // held by a call that was begun meanwhile: the next look knows which
    else if (thread.running() === 0) otherwise()
  }

  function lookAtMemory(busy: readonly Thread[], now: number): void {
    const old = busy.filter((thread) => {
      const [oldest] = thread.inFlight.values()
      return oldest !== undefined && now - oldest.postedAt > memoryAfterMs
    })
    if (old.length === 0) return
    const used = toMemoryOfThreads()
    for (const thread of old) {
      const observation = toObservation(thread)
      const [oldest] = thread.inFlight.keys()
      if (oldest === undefined) continue
      if (oldest !== observation.oldest) Object.assign(observation, { oldest, memoryThen: used })
      // twice, for garbage is part of what the system sees; what is left of it at the end of a call is counted in the worker
      if (used - observation.memoryThen < 2 * limits().memoryMb * megabyte * old.length) continue
      if (observation.running !== 0) overMemory(thread)
      else void ask(thread, oldest, { ifItAnswers: () => {}, otherwise: () => overMemory(thread) })
    }
  }

  function toObservation(thread: Thread): Observation {
    const known = observations.get(thread)
    if (known !== undefined) return known
    const observation = { running: 0, since: 0, isStalled: false, begun: 0, isAsked: false, oldest: 0, memoryThen: 0 }
    observations.set(thread, observation)
    return observation
  }

  function stopLooking(): void {
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
    close: stopLooking,
  }
}

/** What is not this thread's own. */
function toMemoryOfThreads(): number {
  const { rss, heapTotal, external } = process.memoryUsage()
  return rss - heapTotal - external
}
