// Whether the database can be used. While it is lost, calls are refused at once, and one look a second finds it again.

type Presence = {
  /** Why the database is lost; undefined while it seems usable. */
  loss(): { readonly error: unknown } | undefined
  /** Call it when something failed or is late. Whether the database is lost is decided by a look, because there may be another reason. */
  checkSoon(): void
  /** Call it when the database certainly cannot be used: calls are refused from now on, until a look succeeds. */
  markLost(error: unknown): void
  /** Call it when the database answered. A look that fails at the same time has another reason, such as a busy server. */
  noteAnswer(): void
  close(): void
}

const everyMs = 1_000

/** `look` rejects if the database cannot be used. `onLost` is called for each look that fails, `onFound` for the first that succeeds. */
export function createPresence(parts: {
  readonly look: () => Promise<unknown>
  readonly onLost: (error: unknown) => void
  readonly onFound: () => void
}): Presence {
  const { look, onLost, onFound } = parts
  let lost: { readonly error: unknown } | undefined
  let isClosed = false
  let hasAnswered = false
  let lookedAt = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | undefined
  let isLooking = false

  function schedule(): void {
    if (isClosed || isLooking || timer !== undefined) return
    timer = setTimeout(() => void lookOnce(), Math.max(0, lookedAt + everyMs - performance.now())).unref()
  }

  async function lookOnce(): Promise<void> {
    timer = undefined
    isLooking = true
    hasAnswered = false
    lookedAt = performance.now()
    try {
      await look()
      isLooking = false
      reportFound()
    } catch (error) {
      isLooking = false
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
