// Stores once a minute that a gateway listens, so that the next start knows the time in which no gateway listened.
import type { Clock, Store } from '../../../store/store.ts'

/** A time in which no gateway listened, in milliseconds since the epoch. */
export type Gap = { readonly from: number; readonly to: number }

const cursorName = 'listening'
const writeEveryMs = 60_000
/** The shortest gap that counts. A shorter one is a late write, or the change from one gateway to another. */
const minGapMs = 150_000

type Listening = {
  /** Notes that the gateway listens now. Returns the time since the last note, if it is long enough to count as a gap. */
  note(): Promise<Gap | undefined>
  /** Notes that the gateway listened until now. */
  end(): Promise<void>
}

export function createListening({
  store,
  clock,
}: {
  store: Pick<Store, 'appendAll' | 'cursor'>
  clock: Clock
}): Listening {
  let writtenAt: number | undefined

  async function write(to: number): Promise<Gap | undefined> {
    const stored = await store.cursor(cursorName)
    // another gateway has written its note at the same time
    if ((await store.appendAll([], { name: cursorName, from: stored, to: String(to) })) === 'moved') return undefined
    writtenAt = to
    const from = Number(stored ?? to)
    return to - from >= minGapMs ? { from, to } : undefined
  }

  return {
    async note() {
      const now = clock()
      if (writtenAt !== undefined && Math.abs(now - writtenAt) < writeEveryMs) return undefined
      return write(now)
    },
    end: async () => void (await write(clock())),
  }
}

/** Such as `not listening 10:02–10:07 UTC`. A gap of more than a day includes the dates. */
export function describeGap({ from, to }: Gap): string {
  const format = (at: number) => {
    const time = new Date(at).toISOString()
    return to - from < 86_400_000 ? time.slice(11, 16) : `${time.slice(0, 10)} ${time.slice(11, 16)}`
  }
  return `not listening ${format(from)}–${format(to)} UTC`
}
