// The answers of the admin API about kept requests, as types only: replays, and fixtures of deliveries.

/** How an edit changes the outcome of a request. */
export type ReplayClass =
  | 'same'
  | 'changed'
  | 'now skipped'
  | 'now refused'
  | 'now parks'
  | 'now works'
  | 'another mapping'

/** A long text begins shortly before the first difference. Null if the field is missing. */
export type ChangeFields = {
  readonly path: string
  readonly before: unknown
  readonly after: unknown
  /** The value when the request arrived, if the live code now returns another one. */
  readonly recorded?: unknown
}

/** Requests that change at the same paths. The first of them is the example. */
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
  /** The base of the comparison. `live`: the serving code. `recorded`: the records, if the edit is already live or no gateway runs. */
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
  /** The number of deliveries that the time limit left out. */
  readonly notRun: number
  /**
   * Modules of the edit that do not load, with the code frame of the reason. They do not go live, so the deliveries that they would park
   * belong to no class: `notCompared` counts them.
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
  /** The places where secrets were removed, at most 100. */
  readonly removed: readonly string[]
  /** The expected decision of the fixture. */
  readonly decision: string
  readonly note: string | null
}
