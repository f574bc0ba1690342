// The answers of the admin API about kept requests, as types only: replays, and fixtures of deliveries.

/** What an edit does to a request. */
export type ReplayClass =
  | 'same'
  | 'changed'
  | 'now skipped'
  | 'now refused'
  | 'now parks'
  | 'now works'
  | 'another mapping'

/** Long texts begin shortly before the place where they differ. Null: the field is not there. */
export type ChangeFields = {
  readonly path: string
  readonly before: unknown
  readonly after: unknown
  /** The value when the request arrived, if the live code gives another one now. */
  readonly recorded?: unknown
}

/** Requests that change at the same paths, with the first of them as the example. */
export type GroupFields = {
  readonly paths: readonly string[]
  readonly count: number
  readonly percent: number
  readonly example: {
    readonly deliveryId: string
    readonly hook: string
    /** Both outcomes in one line. */
    readonly before: string
    readonly after: string
    readonly changes: readonly ChangeFields[]
  }
}

export type ReplayReport = {
  /** What the edit is compared with. `live`: the code that serves. `recorded`: the records, because the edit is live already or no gateway runs. */
  readonly compared: 'live' | 'recorded'
  readonly total: number
  readonly counts: { readonly [Name in ReplayClass]: number }
  /** The groups of all classes except `same`, the largest first. */
  readonly groups: readonly (GroupFields & { readonly class: ReplayClass })[]
  /** Paths that differ between two runs of the edit. They are not compared. */
  readonly unstable: readonly { readonly path: string; readonly count: number }[]
  /** Differences between the records (`before`) and the live code (`after`). */
  readonly drift: readonly GroupFields[]
  /** Ids of deliveries whose requests were too large to keep. */
  readonly tooLarge: readonly string[]
  /** Deliveries that were not reached in time. */
  readonly notRun: number
  /**
   * Modules of the edit that do not load, with the code frame of the reason. They do not go live, so the deliveries that they would park
   * are in no class: `notCompared` counts them.
   */
  readonly problems: readonly {
    readonly module: string
    readonly detail: string
    readonly frame: string | null
    readonly notCompared: number
  }[]
  /** The newest first. */
  readonly deliveries: readonly {
    readonly deliveryId: string
    readonly receivedAt: string
    readonly hook: string
    readonly source: string | null
    readonly event: string | null
    readonly class: ReplayClass
    readonly paths: readonly string[]
    readonly unstable: readonly string[]
    readonly drift: readonly string[]
  }[]
}

/** A fixture that was written. `note`: why the code fails on it now. */
export type CapturedFields = {
  /** Absolute. */
  readonly file: string
  readonly module: string
  readonly deliveryId: string
  /** Where a secret was removed, at most 100 places. */
  readonly removed: readonly string[]
  /** What the fixture expects. */
  readonly decision: string
  readonly note: string | null
}
