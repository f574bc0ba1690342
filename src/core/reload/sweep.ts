// Finds changes that no event announced, as on mounts of Docker Desktop and WSL, on NFS, on SMB, and in an overlay whose lower folder changes.
import { readStampLater } from './file-state.ts'

type SweepOptions = {
  /** The files and folders to check. */
  readonly list: () => Iterable<string>
  /** Called with the paths that changed without an event. */
  readonly onMissed: (paths: readonly string[]) => void
  readonly everyMs?: number
}

export type Sweep = {
  /** Notes that an event announced a change of this path. */
  tell(path: string): void
  close(): void
}

/** With fifty modules, a round is about two hundred calls. The first save on such a mount waits for it; later ones are polled. */
const sweepEveryMs = 3_000
/** The time in which the event of a change may still arrive. */
const graceMs = 500

/** The first round only remembers. A path that appears in the list later is remembered then. */
export function createSweep({ list, onMissed, everyMs = sweepEveryMs }: SweepOptions): Sweep {
  const known = new Map<string, string>()
  // the events of this round and of the one before, because a round takes time
  let told = new Set<string>()
  let toldBefore = new Set<string>()
  let isClosed = false
  let timer: NodeJS.Timeout

  const wait = (run: () => void, ms: number) => {
    if (isClosed) return
    timer = setTimeout(run, ms)
    timer.unref()
  }

  async function check(): Promise<void> {
    const changed: string[] = []
    for (const path of list()) {
      // one call at a time, off the main thread: a mount that does not answer blocks nothing else
      const stamp = await readStampLater(path)
      if (isClosed) return
      if (known.has(path) && known.get(path) !== stamp) changed.push(path)
      known.set(path, stamp)
    }
    wait(() => finish(changed), Math.min(graceMs, everyMs))
  }

  function finish(changed: readonly string[]): void {
    const missed = changed.filter((path) => !told.has(path) && !toldBefore.has(path))
    toldBefore = told
    told = new Set()
    if (missed.length > 0) onMissed(missed)
    wait(() => void check(), everyMs)
  }

  wait(() => void check(), 0)
  return {
    tell: (path) => void told.add(path),
    close() {
      isClosed = true
      clearTimeout(timer)
    },
  }
}
