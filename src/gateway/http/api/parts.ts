// The parts of the gateway that the admin API uses.
import type { ParkedCalls } from '../../deliveries/parked-calls.ts'
import type { Recovery } from '../../deliveries/recovery/recovery.ts'
import type { RefusedCalls } from '../../deliveries/refused/calls.ts'
import type { Rerunner } from '../../deliveries/rerun.ts'
import type { WatchedSource } from '../../deliveries/sources.ts'
import type { ShadowFields } from '../../../model/api/replay.ts'
import type { Log } from '../../../base/log.ts'
import type { Slots } from '../../../model/runner.ts'
import type { HookBench } from '../../replay/bench.ts'
import type { Replayer } from '../../replay/replayer.ts'
import type { Auditor } from '../audit.ts'
import type { HandshakeSecrets } from '../handshake-secrets.ts'
import type { Generation } from '../../generation/generation.ts'
import type { Clock, Store } from '../../../store/store.ts'
import type { Refusals } from '../refusals.ts'
import type { HourOfStore } from './hour-of-store.ts'
import type { LastHour } from './last-hour.ts'
import type { Others } from './others.ts'
import type { Changes } from '../../../store/changes.ts'

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

/** The texts of the files of a save, by their paths below the config directory. */
type SavedTexts = {
  readonly at: number
  readonly files: Readonly<Record<string, string>>
  /** What the save changed for recent deliveries, by what was changed. */
  readonly changes: ReadonlyMap<string, { differ: number; of: number; isWhole: boolean }> | undefined
}

export type ApiParts = {
  /** The config directory. */
  readonly dir: string
  readonly generation: () => Generation
  /** The live generation, the saved files that are not live, and the problems of the mailbox. */
  readonly status: () => SavedFilesStatus
  readonly store: Store
  readonly changes: Pick<Changes, 'count' | 'since'>
  readonly others: Others
  readonly slots: () => Slots
  readonly sources: () => readonly WatchedSource[]
  /** The reply so far of a run that this gateway runs now. */
  readonly replySoFar: (jobId: string) => string | undefined
  readonly lastHour: Omit<LastHour, 'meter'>
  /** The deliveries of the last hour, counted in the store. */
  readonly hour: () => Promise<HourOfStore>
  /** The deliveries of the last 24 hours. */
  readonly day: () => Promise<HourOfStore>
  /** The base URL of the hooks; undefined before their port listens. */
  readonly hooksUrl: () => string | undefined
  readonly refusals: Refusals
  readonly rerunner: Pick<Rerunner, 'rerun' | 'waitForRun'>
  readonly newId: () => string
  readonly clock: Clock
  /** Called when a job may run again. */
  readonly lookForJobs: () => void
  readonly drain: ParkedCalls
  readonly refused: RefusedCalls
  readonly recovery: Recovery
  readonly replayer: Pick<Replayer, 'replay' | 'updateFixtures' | 'coverage' | 'decideLive' | 'capture'> & {
    /** Mappings whose transform has a shadow. */
    shadows(): ShadowFields[]
    /** Publishes the saves that `hooks.transforms.hold` held back. */
    publish(): Promise<{ readonly generation: string }>
  }
  readonly bench: Omit<HookBench, 'close'>
  readonly handed: HandshakeSecrets
  /** Queues a test alert. Resolves to the id of its job. */
  readonly testAlert: () => Promise<string>
  /** Finds a save that went live about at a moment, with the save before it. */
  readonly findSave: (wanted: {
    readonly at: number
    readonly generation: string
  }) => Promise<
    { readonly save: SavedTexts; readonly before: SavedTexts | undefined; readonly isLast: boolean } | undefined
  >
  readonly auditor: Auditor
  readonly log: Log
}
