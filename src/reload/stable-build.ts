// Builds the newest complete state of the directory. A build is repeated if a file is saved while it runs.
import { type BuildInput, hasChanged } from '../transforms/read.ts'
import type { Saved } from './watch.ts'
import { Problem, toProblem } from '../model/problem.ts'
import type { Log } from '../model/log.ts'
import type { Candidate } from './candidate.ts'
import type { SavedFile } from './reload-log.ts'

/** After this many outdated builds, a complete one is used although it is not the newest. */
const maxOldRounds = 5
/** After this many builds, one is used although some files may be newer than others, because a program keeps writing them. */
const maxRounds = 50
/** How far the clock of the file system may be behind, in milliseconds. */
const clockLagMs = 5

/** `inputs`: the files of the last build, with their state when it read them. */
export async function buildStable(options: {
  build: () => Promise<Candidate>
  inputs: () => readonly BuildInput[]
  saves: SaveTracker
  isClosed: () => boolean
}): Promise<Candidate | Problem> {
  const { build, inputs, saves, isClosed } = options
  for (let round = 1; ; round += 1) {
    await saves.idle()
    const begunAt = Date.now()
    const built = await build().catch(toProblem)
    // a build that ended with a problem may not have read the files again
    const hasRead = !(built instanceof Problem)
    const isMixed = inputs().some((input) => isSavedSince(input, begunAt) || (hasRead && hasChanged(input)))
    const isWhole = !isMixed || round >= maxRounds
    const isNewest = !saves.hasNew() || round >= maxOldRounds
    if (isClosed() || (isWhole && isNewest)) return built
  }
}

/**
 * Whether a file was saved while the build ran. Other files of the same save may not be written yet. A file that was read before it was saved has
 * changed, whatever its time in the file system: on a busy machine, that clock is further behind.
 */
function isSavedSince({ ctimeNs }: BuildInput, moment: number): boolean {
  return Number(ctimeNs / 1_000_000n) > moment - clockLagMs
}

/** The files that were saved, and whether a save is in progress. During a save, files on disk may be incomplete. */
type SaveTracker = {
  /** A save was noticed. `finish` follows. */
  begin(): void
  /** All files of the save are written. */
  finish(saved: Saved): void
  /** Resolves when no save is in progress. */
  idle(): Promise<void>
  /** Whether a save started since the last call of `idle`. */
  hasNew(): boolean
  /** Files that were saved since the last `clear`. */
  changed(): readonly string[]
  /** The changed files for which no line was logged. */
  fresh(): readonly string[]
  clear(): void
}

export function createSaveTracker(): SaveTracker {
  const changed = new Set<string>()
  const fresh = new Set<string>()
  let hasNew = false
  let inProgress: { readonly over: Promise<void>; readonly end: () => void } | undefined
  return {
    begin() {
      hasNew = true
      if (inProgress !== undefined) return
      let end = () => {}
      const over = new Promise<void>((resolve) => {
        end = resolve
      })
      inProgress = { over, end }
    },
    finish(saved) {
      for (const file of saved.changed) changed.add(file)
      for (const file of saved.fresh) fresh.add(file)
      inProgress?.end()
      inProgress = undefined
    },
    async idle() {
      await inProgress?.over
      hasNew = false
    },
    hasNew: () => hasNew,
    changed: () => [...changed],
    fresh: () => [...fresh],
    clear: () => {
      changed.clear()
      fresh.clear()
    },
  }
}

/** A shorter build is not logged while it runs. */
const buildingMs = 300

/** Logs the names of the saved files if the build takes long. */
export async function logLongBuild<Built>(
  log: Log,
  saved: () => readonly SavedFile[],
  run: () => Promise<Built>,
): Promise<Built> {
  const timer = setTimeout(() => {
    const labels = saved().map(({ label }) => label)
    log.info({}, `building ${labels.length === 0 ? 'the modules' : labels.join(', ')} …`)
  }, buildingMs)
  try {
    return await run()
  } finally {
    clearTimeout(timer)
  }
}
