// Looks at the threads while calls are in flight: which one is held, which call is late, which memory grows.
import type { InFlight, Thread } from './thread.ts'

const tickMs = 10
/** A call that holds its thread longer than this keeps no other one waiting. */
const stallMs = 100
/** Time in which a thread that is not held answers. */
const answerMs = 30
/** Until a call is this old, its memory is not looked at. */
const memoryAfterMs = 25
const megabyte = 1024 * 1024

type Sight = {
  /** The call that held the thread at the last look, and the moment since which it may have. */
  running: number
  since: number
  isStalled: boolean
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
  /** A call holds the thread: what waits behind it should not. */
  stalled: (thread: Thread) => void
  overMemory: (thread: Thread) => void
}): Watchdog {
  const { limits, threads, late, stuck, stalled, overMemory } = options
  const sights = new WeakMap<Thread, Sight>()
  const patience = new WeakMap<InFlight, number>()
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
    const sight = toSight(thread)
    const running = thread.running()
    if (running !== sight.running) Object.assign(sight, { running, since: before, isStalled: false })
    const [oldest] = thread.inFlight.values()
    if (oldest === undefined) return
    const { timeoutMs } = limits()
    if (now - oldest.postedAt >= timeoutMs) return beLate(thread, sight, oldest, now)
    if (running === 0 || sight.isStalled || now - sight.since < stallMs) return
    sight.isStalled = true
    stalled(thread)
  }

  function beLate(thread: Thread, sight: Sight, oldest: InFlight, now: number): void {
    const { timeoutMs } = limits()
    if (sight.running === 0) {
      const { seq } = oldest
      void ask(thread, seq, { ifItAnswers: () => late(thread, seq), otherwise: () => stuck(thread, undefined) })
      return
    }
    if (now - sight.since >= timeoutMs - 2 * tickMs) return stuck(thread, sight.running)
    // it waited for one that has not had its time yet; but it does not wait for ever
    const until = patience.get(oldest) ?? sight.since + timeoutMs
    patience.set(oldest, until)
    if (now >= until) stuck(thread, undefined)
  }

  /** A thread with no call in its synchronous part may be idle, or held by what comes after an `await`. */
  async function ask(
    thread: Thread,
    seq: number,
    { ifItAnswers, otherwise }: { ifItAnswers: () => void; otherwise: () => void },
  ): Promise<void> {
    const sight = toSight(thread)
    if (sight.isAsked) return
    sight.isAsked = true
    const answers = await thread.answers(answerMs)
    sight.isAsked = false
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
      const sight = toSight(thread)
      const [oldest] = thread.inFlight.keys()
      if (oldest === undefined) continue
      if (oldest !== sight.oldest) Object.assign(sight, { oldest, memoryThen: used })
      // twice, for garbage is part of what the system sees; what is left of it at the end of a call is counted in the worker
      if (used - sight.memoryThen < 2 * limits().memoryMb * megabyte * old.length) continue
      if (sight.running !== 0) overMemory(thread)
      else void ask(thread, oldest, { ifItAnswers: () => {}, otherwise: () => overMemory(thread) })
    }
  }

  function toSight(thread: Thread): Sight {
    const known = sights.get(thread)
    if (known !== undefined) return known
    const sight = { running: 0, since: 0, isStalled: false, isAsked: false, oldest: 0, memoryThen: 0 }
    sights.set(thread, sight)
    return sight
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
    isStalled: (thread) => sights.get(thread)?.isStalled === true && thread.running() === sights.get(thread)?.running,
    close: stopLooking,
  }
}

/** What is not this thread's own. */
function toMemoryOfThreads(): number {
  const { rss, heapTotal, external } = process.memoryUsage()
  return rss - heapTotal - external
}
