// Tries an unsaved template and unsaved conditions with kept requests. Runs no transform, stores and sends nothing.
import type { Config } from '../../model/config/config.ts'
import type { SentValue } from '../../base/json.ts'
import { yieldToEventLoop } from '../../base/serial.ts'
import { cut } from '../../base/text.ts'
import { buildDelivery } from '../../core/mapping/delivery.ts'
import { toIsoTime } from '../deliveries/records.ts'
import type * as api from '../../model/api/bench.ts'
import { anyItem, formatPlaceholder, type PathStep } from '../../base/path-text.ts'
import { toConfigIssues } from '../config/issues.ts'
import { Mapping } from '../../core/model/mapping.ts'
import { readPayload } from '../../core/model/body.ts'
import { Problem } from '../../core/model/problem.ts'
import type { Generation } from '../generation/generation.ts'
import { createGeneration } from '../generation/generation.ts'
import { readPath } from '../../core/model/path.ts'
import { decide } from '../../core/mapping/pipeline.ts'
import type { KeptQuery } from '../../store/queries.ts'
import type { KeptDelivery } from '../../store/records.ts'
import { listReadPaths } from '../../core/mapping/template.ts'
import { findPath } from '../shapes/places.ts'
import { createShape, learn } from '../shapes/shape.ts'
import type { StoreReader } from '../../store/store.ts'
import { streamKeptPages } from './kept.ts'

/** `match`: the conditions, as in a mapping. */
export type Draft = { readonly template: string; readonly match: object }

/** The maximum length of a message in characters. */
const maxMessageChars = 2_000

const draftId = 'draft'

/**
 * Tries the draft, with the newest request first. The draft is tried alone: neither the order of the mappings nor a signature counts. Throws
 * `usage-invalid` if the draft is invalid.
 */
export async function tryDraft(
  draft: Draft,
  { edited, store, query, newId }: DraftParts & { readonly query: KeptQuery },
): Promise<api.TriedDraft> {
  const generation = createDraftGeneration(edited, draft)
  const tried: api.TriedDraft['tried'][number][] = []
  const paths = listPayloadPaths(draft.template)
  const empty = new Map<string, { count: number; near: string | null }>()
  for await (const page of streamKeptPages(store, query)) {
    for (const kept of page) {
      await yieldToEventLoop()
      const one = await tryKept(generation, kept, newId)
      tried.push({ ...one.fields, provenBy: findProven(edited, kept) })
      for (const { path, steps } of one.fields.matches ? paths : []) {
        const found = one.payload === undefined ? undefined : readPath(one.payload, steps)
        if (found !== undefined && found !== null && found !== '') continue
        const { count, near } = empty.get(path) ?? { count: 0, near: null }
        empty.set(path, { count: count + 1, near: near ?? findNearPath(one.payload, steps) })
      }
    }
  }
  return { tried, empty: [...empty].map(([path, found]) => ({ path, ...found })) }
}

export type DraftParts = {
  /** The generation of the files on disk. */
  readonly edited: Generation
  readonly store: Pick<StoreReader, 'keptDeliveries'>
  readonly newId: () => string
}

function createDraftGeneration(
  { config, env, senders, verifiers }: Generation,
  { template, match }: Draft,
): Generation {
  const mappings = [{ ...parseDraft({ match, accept: ['text', 'xml'], messageTemplate: template }), id: draftId }]
  return createGenerationWithDraft({ config, env, mappings, transforms: new Map(), senders, verifiers })
}

/** The mapping of a draft. Throws `usage-invalid`. */
export function parseDraft(fields: unknown): Mapping {
  const parsed = Mapping.safeParse(fields)
  if (parsed.success) return parsed.data
  // as the configuration reports it, but by the place in the mapping
  const [found] = parsed.error.issues.flatMap((issue) =>
    toConfigIssues({ ...issue, path: ['hooks', 'mappings', 0, ...issue.path] }, { hooks: { mappings: [fields] } }),
  )
  const text = found?.text.replace(/^hooks\.mappings\[0\]\.?/, '') ?? 'it is no mapping'
  throw new Problem('usage-invalid', `The draft: ${text}${/[.?]$/.test(text) ? '' : '.'}`)
}

/** Builds the generation with the draft. A `config-invalid` becomes `usage-invalid`: all other parts were loaded before, so the draft is invalid. */
export function createGenerationWithDraft(parts: Parameters<typeof createGeneration<Config>>[0]): Generation {
  try {
    return createGeneration(parts)
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== 'config-invalid') throw error
    throw new Problem('usage-invalid', error.message.replace(/^Mapping ".*?"/, 'The draft'), { cause: error })
  }
}

type Tried = {
  readonly fields: Omit<api.TriedDraft['tried'][number], 'provenBy'>
  /** Undefined if the draft could not be tried with the request. */
  readonly payload: SentValue | undefined
}

async function tryKept(generation: Generation, kept: KeptDelivery, newId: () => string): Promise<Tried> {
  const { deliveryId, receivedAt, hook, source = null, event = null, mappingId: takenBy = null } = kept
  const head = { deliveryId, receivedAt: toIsoTime(receivedAt), hook, source, event, takenBy }
  const nothing = { ...head, matches: false, message: null, problem: null }
  try {
    const found = await decideKept(generation, kept, newId)
    if (typeof found === 'string') return { fields: { ...nothing, why: found }, payload: undefined }
    const { decision, payload } = found
    const why = decision.trace.find(({ mappingId }) => mappingId === draftId)?.why ?? ''
    if (decision.kind === 'skip') return { fields: { ...nothing, why }, payload }
    if (decision.kind !== 'accept') {
      return { fields: { ...nothing, matches: true, why, problem: decision.problem.message }, payload }
    }
    const [planned] = decision.actions
    const message = planned?.kind === 'agent' ? cut(planned.action.message, maxMessageChars) : null
    return { fields: { ...nothing, matches: true, why, message }, payload }
  } catch (error) {
    const problem = error instanceof Problem ? error.message : 'The request could not be tried.'
    return { fields: { ...nothing, why: '', problem }, payload: undefined }
  }
}

/** The decision and the payload, or the reason why the draft cannot be tried with this request. */
async function decideKept(
  generation: Generation,
  { deliveryId: id, receivedAt, request }: KeptDelivery,
  newId: () => string,
) {
  if (request === undefined) return 'The request is too large to be kept.'
  const { head, body } = request
  const hook = generation.findHook(head.path)
  if (hook.kind === 'built-in') return 'No mapping takes the requests of a built-in hook.'
  if (hook.kind === 'unknown') return 'The draft has another path.'
  const admitted = { token: true, signedFor: [] }
  const delivery = buildDelivery({ ...head, admitted }, body, { hook, id, receivedAt })
  const decision = await decide(delivery, { hook, newId })
  return { decision, payload: readPayload(delivery.body) }
}

/** The mapping on disk whose proof the request has. The recorded id is not used: it may be a position, which another mapping has now. */
function findProven({ mappings }: Generation, { request }: KeptDelivery): string | null {
  const proofs = request?.head.admitted.signedFor ?? []
  const found = mappings.find(
    ({ verifier, identity }) => verifier && proofs.some((proof) => identity.isOpenedBy(proof)),
  )
  return found?.id ?? null
}

/** The paths of the payload that the placeholders of a valid template read, each once. */
function listPayloadPaths(template: string): { path: string; steps: readonly PathStep[] }[] {
  const paths = new Map(listReadPaths(template).map(({ text, path }) => [text, path]))
  return [...paths].map(([path, steps]) => ({ path, steps }))
}

/** The similar path that the payload has; null if there is none. */
function findNearPath(payload: SentValue | undefined, steps: readonly PathStep[]): string | null {
  if (payload === undefined) return null
  const shape = createShape()
  learn(shape, payload, 0)
  const found = findPath(shape, steps)
  const near = found.has === 'no' ? found.near : undefined
  return near === undefined ? null : formatPlaceholder(near.map((step) => (step === anyItem ? 0 : step)))
}
