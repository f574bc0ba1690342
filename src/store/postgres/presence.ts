// Whether the database can be used. While it is lost, calls are refused at once, and one look a second finds it again.

type Presence = {
  /** Why the database is lost; undefined while it seems usable. */
  lost(): { readonly error: unknown } | undefined
  /** Call it when something failed or is late. It looks, because there may be another reason. */
  doubt(): void
  /** Call it when the database certainly cannot be used: calls are refused from now on, until a look succeeds. */
  lose(error: unknown): void
  /** Call it when the database answered. A look that fails at the same time has another reason, such as a busy server. */
  note(): void
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
      if (lost !== undefined || !hasAnswered) lose(error)
    }
  }

  function reportFound(): void {
    if (isClosed || lost === undefined) return
    lost = undefined
    onFound()
  }

  function lose(error: unknown): void {
    if (isClosed) return
    lost = { error }
    onLost(error)
    schedule()
  }

  return {
    lost: () => lost,
    doubt: schedule,
    lose,
    note: () => void (hasAnswered = true),
    close() {
      isClosed = true
      clearTimeout(timer)
    },
  }
}
