// Tracks saves: which files changed, and whether a save is in progress. During one, files on disk may be incomplete.

export type SaveTracker = {
  /** A save was noticed; `finished` follows. */
  started(): void
  /** All of these files are written. */
  finished(changed: readonly string[]): void
  /** Resolves when no save is in progress. */
  idle(): Promise<void>
  /** Whether a save started since the last call of `idle`. */
  hasNew(): boolean
  /** Files that were saved since the last `clear`. */
  changed(): readonly string[]
  clear(): void
}

export function createSaveTracker(): SaveTracker {
  const changed = new Set<string>()
  let hasNew = false
  let inProgress: { readonly over: Promise<void>; readonly end: () => void } | undefined
  return {
    started() {
      hasNew = true
      if (inProgress !== undefined) return
      let end = () => {}
      const over = new Promise<void>((resolve) => {
        end = resolve
      })
      inProgress = { over, end }
    },
    finished(files) {
      for (const file of files) changed.add(file)
      inProgress?.end()
      inProgress = undefined
    },
    async idle() {
      await inProgress?.over
      hasNew = false
    },
    hasNew: () => hasNew,
    changed: () => [...changed],
    clear: () => changed.clear(),
  }
}
