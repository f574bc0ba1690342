// Time: limits for work that may not end, and waits that end with a signal.

/** The result of `work`, or undefined after `ms` milliseconds. Late work continues, and its result is dropped. */
export function within<T>(ms: number, work: PromiseLike<T>): Promise<T | undefined> {
  return race<T | undefined>(ms, undefined, () => work)
}

/** `thrown` may be any value. Reading one of its properties may run foreign code, such as a getter. */
export type Attempt<T = unknown> = { kind: 'ended'; value: T } | { kind: 'threw'; thrown: unknown } | { kind: 'late' }

/** Starts the work and reports how it ends within `ms` milliseconds. Never rejects. Late work continues, and its result is dropped. */
export function attemptWithin<T>(ms: number, start: () => T | Promise<T>): Promise<Attempt<T>> {
  return race<Attempt<T>>(ms, { kind: 'late' }, () => attempt(start))
}

async function attempt<T>(start: () => T | Promise<T>): Promise<Attempt<T>> {
  try {
    return { kind: 'ended', value: await start() }
  } catch (thrown) {
    return { kind: 'threw', thrown }
  }
}

async function race<T>(ms: number, late: T, start: () => PromiseLike<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<T>((resolve) => {
    timer = setTimeout(resolve, ms, late)
  })
  try {
    // the race handles the loser's rejection: a late throw crashes nothing
    return await Promise.race([start(), timeout])
  } finally {
    clearTimeout(timer)
  }
}

type DeadlineResult<T> = { kind: 'finished'; value: T } | { kind: 'timeout' } | { kind: 'aborted' }

/**
 * Runs `work` with a signal that is aborted when `outer` is aborted, or after `ms`. Rethrows an exception that `work` throws before then. After
 * `ms`, it waits up to `endingMs` until the work has ended, so that nothing new starts while the work still runs. After `outer` is aborted, it does
 * the same only if `waitsAfterAbort()` is true. If `outer` is aborted already, it does not start the work.
 */
export async function withDeadline<T>(
  {
    outer,
    ms,
    endingMs = 0,
    waitsAfterAbort = () => false,
  }: { outer: AbortSignal; ms: number; endingMs?: number; waitsAfterAbort?: () => boolean },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<DeadlineResult<T>> {
  if (outer.aborted) return { kind: 'aborted' }
  const inner = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let onAbort = () => {}
  const cutShort = new Promise<DeadlineResult<T>>((resolve) => {
    timer = setTimeout(() => {
      resolve({ kind: 'timeout' })
      inner.abort(new DOMException('The time is up.', 'TimeoutError'))
    }, ms)
    onAbort = () => {
      resolve({ kind: 'aborted' })
      inner.abort(outer.reason)
    }
    outer.addEventListener('abort', onAbort, { once: true })
  })
  const finish = async (): Promise<DeadlineResult<T>> => ({ kind: 'finished', value: await work(inner.signal) })
  const finished = finish()
  let ended: DeadlineResult<T>
  try {
    // the race handles the loser's rejection: a late throw of abandoned work crashes nothing
    ended = await Promise.race([cutShort, finished])
  } finally {
    clearTimeout(timer)
    outer.removeEventListener('abort', onAbort)
  }
  if (ended.kind === 'timeout' && endingMs > 0) {
    await withDeadline({ outer, ms: endingMs }, () => finished.catch(() => undefined))
  }
  if (ended.kind === 'aborted' && waitsAfterAbort())
    await within(
      endingMs,
      finished.catch(() => undefined),
    )
  return ended
}

/** What ends each signal of `abortAfter`: a signal does not keep its sources, and what is collected as garbage aborts nothing. */
const sources = new WeakMap<AbortSignal, AbortController>()

/**
 * A signal that is aborted after `ms`, with a `TimeoutError`, or as soon as one of the others is. It stands in place of `AbortSignal.any` with
 * `AbortSignal.timeout`, whose timeout Node may collect as garbage before it ends: then the work has no limit. https://github.com/nodejs/node/issues/57736
 */
export function abortAfter(ms: number, ...others: readonly AbortSignal[]): AbortSignal {
  const late = new AbortController()
  setTimeout(() => late.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError')), ms).unref()
  const signal = AbortSignal.any([...others, late.signal])
  sources.set(signal, late)
  return signal
}

/** Resolves after `ms`, or as soon as the signal is aborted. */
export async function sleepUntilAborted(ms: number, signal: AbortSignal): Promise<void> {
  await withDeadline({ outer: signal, ms }, () => new Promise<never>(() => {}))
}

/** A moment on two clocks, in milliseconds: the wall clock runs while a machine sleeps, and the steady clock cannot be set. */
export type Moment = { readonly wall: number; readonly steady: number }

export function readClocks(wallClock: () => number = Date.now): Moment {
  return { wall: wallClock(), steady: performance.now() }
}

/**
 * The milliseconds between two moments, by the clock on which more time has passed. It measures the age of a lease. A lease that seems too old is
 * only given up too early. A lease that seems too young is used after its end, while the next owner uses it too.
 */
export function measureElapsedMs(from: Moment, to: Moment): number {
  return Math.max(to.wall - from.wall, to.steady - from.steady)
}

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** `30m`, `1h`, `45s`, `2d` in whole milliseconds; a plain number is minutes. Undefined for anything else. */
export function readDurationMs(given: string | number): number | undefined {
  const [, amount, unit = 'm'] = /^(\d{1,6}(?:\.\d+)?)\s*([smhd])?$/.exec(String(given).trim()) ?? []
  if (amount === undefined) return undefined
  return Math.round(Number(amount) * (unitMs[unit] ?? 0))
}
