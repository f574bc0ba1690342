// The parts of the gateway that the admin API uses.
import type { Slots } from '../../model/runner.ts'
import type { Generation } from '../../generation.ts'
import type { Clock, Store } from '../../store/store.ts'
import type { Refusals } from '../refusals.ts'
import type { Rerunner } from '../../deliveries/rerun.ts'
import type { Changes } from '../../store/changes.ts'
import type { MinuteFields } from '../../model/api/health.ts'

/** Whether all saved files are live, and what does not work. Times are milliseconds since the epoch. */
export type SavedFilesStatus = {
  readonly generation: string
  /** Whether a saved file is not live, or the mailbox has a problem. */
  readonly degraded: boolean
  /** Whether a save is held back until the operator publishes it. */
  readonly held: boolean
  readonly problems: readonly {
    readonly detail: string
    readonly module?: string | undefined
    readonly frame?: string | undefined
  }[]
  readonly lastReloadAt: number
  /** `files`: paths below the config directory. */
  readonly lastSave: { readonly files: readonly string[]; readonly at: number } | undefined
  readonly lastGoodAt: number | undefined
}

export type ApiParts = {
  /** The config directory. */
  readonly dir: string
  readonly generation: () => Generation
  /** The live generation, the saved files that are not live, and the problems of the mailbox. */
  readonly status: () => SavedFilesStatus
  readonly store: Store
  readonly changes: Pick<Changes, 'count' | 'since'>
  readonly slots: () => Slots
  /** The minutes of the last hour. */
  readonly minutes: () => readonly MinuteFields[]
  /** The base URL of the hooks; undefined before their port listens. */
  readonly hooksUrl: () => string | undefined
  readonly refusals: Refusals
  readonly rerunner: Pick<Rerunner, 'rerun'>
  readonly newId: () => string
  readonly clock: Clock
  /** Called when a job may run again. */
  readonly lookForJobs: () => void
}
