// Runs kept requests through two versions of the code and compares the outcomes. Stores and sends nothing.
import type { KeptQuery } from '../../store/queries.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { isJsonObject, tryParseJson } from '../../base/json.ts'
import { yieldToEventLoop } from '../../base/serial.ts'
import { within } from '../../base/time.ts'
import { Problem } from '../../core/model/problem.ts'
import { Action, type PlannedAction } from '../../core/model/action.ts'
import { JobKeys } from '../../core/model/job-keys.ts'
import { type Transform, toTransformKey } from '../../core/model/transform.ts'
import { type OutcomeComparison, compare, matchIds } from './comparison.ts'
import type { Generation } from '../generation/generation.ts'
import { createGeneration } from '../generation/generation.ts'
import { isHookOpen } from '../../core/mapping/hook.ts'
import { streamKeptPages } from './kept.ts'
import { type Outcome, toComparedAction, toOutcome, toRefusedOutcome } from './outcome.ts'
import { decide } from '../../core/mapping/pipeline.ts'
import { checkBody, buildDelivery } from '../../core/mapping/delivery.ts'
import type { KeptDelivery, KeptRequest, StoredAnswer } from '../../store/records.ts'
import type { RecordedDelivery } from './recording.ts'

/** A kept delivery and the result of its comparison. */
export type ReplayedDelivery = OutcomeComparison &
  Pick<KeptDelivery, 'deliveryId' | 'receivedAt' | 'hook' | 'source' | 'event' | 'mappingId'> & {
    readonly before: Outcome
    readonly after: Outcome
    readonly recorded: Outcome | undefined
  }

export type Replay = {
  readonly deliveries: readonly ReplayedDelivery[]
  /** Ids of deliveries whose requests were too large to keep. */
  readonly tooLarge: readonly string[]
  /** The number of deliveries that the time limit left out. */
  readonly notRun: number
  /** The modules that do not load, one for each delivery that the edit would therefore park. Such a delivery is not compared. */
  readonly notLoaded: readonly string[]
}

export const emptyReplay: Replay = { deliveries: [], tooLarge: [], notRun: 0, notLoaded: [] }

type ReplayInput = {
  readonly store: { keptDeliveries(query: KeptQuery): Promise<readonly Replayable[]> }
  readonly query: KeptQuery
  /** Runs the live code on a page of deliveries. If it is undefined, the recorded outcomes are compared instead. */
  readonly before: ((page: readonly Replayable[]) => Promise<ReadonlyMap<string, Outcome>>) | undefined
  readonly after: Generation
  /** Returns the id after the edit for the id of a mapping in `before`. */
  readonly findAfterId?: ((id: string) => string) | undefined
  readonly newId: () => string
  readonly limitMs: number
  /** Returns false if the client has left: what is not run yet is left out. */
  readonly isWanted?: (() => boolean) | undefined
}

/** A kept delivery, or a request of a recording, which has no record of its outcome. */
type Replayable = KeptDelivery | RecordedDelivery

/** The pause between two runs of an edit if the live code does not run between them, so that clocks differ. */
const pauseMs = 3

export const pauseBetweenRuns = (): Promise<void> => sleep(pauseMs)

/** Runs the replay. Never changes the store. Throws `store-unavailable`. */
export async function replay(input: ReplayInput): Promise<Replay> {
  const { store, query, limitMs, isWanted = () => true } = input
  const until = performance.now() + limitMs
  const deliveries: ReplayedDelivery[] = []
  const notLoaded: string[] = []
  const tooLarge: string[] = []
  let notRun = 0
  for await (const page of streamKeptPages(store, query)) {
    tooLarge.push(...page.flatMap(({ deliveryId, request }) => (request === undefined ? deliveryId : [])))
    const runnable = page.filter(({ request }) => request !== undefined)
    const leftMs = isWanted() ? until - performance.now() : 0
    const done = leftMs <= 0 ? undefined : await within(leftMs, replayPage(runnable, input))
    if (done === undefined) notRun += runnable.length
    for (const one of done ?? []) {
      const module = one.class === 'same' ? undefined : findUnloaded(input.after, one.after)
      if (module === undefined) deliveries.push(one)
      else notLoaded.push(module)
    }
  }
  return { deliveries, tooLarge, notRun, notLoaded }
}

/**
 * Replays a page: runs the edit before and after the live code. If both runs of the edit agree, the clock had no influence, so a difference
 * from the live code comes from the edit.
 */
async function replayPage(page: readonly Replayable[], input: ReplayInput): Promise<ReplayedDelivery[]> {
  const { after: edited, newId, isWanted, findAfterId = (id) => id } = input
  const first = await runAll(edited, page, { newId, isWanted })
  if (input.before === undefined) await pauseBetweenRuns()
  const live = await input.before?.(page)
  const second = await runAll(edited, page, { newId, isWanted })
  return page.flatMap((kept) => {
    const { deliveryId, receivedAt, hook, source, event } = kept
    const { mappingId = undefined } = 'state' in kept ? kept : {}
    const recorded = 'state' in kept ? readRecorded(kept) : undefined
    const before = live === undefined ? recorded : live.get(deliveryId)
    const [one, other] = [first.get(deliveryId), second.get(deliveryId)]
    if (before === undefined || one === undefined || other === undefined) return []
    const outcomes = { before, after: [one, other] as const, recorded: live === undefined ? undefined : recorded }
    const compared = compare(outcomes, findAfterId)
    return [{ ...compared, deliveryId, receivedAt, hook, source, event, mappingId, before, after: one, recorded }]
  })
}

/** The module that caused this failed outcome, if it does not load. */
function findUnloaded({ mappings, transforms }: Generation, { mappingId, problem }: Outcome): string | undefined {
  const ref = mappings.find(({ id }) => id === mappingId)?.mapping.transform
  const transform = ref && transforms.get(toTransformKey(ref))
  return transform?.problem !== undefined && transform.problem.detail === problem?.detail ? transform.module : undefined
}

type Runs = { readonly newId: () => string; readonly isWanted?: (() => boolean) | undefined }

/** The outcomes of kept deliveries in a generation, by delivery id. */
export async function runAll(
  generation: Generation,
  page: readonly Pick<KeptDelivery, 'deliveryId' | 'receivedAt' | 'request'>[],
  runs: Runs,
): Promise<Map<string, Outcome>> {
  const run = async ({ deliveryId, receivedAt, request }: (typeof page)[number]) => {
    // a mapping without code never waits, so without this pause a page of requests would block those that the gateway serves
    await yieldToEventLoop()
    if (request === undefined || runs.isWanted?.() === false) return undefined
    return [deliveryId, await runKept(generation, { deliveryId, receivedAt, request }, runs)] as const
  }
  return new Map((await Promise.all(page.map(run))).flatMap((one) => (one === undefined ? [] : [one])))
}

type Kept = Pick<KeptDelivery, 'deliveryId' | 'receivedAt'> & { readonly request: KeptRequest }

/**
 * The outcome that the gateway would give the request. Credentials are not checked again: the original proof still counts. Never rejects.
 */
async function runKept(generation: Generation, kept: Kept, { newId }: Runs): Promise<Outcome> {
  const { deliveryId: id, receivedAt, request } = kept
  const { config } = generation
  const { head, body } = request
  try {
    const hook = generation.findHook(head.path)
    if (!config.hooks.enabled) throw new Problem('hook-unknown', 'hooks.enabled is false.')
    if (hook.kind === 'unknown') throw new Problem('hook-unknown', 'No mapping has this hook.')
    if (!isHookOpen(hook, head.admitted)) {
      throw new Problem('unauthorized', 'No mapping of this hook takes the proof that let this request in.')
    }
    if (body.byteLength > hook.maxBodyBytes) throw new Problem('body-too-large', 'The body is over the limit.')
    const delivery = buildDelivery(head, body, { hook, id, receivedAt })
    const decision = await decide(delivery, { hook, newId })
    if (decision.kind !== 'accept') checkBody(delivery)
    return toOutcome(decision, config.hooks.onTransformError === 'reject')
  } catch (error) {
    const problem =
      error instanceof Problem ? error : new Problem('internal-error', 'The replay of this request failed.')
    return toRefusedOutcome(problem)
  }
}

/** The recorded outcome of a delivery; undefined unless it is accepted, skipped or parked. */
export function readRecorded({
  state,
  mappingId,
  problem,
  jobs,
  answer,
}: Pick<KeptDelivery, 'state' | 'mappingId' | 'problem' | 'answer'> & {
  readonly jobs: readonly Pick<KeptDelivery['jobs'][number], 'planned'>[]
}): Outcome | undefined {
  const nothing = { mappingId, actions: [], hasFlows: false, response: undefined, problem: undefined, why: undefined }
  if (state === 'skipped') return { ...nothing, decision: 'skip' }
  if (state === 'parked')
    return { ...nothing, decision: 'park', problem: problem && { code: problem.code, detail: problem.detail } }
  if (state !== 'accepted') return undefined
  const planned = jobs.flatMap((job): PlannedAction[] => ('action' in job.planned ? [job.planned] : []))
  const actions = planned.map((each) => toComparedAction(fillDefaults(each)))
  return { ...nothing, decision: 'accept', actions, response: readResponse(answer) }
}

/** A plan of an earlier version lacks the keys that are newer. Their defaults are what that version did. */
function fillDefaults(planned: PlannedAction): PlannedAction {
  const { success, data } = Action.safeParse(planned.action)
  const keys = JobKeys.safeParse(planned)
  // as: the action keeps its kind, so it still belongs to the plan
  return { ...(keys.success ? keys.data : {}), ...planned, action: success ? data : planned.action } as PlannedAction
}

function readResponse({ status, body, contentType }: StoredAnswer): Outcome['response'] {
  if (contentType !== undefined) return { status, contentType, body }
  const receipt = tryParseJson(body)
  // the sender was answered while the delivery was pending or parked
  return isJsonObject(receipt) && receipt['status'] !== undefined ? 'unknown' : undefined
}

/** The same generation with other transforms. */
export function withTransforms(generation: Generation, transforms: ReadonlyMap<string, Transform>): Generation {
  const { config, env, senders, verifiers } = generation
  return createGeneration({
    config,
    env,
    mappings: generation.mappings.map(({ mapping }) => mapping),
    transforms,
    senders,
    verifiers,
  })
}

/** Matches the ids of the mappings of two generations; see `matchIds`. */
export function matchMappings(before: Generation, after: Generation): (id: string) => string {
  const [old, now] = [before, after].map(({ mappings }) => mappings.map(({ mapping }) => mapping))
  return matchIds(old ?? [], now ?? [])
}
