// The parts of the gateway that the admin API uses.
import type { ParkedCalls } from '../../deliveries/parked-calls.ts'
import type { Recovery } from '../../deliveries/recovery/recovery.ts'
import type { RefusedCalls } from '../../deliveries/refused/calls.ts'
import type { Rerunner } from '../../deliveries/rerun.ts'
import type * as bench from '../../model/api/bench.ts'
import type { MinuteFields } from '../../model/api/health.ts'
import type * as replay from '../../model/api/replay.ts'
import type { CoverageFields, LearntPaths, ShapeFields } from '../../model/api/shapes.ts'
import type { Log } from '../../model/log.ts'
import type { Slots } from '../../model/runner.ts'
import type { KeptQuery } from '../../store/queries.ts'
import type { DeliveryRecord, KeptRequest } from '../../store/records.ts'
import type { Auditor } from '../audit.ts'
import type { HandshakeSecrets } from '../handshake-secrets.ts'
import type { Generation } from '../../generation.ts'
import type { Clock, Store } from '../../store/store.ts'
import type { Refusals } from '../refusals.ts'
import type { Changes } from '../../store/changes.ts'

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

type FixtureOptions = { readonly name?: string | undefined; readonly module?: string | undefined }
type Draft = { readonly mappingId?: string | undefined; readonly template: string }
export type AdminBench = {
  try(request: bench.TypedRequest, draft: Draft | undefined, isWanted: () => boolean): Promise<bench.TriedFields>
  /** Tries a draft with kept requests; see `tryDraft` of `replay/`. */
  tryKept(draft: { readonly template: string; readonly match: object }, query: KeptQuery): Promise<bench.TriedDraft>
  checkDraft(hook: string, draft: Draft): void
  samples(hook: string): Promise<bench.SampleFields[]>
  /** Paths in templates and conditions that no known request has; see `path-warnings.ts` of `replay/`. */
  pathWarnings(): Promise<readonly { readonly mappingId: string; readonly text: string }[]>
  /** `hook`: undefined for all. `since`: milliseconds since the epoch; undefined for all changes. */
  shapes(query: { readonly hook: string | undefined; readonly since: number | undefined }): AsyncIterable<ShapeFields>
  paths(query: { readonly hook: string; readonly mappingId: string | undefined }): Promise<LearntPaths>
  /** Writes a fixture; see `capture` of the replayer. */
  capture(request: bench.TypedRequest, options: FixtureOptions): Promise<replay.CapturedFields>
  /** Undefined if the page may not change the configuration. */
  readonly saveTemplate:
    | ((template: Draft & { readonly hook: string }) => Promise<bench.SavedMappingFields>)
    | undefined
  /** Undefined except in `hookloom dev`. */
  readonly makeTransform: ((request: bench.TypedRequest) => Promise<bench.MadeTransformFields>) | undefined
}

export type AdminReplayer = {
  /** `isWanted` is called when the replay can begin: false if its client has disconnected. */
  replay(
    query: KeptQuery & { readonly ids?: readonly string[] | undefined },
    isWanted: () => boolean,
  ): Promise<replay.ReplayReport>
  /** Runs the fixtures of a module, and writes the results into them as the expected ones. */
  updateFixtures(module: string): Promise<replay.UpdatedFixtures>
  /** The lines of a module that its fixtures and kept requests run. */
  coverage(module: string, isWanted: () => boolean): Promise<CoverageFields>
  decideLive(ids: readonly string[]): Promise<Readonly<Record<string, object>>>
  /** Writes a fixture. */
  capture(
    stored: { record: Pick<DeliveryRecord, 'deliveryId' | 'receivedAt' | 'mappingId'>; request: KeptRequest },
    options: FixtureOptions,
  ): Promise<replay.CapturedFields>
  /** Mappings whose transform has a shadow. */
  shadows(): replay.ShadowFields[]
  /** Publishes the saves that `hooks.transforms.hold` held back. */
  publish(): Promise<{ readonly generation: string }>
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
  readonly drain: ParkedCalls
  readonly refused: RefusedCalls
  readonly recovery: Recovery
  readonly replayer: AdminReplayer
  readonly bench: AdminBench
  readonly handed: HandshakeSecrets
  /** Queues a test alert. Resolves to the id of its job. */
  readonly testAlert: () => Promise<string>
  readonly hookCounts: (name: string) => bench.HookCounts
  readonly auditor: Auditor
  readonly log: Log
}
