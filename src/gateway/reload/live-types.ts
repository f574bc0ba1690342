// The types of the live generation, for all parts of a gateway.
import type { OwnParts } from '../../model/plugin.ts'
import type { Log } from '../../base/log.ts'
import type { Meter } from '../../model/meter.ts'
import type { ProblemRecord } from '../../core/model/problem.ts'
import type { Generation } from '../generation/generation.ts'
import type { CandidateSource } from './candidate.ts'
import type { ModuleReport } from '../../core/reload/gate.ts'
import type { CompareKept, RecentChanges } from './recent.ts'
import type { LiveProblem, ParkedFor } from './reload-log.ts'

export type LiveOptions = CandidateSource & {
  readonly log: Log
  readonly clock: () => number
  readonly meter: Meter
  /** Counts the parked deliveries that wait for a module, for the log of a reload. If it is undefined, none are counted. */
  readonly parkedFor?: ParkedFor
  /** Runs kept deliveries through two generations. If it is undefined, log lines do not mention them, and no save waits. */
  readonly compareKept?: CompareKept
  /** Called after each reload, whether it changed something or not, and after each `publish`. */
  readonly onReload?: () => void
  /** Called when another generation has taken the place of the serving one. */
  readonly onSwap?: SwapListener
  /** Called with what the serving generation changed for recent deliveries, a moment after it went live. */
  readonly onCompared?: (generation: string, changes: RecentChanges) => void
  /** Called when a reload has ended. */
  readonly onReport?: ReportListener
}

export type LiveStatus = {
  readonly generation: string
  /** Whether a saved file is not live, or is invalid. */
  readonly degraded: boolean
  /** Whether a save waits for `publish`. */
  readonly held: boolean
  readonly problems: readonly LiveProblem[]
  readonly lastReloadAt: number
  /** The files of the last save that changed any file, by their paths below the config directory. */
  readonly lastSave: { readonly files: readonly string[]; readonly at: number } | undefined
  /** The last moment at which all saved files were live. */
  readonly lastGoodAt: number | undefined
}

/** `problem`: the reason why the configuration was refused. If it is given, `modules` is empty, and the last generation keeps serving unchanged. */
export type ReloadReport = {
  readonly generation: string
  readonly swapped: boolean
  readonly tookMs: number
  readonly modules: readonly ModuleReport[]
  readonly problem: ProblemRecord | undefined
}

/**
 * `retryable`: modules whose parked deliveries may succeed now. `retired` resolves when the last request of the previous generation has ended:
 * deliveries that it parked until then may also run again.
 */
type Swap = { readonly retryable: readonly string[]; readonly retired: Promise<void> }
/**
 * `why`: the reason why a part of the save is not live. `held`: whether the save waits for `publish`. `files`: the saved files, as in
 * `LiveStatus`.
 */
type ReportListener = (
  report: Pick<ReloadReport, 'generation' | 'swapped'> & {
    readonly files: readonly string[]
    readonly held: boolean
    readonly why: string | undefined
  },
) => void
export type SwapListener = (generation: Generation, swap: Swap) => void

export type Live = {
  /** The generation that serves. A request keeps the generation that it began with. */
  current(): Generation
  /** The generation of the files on disk at the latest load, live or not. Throws the problem of an invalid configuration. */
  requireEdited(): Generation
  /** What the plugins and the modules of integrators add to the serving generation. */
  ownParts(): OwnParts
  /** The plugin, or another module of the main thread, whose code threw an exception, and where; undefined if it was none of them. */
  describeThrower(thrown: unknown): string | undefined
  /** Loads the first generation, which then serves. Throws `config-missing` or `config-invalid`, but not for a module that does not load. */
  start(): Promise<void>
  /** Starts to watch. Resolves when all saves since the start were loaded, and every later save will be noticed. */
  watch(): Promise<void>
  /** Reloads after the running reload has ended. */
  reload(): Promise<ReloadReport>
  /** Publishes the save that waits because of `hooks.transforms.hold`. Rejects with `conflict` if none waits. */
  publish(): Promise<{ readonly generation: string }>
  /** Which generation is live, and why a saved file is not. */
  status(): LiveStatus
  /** Marks the generation as used by a request until the returned function is called: `retired` waits for it. */
  acquire(generation: Generation): () => void
  close(): Promise<void>
}
