// Builds the newest complete state of the directory. A build is repeated if a file is saved while it runs.
import { type BuildInput, hasChanged } from '../transforms/read.ts'
import type { SavedPaths } from './watch.ts'
import { Problem, toProblem } from '../model/problem.ts'

/** From this build on, a complete build is used even if it is not the newest. */
const maxOldRounds = 5
/** From this build on, an incomplete build is used: some files may be newer than others, because a program keeps writing them. */
const maxRounds = 50
/** The time by which the clock of the file system may be behind, in milliseconds. */
const clockLagMs = 5

/** `inputs`: the files of the last build, with their state when it read them. */
export async function buildStable<Candidate>(options: {
  build: () => Promise<Candidate>
  inputs: () => readonly BuildInput[]
  saves: SaveTracker
  isClosed: () => boolean
}): Promise<Candidate | Problem> {
  const { build, inputs, saves, isClosed } = options
  for (let round = 1; ; round += 1) {
    await saves.waitUntilIdle()
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

/** Whether a file was saved while the build ran. If so, other files of the same save may not be written yet. */
function isSavedSince({ ctimeNs }: BuildInput, moment: number): boolean {
  return Number(ctimeNs / 1_000_000n) > moment - clockLagMs
}

/** Tracks which files were saved, and whether a save is in progress. During a save, files on disk may be incomplete. */
type SaveTracker = {
  /** Called when a save is noticed. `finish` follows. */
  begin(): void
  /** Called when all files of the save are written. */
  finish(saved: SavedPaths): void
  /** Resolves when no save is in progress. */
  waitUntilIdle(): Promise<void>
  /** Whether a save has started since `waitUntilIdle` resolved. */
  hasNew(): boolean
  /** The files that were saved since the last `clear`. */
  listChanged(): readonly string[]
  /** Those of the changed files that are `fresh`: see `SavedPaths`. */
  listFresh(): readonly string[]
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
    async waitUntilIdle() {
      await inProgress?.over
      hasNew = false
    },
    hasNew: () => hasNew,
    listChanged: () => [...changed],
    listFresh: () => [...fresh],
    clear: () => {
      changed.clear()
      fresh.clear()
    },
  }
}
