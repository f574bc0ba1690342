// Tries a typed request with the files on disk. A try stores nothing, sends nothing, and checks no credentials.
import { createSerialQueue } from '../../base/serial.ts'
import { saveTemplate } from '../config/save-template.ts'
import type { Env } from '../config/env.ts'
import type {
  MadeTransformFields,
  ModuleText,
  SampleFields,
  SavedMappingFields,
  DraftReport,
  TargetFields,
  TriedDraft,
  TriedFields,
  TypedRequest,
} from '../../model/api/bench.ts'
import type { CapturedFields } from '../../model/api/replay.ts'
import type { PlannedAction } from '../../core/model/action.ts'
import { normalizeHookName } from '../../core/model/mapping-rules.ts'
import { Problem } from '../../core/model/problem.ts'
import type { Generation } from '../generation/generation.ts'
import type { Decision } from '../../core/mapping/decision.ts'
import { decide } from '../../core/mapping/pipeline.ts'
import { buildDelivery, checkBody, convertRequest } from '../../core/mapping/delivery.ts'
import type { ReplayThreads } from '../../core/transforms/runtime.ts'
import type { CapturableRequest } from './capture.ts'
import { type Draft, tryDraft } from './drafts.ts'
import { createOverlay, type Unsaved, type UnsavedTemplate, withTemplate } from './unsaved.ts'
import { toComparedAction } from './outcome.ts'
import { withTransforms } from './replay.ts'
import type { Replayer } from './replayer.ts'
import { findPathWarnings, type PathWarning } from './path-warnings.ts'
import { buildTypedHead, listSamples } from './samples.ts'
import { listLearntPaths } from './learnt-paths.ts'
import { streamShapeRows } from './shape-rows.ts'
import type { LearntPaths, ShapeFields } from '../../model/api/shapes.ts'
import type { KeptQuery } from '../../store/queries.ts'
import type { StoreReader } from '../../store/store.ts'

/** Writes the module, the types, the first fixture and the mapping for a hook, from a typed request. Throws as `hookloom new` does. */
export type MakeTransform = (request: TypedRequest) => Promise<MadeTransformFields>

export type HookBench = {
  /**
   * Tries a request. `isWanted` is called when the request can run, and returns false if its client has left. Throws `conflict` in that
   * case, `config-invalid` if the configuration on disk is invalid, and `usage-invalid` if the draft is invalid.
   */
  try(request: TypedRequest, draft: Unsaved | undefined, isWanted: () => boolean): Promise<TriedFields>
  /** Tries a draft with kept requests; see `tryDraft`. Throws `config-invalid` and `usage-invalid`, as `try` does. */
  tryKept(draft: Draft, query: KeptQuery): Promise<TriedDraft>
  /**
   * Compares a draft with the live code, on kept requests. Throws `conflict` if the client has left, and `config-invalid` and `usage-invalid`, as
   * `try` does.
   */
  compareDraft(draft: Unsaved, query: KeptQuery & { hook: string }, isWanted: () => boolean): Promise<DraftReport>
  /** Throws `usage-invalid` if the draft is invalid, and `not-found` if its mapping does not exist. */
  checkDraft(hook: string, draft: UnsavedTemplate): void
  /** The texts of the modules of a hook, which can be tried with changes. Empty if unsaved code does not run here. */
  code(hook: string): Promise<ModuleText[]>
  /** The requests with which a hook can be tried. */
  samples(hook: string): Promise<SampleFields[]>
  /** The warnings about the live generation; see `findPathWarnings`. */
  pathWarnings(): Promise<readonly PathWarning[]>
  /** The learnt shapes of payloads; see `streamShapeRows`. */
  shapes(query: Parameters<typeof streamShapeRows>[1]): AsyncIterable<ShapeFields>
  /** The paths that templates of the live generation can read; see `listLearntPaths`. */
  paths(query: Parameters<typeof listLearntPaths>[1]): Promise<LearntPaths>
  /** Writes a fixture; see `capture` of the replayer. */
  capture(request: TypedRequest, asked: Parameters<Replayer['capture']>[1]): Promise<CapturedFields>
  /** Undefined if the configuration may not be changed from outside. */
  readonly saveTemplate: ((template: Parameters<typeof saveTemplate>[1]) => Promise<SavedMappingFields>) | undefined
  /** Undefined if only the command `hookloom new` makes transforms. */
  readonly makeTransform: MakeTransform | undefined
  close(): Promise<void>
}

/** The time after which idle threads end. A thread takes 50 ms to start, so the threads stay for the next keystroke. */
const idleMs = 30_000
/** The maximum number of actions in an answer: `forEach` can make thousands. */
const maxShown = 20

type Warm = { readonly edited: Generation; readonly generation: Generation; readonly threads: ReplayThreads }

export function createHookBench(parts: {
  /** The config directory. */
  readonly dir: string
  readonly env: Env
  /** Whether templates may be saved, and unsaved code may run. */
  readonly development: boolean
  readonly makeTransform: MakeTransform | undefined
  readonly current: () => Generation
  /** The files on disk. */
  readonly edited: () => Generation
  readonly createThreads: () => ReplayThreads
  /** The text that an agent would read; undefined for an action without a turn. */
  readonly renderPrompt: (planned: PlannedAction) => string | undefined
  /** Where the text of an action would go now. */
  readonly findTargets: (planned: PlannedAction) => Promise<readonly TargetFields[]>
  readonly replayer: Pick<Replayer, 'capture' | 'compareEdit'>
  readonly store: Pick<StoreReader, 'keptDeliveries' | 'cursor' | 'cursors'>
  readonly newId: () => string
  readonly clock: () => number
}): HookBench {
  const { dir, env, current, edited, createThreads, store, newId, clock, makeTransform, replayer } = parts
  const inOrder = createSerialQueue()
  const overlay = createOverlay(parts)
  let warm: Warm | undefined
  let idle: NodeJS.Timeout | undefined

  /** The files on disk with threads that serve no delivery. */
  async function acquire(): Promise<Generation> {
    clearTimeout(idle)
    const now = edited()
    if (warm?.edited !== now) {
      await release()
      const threads = createThreads()
      warm = { edited: now, generation: withTransforms(now, threads.of(now.transforms)), threads }
    }
    return warm.generation
  }

  async function release(): Promise<void> {
    clearTimeout(idle)
    const before = warm
    warm = undefined
    await before?.threads.close()
  }

  async function releaseAll(): Promise<void> {
    await Promise.all([release(), overlay.close()])
  }

  async function run(request: TypedRequest, draft: Unsaved | undefined): Promise<TriedFields> {
    const base = await acquire()
    const { generation } = draft === undefined ? { generation: base } : await overlay.add(base, request.hook, draft)
    const startedAt = performance.now()
    const tried = await tryRequest(generation, request, { newId, clock })
    const tookMs = Math.round((performance.now() - startedAt) * 10) / 10
    return { ...(await toTriedFields(tried, generation, parts)), isLive: current().id === base.id, tookMs }
  }

  function startIdle(): void {
    clearTimeout(idle)
    idle = setTimeout(() => void inOrder(releaseAll), idleMs)
    idle.unref()
  }

  /** The request in the form of a stored one. */
  function buildStored(request: TypedRequest): CapturableRequest {
    const generation = edited()
    const head = buildTypedHead(generation, generation.findHook(normalizeHookName(request.hook)), request)
    const record = { deliveryId: newId(), receivedAt: clock(), mappingId: undefined }
    return { record, request: { head, body: Buffer.from(request.body) } }
  }

  return {
    try: (request, draft, isWanted) =>
      inOrder(async () => {
        if (!isWanted()) throw new Problem('conflict', 'The client left before its request was tried.')
        try {
          return await run(request, draft)
        } finally {
          startIdle()
        }
      }),
    tryKept: (draft, query) => inOrder(() => tryDraft(draft, { edited: edited(), store, query, newId })),
    async compareDraft(draft, query, isWanted) {
      const hook = normalizeHookName(query.hook)
      const { generation, id } = await inOrder(() => overlay.add(edited(), hook, draft).finally(startIdle))
      const mappings = generation.mappings.filter((mapping) => mapping.id === id)
      const found = await findPathWarnings({ dir, store, generation: { ...generation, mappings }, maxKept: 0 })
      // a template may read a path twice
      const unread = new Map(found.map(({ path, near = null, text }) => [path, { path, near, text }]))
      return {
        report: await replayer.compareEdit(generation, { ...query, hook }, isWanted),
        unread: [...unread.values()],
      }
    },
    checkDraft: (hook, draft) => void withTemplate(edited(), hook, draft),
    pathWarnings: () => findPathWarnings({ dir, store, generation: current(), maxKept: 0 }),
    shapes: (query) => streamShapeRows({ store, generation: current() }, query),
    paths: (query) => listLearntPaths({ dir, store, generation: current() }, query),
    samples: (hook) => listSamples({ dir, generation: current(), store }, normalizeHookName(hook)),
    capture: (request, asked) => replayer.capture(buildStored(request), asked),
    code: (hook) => overlay.texts(edited(), hook),
    saveTemplate: parts.development ? (template) => inOrder(() => saveTemplate({ dir, env }, template)) : undefined,
    makeTransform: makeTransform && ((request) => inOrder(() => makeTransform(request))),
    close: () => inOrder(releaseAll),
  }
}

type Tried = {
  readonly decision: Decision | Problem
  readonly source: string | undefined
  readonly event: string | undefined
}

/** Runs the request. A refusal is a result, not an exception. */
async function tryRequest(
  generation: Generation,
  request: TypedRequest,
  { newId, clock }: { newId: () => string; clock: () => number },
): Promise<Tried> {
  const { config } = generation
  let [source, event]: (string | undefined)[] = []
  try {
    const hook = generation.findHook(normalizeHookName(request.hook))
    if (!config.hooks.enabled) throw new Problem('hook-unknown', 'hooks.enabled is false.')
    if (hook.kind === 'unknown') throw new Problem('hook-unknown', 'No mapping has this hook.')
    const typed = { head: buildTypedHead(generation, hook, request), body: Buffer.from(request.body) }
    if (typed.body.byteLength > hook.maxBodyBytes) throw new Problem('body-too-large', 'The body is over the limit.')
    const { head, body } = convertRequest(typed, hook)
    const delivery = buildDelivery(head, body, { hook, id: newId(), receivedAt: clock() })
    ;({ source, event } = delivery)
    const decision = await decide(delivery, { hook, newId })
    if (decision.kind !== 'accept') checkBody(delivery)
    return { decision, source, event }
  } catch (error) {
    const isKnown = error instanceof Problem
    const decision = isKnown
      ? error
      : new Problem('internal-error', 'The request could not be tried.', { cause: error })
    return { decision, source, event }
  }
}

async function toTriedFields(
  { decision, source, event }: Tried,
  { config }: Generation,
  { renderPrompt, findTargets }: Pick<Parameters<typeof createHookBench>[0], 'renderPrompt' | 'findTargets'>,
): Promise<Omit<TriedFields, 'isLive' | 'tookMs'>> {
  const sender = { source: source ?? null, event: event ?? null }
  const nothing = { why: null, count: 0, actions: [], response: null, problem: null }
  if (decision instanceof Problem) {
    const problem = toProblemFields(decision)
    return { ...sender, ...nothing, decision: 'refuse', mappingId: null, trace: decision.trace, log: [], problem }
  }
  const { kind, mappingId = null, trace, log } = decision
  const reasons = { ...sender, ...nothing, mappingId, trace, log }
  switch (kind) {
    case 'accept': {
      const { actions, response = null } = decision
      const shown = await Promise.all(
        actions.slice(0, maxShown).map(async (planned) => ({
          fields: toComparedAction(planned),
          prompt: renderPrompt(planned) ?? null,
          targets: await findTargets(planned),
        })),
      )
      return { ...reasons, decision: kind, count: actions.length, actions: shown, response }
    }
    case 'skip':
      return { ...reasons, decision: kind, why: decision.why }
    case 'park': {
      const rejects = config.hooks.onTransformError === 'reject'
      return { ...reasons, decision: rejects ? 'refuse' : kind, problem: toProblemFields(decision.problem) }
    }
    case 'refuse':
      return { ...reasons, decision: kind, problem: toProblemFields(decision.problem) }
  }
}

function toProblemFields({ code, status, message, frame }: Problem): TriedFields['problem'] {
  return { code, status, detail: message, frame: frame ?? null }
}
