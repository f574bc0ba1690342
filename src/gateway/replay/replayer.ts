// Runs replays, and makes and updates fixtures, in a gateway. One task runs at a time, in its own threads.
import type { KeptQuery } from '../../store/queries.ts'
import { resolveTransformsRoot } from '../../core/transforms/root.ts'
import type { TransformRuntime } from '../../core/transforms/runtime.ts'
import { cut, takeStart, toPrintableLine } from '../../base/text.ts'
import { Problem } from '../../core/model/problem.ts'
import type { Generation } from '../generation/generation.ts'
import { createSerialQueue } from '../../base/serial.ts'
import type { Outcome } from './outcome.ts'
import type { KeptDelivery } from '../../store/records.ts'
import type { CapturedFields, ReplayReport, UpdatedFixtures } from '../../model/api/replay.ts'
import type { CoverageFields } from '../../model/api/shapes.ts'
import type { StoreReader } from '../../store/store.ts'
import { measureModule } from './coverage.ts'
import { capture, findModuleOf, type CapturableRequest, buildCaptureSource } from './capture.ts'
import { readFixtures } from './fixture-files.ts'
import { rewriteFixture, runFixture } from './fixtures.ts'
import { emptyReplay, type Replay, replay, runAll, matchMappings, withTransforms } from './replay.ts'
import { toReplayReport } from './replay-report.ts'

export type Replayer = {
  /**
   * Compares the live code with the files on disk. If both have the same code, the files are compared with the recorded outcomes instead.
   * Throws `config-invalid` if the configuration on disk is invalid, and `conflict` if the client has left before the replay begins. `ids`:
   * only these deliveries. All their requests are in memory at once, so their number must be small.
   */
  replay(query: KeptQuery & Named, isWanted?: () => boolean): Promise<ReplayReport>
  /**
   * Compares the live code with an unsaved edit: one edit at a time, beside other replays. Throws `conflict` if the client has left, and ends early
   * if it leaves.
   */
  compareEdit(edit: Generation, query: KeptQuery, isWanted: () => boolean): Promise<ReplayReport>
  /** The outcomes of kept deliveries in the live code. Unknown ids, and deliveries whose request is not kept, are left out. */
  decideLive(ids: readonly string[]): Promise<Readonly<Record<string, Outcome>>>
  /**
   * Makes a fixture with the files on disk; see `capture`. A mapping must name `module`. Throws `config-invalid` if the configuration
   * on disk is invalid.
   */
  capture(
    stored: CapturableRequest,
    asked: { name?: string | undefined; module?: string | undefined },
  ): Promise<CapturedFields>
  /** Runs the fixtures of a module with the files on disk, and writes their results as their expectations, like `hookloom test -u`. */
  updateFixtures(module: string): Promise<UpdatedFixtures>
  /** Runs the fixtures and kept requests of a module with the files on disk, and returns which parts of its code ran. */
  coverage(module: string, isWanted?: () => boolean): Promise<CoverageFields>
  /** Compares two generations on the newest kept deliveries, after a save. */
  compareGenerations(
    before: Generation,
    after: Generation,
    query: KeptQuery & { readonly limitMs: number },
  ): Promise<Replay>
}

type Named = { readonly ids?: readonly string[] | undefined }

/** The time limit of a replay: less than the minute that a command waits for the answer. */
const limitMs = 40_000
/** The time limit while somebody types. */
const editMs = 10_000

export function createReplayer(parts: {
  /** The config directory. */
  readonly dir: string
  readonly current: () => Generation
  /** The files on disk, as they were last read. */
  readonly edited: () => Generation
  /** Reads the files on disk now: a save may be so new that the gateway has not noticed it. */
  readonly reload: () => Promise<unknown>
  readonly createThreads: TransformRuntime['createReplayThreads']
  readonly store: Pick<StoreReader, 'keptDeliveries' | 'delivery' | 'request' | 'cursors'>
  readonly newId: () => string
}): Replayer {
  const { dir, current, edited, reload, createThreads, store, newId } = parts
  const inOrder = createSerialQueue()
  const editsInOrder = createSerialQueue()

  /** Runs the work with separate threads, which are closed afterwards. */
  async function withThreads<T>(
    work: (withOwnThreads: (generation: Generation) => Generation) => Promise<T>,
  ): Promise<T> {
    const threads = createThreads()
    try {
      return await work((generation) => withTransforms(generation, threads.of(generation.transforms)))
    } finally {
      await threads.close()
    }
  }

  function compare(
    before: Generation | undefined,
    after: Generation,
    query: KeptQuery & Named & { limitMs: number },
    isWanted?: () => boolean,
  ) {
    return withThreads((withOwnThreads) => {
      const live = before && withOwnThreads(before)
      const { ids } = query
      return replay({
        store: ids === undefined ? store : { keptDeliveries: () => findAllKept(store, ids) },
        query,
        before: live && ((page) => runAll(live, page, { newId })),
        after: withOwnThreads(after),
        findAfterId: before && matchMappings(before, after),
        newId,
        limitMs: query.limitMs,
        isWanted,
      })
    })
  }

  return {
    async replay(query, isWanted = () => true) {
      const [live, disk] = [current(), edited()]
      const isLive = live.id === disk.id
      const done = await inOrder(async () => {
        if (!isWanted()) throw new Problem('conflict', 'The client left before its replay began. It did not run.')
        return compare(isLive ? undefined : live, disk, { ...query, limitMs })
      })
      return toReplayReport(done, { compared: isLive ? 'recorded' : 'live', transforms: disk.transforms })
    },
    compareEdit: (edit, query, isWanted) =>
      editsInOrder(async () => {
        if (!isWanted()) throw new Problem('conflict', 'The client left before its edit was compared.')
        const done = await compare(current(), edit, { ...query, limitMs: editMs }, isWanted)
        return toReplayReport(done, { compared: 'live', transforms: edit.transforms })
      }),
    async decideLive(ids) {
      const page = await findAllKept(store, ids)
      const outcomes = await inOrder(() =>
        withThreads((withOwnThreads) => runAll(withOwnThreads(current()), page, { newId })),
      )
      return Object.fromEntries(outcomes)
    },
    async capture(stored, { name, module: asked }) {
      await reload()
      const { config, env, transforms, senders, verifiers, ...disk } = edited()
      const parts = { config, mappings: disk.mappings.map(({ mapping }) => mapping), senders, verifiers }
      const kept = buildCaptureSource(stored, parts)
      const module = asked ?? (await findModuleOf(kept))
      requireNamed(module, disk, ' "hookloom capture" takes others.')
      const root = await resolveTransformsRoot(dir, config.hooks)
      return inOrder(async () => {
        const threads = createThreads()
        const own = { ...parts, transforms: threads.of(transforms) }
        return capture(kept, { name, module, root, parts: own, env }).finally(() => threads.close())
      })
    },
    updateFixtures(module) {
      return inOrder(async () => {
        await reload()
        const disk = edited()
        requireNamed(module, disk)
        const { config, senders, verifiers } = disk
        const mappings = disk.mappings.map(({ mapping }) => mapping)
        const root = await resolveTransformsRoot(dir, config.hooks)
        return withThreads(async (withOwnThreads) => {
          const own = withOwnThreads(disk).transforms
          const parts = { config, mappings, senders, verifiers, transforms: own }
          const updated: string[] = []
          const failing: { name: string; why: string }[] = []
          for (const file of await readFixtures(root, module)) {
            const outcome = await runFixture(parts, module, file)
            if (outcome.ok) continue
            const isWritten = (await rewriteFixture(file, outcome)) !== undefined
            if (isWritten) updated.push(file.name)
            else failing.push({ name: file.name, why: takeStart(outcome.diff[0] ?? 'it fails', maxWhyChars) })
          }
          return { module, updated, failing }
        })
      })
    },
    coverage: (module, isWanted = () => true) =>
      inOrder(async () => {
        if (!isWanted()) throw new Problem('conflict', 'The client left before the module ran.')
        return measureModule(module, { dir, edited, createThreads, store })
      }),
    async compareGenerations(before, after, query) {
      // checked before threads start, which takes 50 ms: most gateways keep no requests
      const [newest] = await store.keptDeliveries({ ...query, limit: 1 })
      return newest === undefined ? emptyReplay : compare(before, after, query)
    },
  }
}

const maxWhyChars = 2_000

/** Throws `usage-invalid` unless a mapping names the module. `next`: what else the user can do. */
function requireNamed(module: string, { mappings }: Pick<Generation, 'mappings'>, next = ''): void {
  const named = [...new Set(mappings.flatMap(({ mapping: { transform } }) => transform?.module ?? []))]
  if (named.includes(module)) return
  const known = named.length === 0 ? 'Mappings name none' : `Mappings name ${named.slice(0, maxNamed).join(', ')}`
  throw new Problem(
    'usage-invalid',
    `No mapping names the module "${toPrintableLine(cut(module, 100))}". ${known}.${next}`,
  )
}

const maxNamed = 20

async function findAllKept(store: KeptReader, ids: readonly string[]): Promise<KeptDelivery[]> {
  const found = await Promise.all(ids.map((id) => findKept(store, id)))
  return found.flatMap((kept) => kept ?? [])
}

type KeptReader = Pick<StoreReader, 'delivery' | 'request'>

async function findKept(store: KeptReader, id: string): Promise<KeptDelivery | undefined> {
  const [record, request] = await Promise.all([store.delivery(id), store.request(id)])
  return record && request && { ...record, request }
}
