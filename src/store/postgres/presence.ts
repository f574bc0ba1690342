// Whether the database can be used. While it is lost, calls are refused at once, and it is probed once a second.

type Presence = {
  /** Why the database is lost; undefined while it seems usable. */
  loss(): { readonly error: unknown } | undefined
  /** Call it when a call failed or is late. A probe decides whether the database is lost, because there may be another reason. */
  checkSoon(): void
  /** Call it when the database certainly cannot be used: calls are refused from now on, until a probe succeeds. */
  markLost(error: unknown): void
  /** Call it when the database answered. A probe that fails at the same time has another reason, such as a busy server. */
  noteAnswer(): void
  close(): void
}

const everyMs = 1_000

/** `probe` rejects if the database cannot be used. `onLost` is called each time that it is found lost, `onFound` when it can be used again. */
export function createPresence(parts: {
  readonly probe: () => Promise<unknown>
  readonly onLost: (error: unknown) => void
  readonly onFound: () => void
}): Presence {
  const { probe, onLost, onFound } = parts
  let lost: { readonly error: unknown } | undefined
  let isClosed = false
  let hasAnswered = false
  let probedAt = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | undefined
  let isProbing = false

  function schedule(): void {
    if (isClosed || isProbing || timer !== undefined) return
    timer = setTimeout(() => void probeOnce(), Math.max(0, probedAt + everyMs - performance.now())).unref()
  }

  async function probeOnce(): Promise<void> {
    timer = undefined
    isProbing = true
    hasAnswered = false
    probedAt = performance.now()
    try {
      await probe()
      isProbing = false
      reportFound()
    } catch (error) {
      isProbing = false
      if (lost !== undefined || !hasAnswered) markLost(error)
    }
  }

  function reportFound(): void {
    if (isClosed || lost === undefined) return
    lost = undefined
    onFound()
  }

  function markLost(error: unknown): void {
    if (isClosed) return
    lost = { error }
    onLost(error)
    schedule()
  }

  return {
    loss: () => lost,
    checkSoon: schedule,
    markLost,
    noteAnswer: () => void (hasAnswered = true),
    close() {
      isClosed = true
      clearTimeout(timer)
    },
  }
}
