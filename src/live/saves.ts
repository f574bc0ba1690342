// Which files were saved, and whether a save is under way: in the middle of one, files are half of what they will be.

export type Saves = {
  /** A sign of a save; `ended` follows. */
  began(): void
  /** All of these are written. */
  ended(changed: readonly string[]): void
  /** Resolves when no save is under way. */
  calm(): Promise<void>
  /** Whether one began since `calm` was last asked for. */
  isMissed(): boolean
  /** Files that were saved since they were last forgotten. */
  changed(): readonly string[]
  forget(): void
}

export function createSaves(): Saves {
  const changed = new Set<string>()
  let isMissed = false
  let underWay: { readonly over: Promise<void>; readonly end: () => void } | undefined
  return {
    began() {
      isMissed = true
      if (underWay !== undefined) return
      let end = () => {}
      const over = new Promise<void>((resolve) => {
        end = resolve
      })
      underWay = { over, end }
    },
    ended(files) {
      for (const file of files) changed.add(file)
      underWay?.end()
      underWay = undefined
    },
    async calm() {
      await underWay?.over
      isMissed = false
    },
    isMissed: () => isMissed,
    changed: () => [...changed],
    forget: () => changed.clear(),
  }
}
