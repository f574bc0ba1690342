// Runs the next version of a transform on requests that the live version has decided, and counts how the outcomes differ. It runs after the
// answer, in threads without effects, for a bounded share of the time. Requests beyond that time are dropped and counted.
import { setTimeout as sleep } from 'node:timers/promises'
import { createSerialQueue } from '../../base/serial.ts'
import { toErrorName } from '../../base/exceptions.ts'
import { cut, toPrintableLine } from '../../base/text.ts'
import type { ReplayClass, ShadowFields } from '../../model/api/replay.ts'
import type { OnDecided } from '../deliveries/listeners.ts'
import type { Delivery } from '../../core/model/delivery.ts'
import { type Log, silentLog } from '../../base/log.ts'
import type { Meter } from '../../model/meter.ts'
import { forgetPayload } from '../../core/model/body.ts'
import type { CompiledMapping } from '../../core/mapping/compile.ts'
import type { Generation } from '../generation/generation.ts'
import { createGeneration } from '../generation/generation.ts'
import { toHookLabel } from '../../core/mapping/hook.ts'
import type { Decision } from '../../core/mapping/decision.ts'
import { decide } from '../../core/mapping/pipeline.ts'
import type { StateReader } from '../../core/mapping/state.ts'
import { createTransformRuntime, type TransformRuntime } from '../../core/transforms/runtime.ts'
import { resolveTransformsRoot, toModuleLabel } from '../../core/transforms/root.ts'
import { compare } from './comparison.ts'
import { listChanges, type Outcome, toOutcome } from './outcome.ts'
import { pauseBetweenRuns } from './replay.ts'

/** After a batch, the shadow pauses for this many times as long as the batch took, so that it uses at most a tenth of the time. */
const pauseFactor = 9
const batchSize = 8
const maxWaiting = 32
/** The maximum size of what waits: the bytes of the bodies and the characters of the texts of their actions. */
const maxWaitingBytes = 4_000_000
const maxDifferences = 50

export type Shadows = {
  readonly note: OnDecided
  /** Builds the shadows of the live mappings again, if their files or the mappings changed. Never rejects. */
  refresh(): Promise<void>
  list(): ShadowFields[]
  /** Resolves when nothing waits and nothing runs. */
  waitUntilIdle(): Promise<void>
  stop(): Promise<void>
}

type ShadowParts = {
  /** The config directory. */
  readonly dir: string
  readonly generation: () => Generation
  /** Reads `context.state` of transforms. */
  readonly readState: StateReader
  readonly clock: () => number
  readonly newId: () => string
  readonly meter: Meter
  readonly log: Log
}

/** One mapping with a shadow, and its counts since one of its two versions changed. */
type Shadow = {
  readonly mappingId: string
  readonly hook: string
  readonly module: string
  readonly shadow: string
  /** The hashes of both versions, joined. Another text means that a version changed. */
  readonly hash: string
  readonly problem: string | undefined
  readonly since: number
  readonly counts: Map<ReplayClass, number>
  dropped: number
  /** The differences, the newest last. */
  readonly differences: ShadowFields['differences'][number][]
}

/** `of`: the live generation. `generation`: the one that runs, with the shadows in place of the modules. */
type Loaded = {
  readonly of: Generation
  readonly generation: Generation
  readonly shadows: ReadonlyMap<string, Shadow>
}

type Waiting = {
  readonly delivery: Delivery
  readonly before: Outcome
  readonly shadow: Shadow
  readonly loaded: Loaded
  readonly readState: StateReader
  readonly bytes: number
}

export function createShadows({ dir, generation: live, readState, clock, newId, meter, log }: ShadowParts): Shadows {
  const inOrder = createSerialQueue()
  const logged = new Set<string>()
  let waiting: Waiting[] = []
  let waitingBytes = 0
  let runtime: TransformRuntime | undefined
  let loaded: Loaded | undefined
  let running: Promise<void> | undefined
  /** The end of the pause after the last batch, in milliseconds of `performance.now()`. The pause applies even if nothing waits. */
  let pauseEndsAt = 0
  const stopping = new AbortController()
  const { signal } = stopping

  async function load(): Promise<void> {
    const of = live()
    const shadowed = of.mappings.filter(({ mapping }) => mapping.transform?.shadow !== undefined)
    if (shadowed.length === 0 || signal.aborted) {
      loaded = undefined
      await runtime?.close()
      runtime = undefined
      return
    }
    const { config, env, senders, verifiers } = of
    const mappings = shadowed.map(({ mapping }) => withShadow(mapping))
    const root = await resolveTransformsRoot(dir, config.hooks)
    runtime ??= createTransformRuntime({ clock, log: silentLog, isShadow: true })
    const refs = mappings.flatMap(({ transform }) => transform ?? [])
    const transforms = await runtime.load({ root, refs, settings: { ...config.hooks.transforms, workers: 1, env } })
    const generation = createGeneration({
      config,
      env,
      mappings: of.mappings.map(({ mapping }) => withShadow(mapping)),
      transforms,
      senders,
      verifiers,
    })
    const shadows = shadowed.map((compiled) => createShadow(compiled, generation, loaded?.shadows.get(compiled.id)))
    loaded = { of, generation, shadows: new Map(shadows.map((shadow) => [shadow.mappingId, shadow])) }
    for (const { shadow, mappingId, problem } of shadows) if (problem !== undefined) warn(shadow, mappingId, problem)
  }

  function createShadow({ id, mapping, match }: CompiledMapping, next: Generation, known?: Shadow): Shadow {
    const { module = '', shadow = '' } = mapping.transform ?? {}
    const transform = next.mappings.find((other) => other.id === id)?.transform
    const before = live().mappings.find((other) => other.id === id)?.transform
    const hash = `${before?.hash} ${transform?.hash}`
    if (known?.hash === hash && known.module === module && known.shadow === shadow) return known
    const hook = match.path === undefined ? '*' : toHookLabel(live().findHook(match.path), match.path)
    const problem = transform?.problem?.detail
    const counted = { since: clock(), counts: new Map(), dropped: 0, differences: [] }
    return { mappingId: id, hook, module, shadow, hash, problem, ...counted }
  }

  function warn(shadow: string, mappingId: string, problem: string): void {
    const text = `${toModuleLabel(shadow)}, the shadow of the mapping "${cut(toPrintableLine(mappingId), 100)}", does not run: ${problem} The live code is not affected.`
    if (logged.has(text)) return
    if (logged.size >= maxDifferences) logged.clear()
    logged.add(text)
    log.warn({}, text)
  }

  function note(delivery: Delivery, decision: Decision, generation: Generation): void {
    if (loaded === undefined || loaded.of !== generation || decision.mappingId === undefined) return
    const shadow = loaded.shadows.get(decision.mappingId)
    if (shadow === undefined || shadow.problem !== undefined) return
    // checked first, because under load most requests are dropped
    if (waiting.length >= maxWaiting) return drop(shadow)
    const bytes = delivery.body.bytes.byteLength + measureTexts(decision)
    if (waitingBytes + bytes > maxWaitingBytes) return drop(shadow)
    const before = toOutcome(decision, generation.config.hooks.onTransformError === 'reject')
    const reader = createReader(decision, { module: shadow.module, readState })
    waiting.push({ delivery, before, shadow, loaded, readState: reader, bytes })
    waitingBytes += bytes
    running ??= run().finally(() => (running = undefined))
  }

  function drop(shadow: Shadow): void {
    shadow.dropped += 1
    meter('shadow', { hook: shadow.hook, class: 'dropped' })
  }

  /** Runs the waiting requests, in batches with a pause between them. The first batch begins after the answers of this turn of the event loop. */
  async function run(): Promise<void> {
    while (waiting.length > 0 && !signal.aborted) {
      const pauseMs = Math.max(0, Math.ceil(pauseEndsAt - performance.now()))
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined)
      const batch = waiting.slice(0, batchSize)
      waiting = waiting.slice(batchSize)
      for (const { bytes } of batch) waitingBytes -= bytes
      const started = performance.now()
      await Promise.all(batch.map(runOne))
      const ended = performance.now()
      pauseEndsAt = ended + pauseFactor * (ended - started)
    }
  }

  async function runOne({ delivery, before, shadow, loaded: { generation }, readState: reader }: Waiting) {
    try {
      const first = await decideAgain(delivery, generation, reader)
      const isSame = listChanges(before, first).length === 0 && before.mappingId === first.mappingId
      // a value that differs between two runs of the same code, such as a time, does not count
      if (!isSame) await pauseBetweenRuns()
      const second = isSame ? first : await decideAgain(delivery, generation, reader)
      const compared = compare({ before, after: [first, second], recorded: undefined }, (id) => id)
      if (signal.aborted) return
      shadow.counts.set(compared.class, (shadow.counts.get(compared.class) ?? 0) + 1)
      meter('shadow', { hook: shadow.hook, class: compared.class })
      if (compared.class === 'same') return
      const path = compared.changes[0]?.path ?? 'decision'
      const receivedAt = new Date(delivery.receivedAt).toISOString()
      shadow.differences.push({ deliveryId: delivery.id, receivedAt, class: compared.class, path })
      if (shadow.differences.length > maxDifferences) shadow.differences.shift()
    } catch (error) {
      log.debug({ thrown: toErrorName(error) }, 'a shadow could not be compared')
    } finally {
      forgetPayload(delivery.body)
    }
  }

  async function decideAgain(delivery: Delivery, generation: Generation, reader: StateReader): Promise<Outcome> {
    const { config } = generation
    const hook = generation.findHook(delivery.path)
    const decision = await decide(delivery, { hook, newId, readState: reader })
    return toOutcome(decision, config.hooks.onTransformError === 'reject')
  }

  return {
    note,
    refresh: () =>
      inOrder(load).catch((error: unknown) =>
        log.warn({ thrown: toErrorName(error) }, 'the shadows of the transforms could not be loaded'),
      ),
    list: () => [...(loaded?.shadows.values() ?? [])].map(toFields),
    async waitUntilIdle() {
      await inOrder(() => {})
      await running
    },
    async stop() {
      stopping.abort()
      waiting = []
      await inOrder(load)
    },
  }
}

/** The mapping, with the shadow in place of its module. */
export function withShadow<One extends Pick<CompiledMapping['mapping'], 'transform'>>(mapping: One): One {
  const { transform } = mapping
  if (transform?.shadow === undefined) return mapping
  const { shadow: module, export: name } = transform
  return { ...mapping, transform: name === undefined ? { module } : { module, export: name } }
}

/**
 * Reads the state of the module. For a value that the live code changed, this is the value before the change. A value that the live code set
 * without reading it is unknown, so it counts as missing.
 */
function createReader(
  decision: Decision,
  { module, readState }: { readonly module: string; readonly readState: StateReader },
): StateReader {
  const changes = 'state' in decision ? (decision.state ?? []) : []
  return async ({ key }) => {
    const changed = changes.find((change) => change.key === key)
    if (changed === undefined) return readState({ module, key })
    return changed.read ?? { stored: undefined, json: undefined }
  }
}

function measureTexts(decision: Decision): number {
  if (decision.kind !== 'accept') return 0
  return decision.actions.reduce(
    (sum, { action }) => sum + ('text' in action ? action.text.length : action.message.length),
    0,
  )
}

function toFields({ mappingId, module, shadow, problem, since, counts, dropped, differences }: Shadow): ShadowFields {
  return {
    mappingId,
    module,
    shadow,
    problem: problem ?? null,
    since: new Date(since).toISOString(),
    runs: [...counts.values()].reduce((sum, count) => sum + count, 0),
    dropped,
    counts: Object.fromEntries(counts),
    differences: differences.toReversed(),
  }
}
