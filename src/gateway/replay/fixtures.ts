// Runs a fixture through the pipe, and compares the decision with the expected one.
import { readFile, stat } from 'node:fs/promises'
import { stringify } from '../../base/sent-json.ts'
import { cut } from '../../base/text.ts'
import { writeFileAtomic } from '../config/config-file.ts'
import { type Actual, type Fixture, type FixtureFile, updateFixture } from './fixture-files.ts'
import { AgentAction, DeliverAction, type PlannedAction, WakeAction } from '../../core/model/action.ts'
import type { Config } from '../../model/config/config.ts'
import type { Delivery } from '../../core/model/delivery.ts'
import { isSameJson, type JsonValue } from '../../base/json.ts'
import { Mapping } from '../../core/model/mapping.ts'
import { normalizeHookName } from '../../core/model/mapping-rules.ts'
import { type ProblemRecord, toProblemRecord } from '../../core/model/problem.ts'
import { type Transform, toTransformKey } from '../../core/model/transform.ts'
import type { DefinedVerifier } from '../../model/proof.ts'
import type { NamedMapping } from '../../core/mapping/compile.ts'
import type { Decision } from '../../core/mapping/decision.ts'
import { decide } from '../../core/mapping/pipeline.ts'
import type { Generation } from '../generation/generation.ts'
import { createGeneration } from '../generation/generation.ts'
import type { Hook } from '../../core/mapping/hook.ts'
import type { SenderTable } from '../proofs/senders.ts'
import type { StateReader } from '../../core/mapping/state.ts'
import { buildDelivery, toLocalHead } from '../../core/mapping/delivery.ts'

/** The parts of a generation that serves, or that may be the next one. */
export type GenerationParts = {
  readonly config: Config
  readonly mappings: readonly NamedMapping[]
  readonly transforms: ReadonlyMap<string, Transform>
  readonly senders: SenderTable
  /** The schemes in code that the mappings name. */
  readonly verifiers?: readonly DefinedVerifier[]
}

/** `diff`: a line for each field that differs: `path: expected …, got …`. `actual` is an argument of `updateFixture`. */
export type FixtureOutcome =
  | { readonly ok: true; readonly actual: Actual }
  | {
      readonly ok: false
      readonly diff: readonly string[]
      readonly actual: Actual | undefined
      /** The reason why the request was parked or refused, with the code frame if there is one. */
      readonly problem?: ProblemRecord | undefined
      /** The log lines of the transform. */
      readonly log?: readonly string[]
    }

/** The time of arrival of every fixture. */
const receivedAt = Date.UTC(2026, 0, 2, 3, 4, 5)
const idPrefix = 'fixture-'
const maxShownChars = 160

/**
 * Runs one fixture file of a module, with the same time of arrival and ids at each run. Only the mappings of the module are tried. If none of
 * them has the path of the fixture, their paths are ignored, because a copied fixture has the path of its original mapping. Never rejects.
 */
export async function runFixture(parts: GenerationParts, module: string, file: FixtureFile): Promise<FixtureOutcome> {
  if (file.kind === 'unusable') return { ok: false, diff: [`${file.name}: ${file.why}`], actual: undefined }
  let ids = 0
  try {
    const path = normalizeHookName(file.fixture.request.path)
    const hook = buildOwnGeneration(parts, module, path).findHook(path)
    const delivery = buildFixtureDelivery(file.fixture, path, { hook, prefix: parts.config.hooks.path })
    const newId = () => `${idPrefix}${++ids}`
    const decision = await decide(delivery, {
      hook,
      newId,
      readState: createReader(file.fixture),
    })
    const actual = readActual(decision)
    const diff = compareExpected(file.fixture.expect, actual, decision)
    return diff.length === 0
      ? { ok: true, actual }
      : { ok: false, diff, actual, problem: findProblem(decision), log: decision.log }
  } catch (error) {
    return { ok: false, diff: [error instanceof Error ? error.message : 'it cannot run'], actual: undefined }
  }
}

/** Writes the result of a fixture that fails as its new expectation. Resolves with the new text; undefined if nothing was written. */
export async function rewriteFixture(file: FixtureFile, outcome: FixtureOutcome): Promise<string | undefined> {
  if (file.kind === 'unusable' || outcome.ok || outcome.actual === undefined) return undefined
  // an exception is never written: as an expectation, it would never be noticed again
  if (outcome.actual.decision === 'park' && file.fixture.expect.decision !== 'park') return undefined
  const before = (await readFile(file.file, 'utf8')).replace(/^\uFEFF/, '')
  const text = updateFixture(before, outcome.actual)
  await writeFileAtomic(file.file, text, (await stat(file.file)).mode & 0o777)
  return text
}

function createReader({ state }: Fixture): StateReader | undefined {
  if (state === undefined) return undefined
  return async ({ key }) => ({
    stored: undefined,
    json: Object.hasOwn(state, key) ? stringify(state[key]) : undefined,
  })
}

/**
 * A generation with only the mappings of this module. If none of them has the path of the fixture, they lose their paths. A module without a
 * mapping gets one without conditions.
 */
function buildOwnGeneration({ mappings, ...parts }: GenerationParts, module: string, path: string): Generation {
  const own = mappings.filter(({ transform }) => transform?.module === module)
  const generation = createGeneration({ ...parts, mappings: own })
  if (own.length > 0 && generation.findHook(path).mappings.length > 0) return generation
  const bare = own.length > 0 ? own : [buildBareMapping(module, parts.transforms)]
  const anywhere = bare.map((mapping) => {
    const { path: _taken, ...match } = mapping.match
    return { ...mapping, match }
  })
  return createGeneration({ ...parts, mappings: anywhere })
}

function buildBareMapping(module: string, transforms: GenerationParts['transforms']): NamedMapping {
  const named = [...transforms].find(([, transform]) => transform.module === module)?.[0]
  const name = named === undefined || named === toTransformKey({ module }) ? undefined : named.slice(module.length + 1)
  const transform = name === undefined ? { module } : { module, export: name }
  return { ...Mapping.parse({ transform }), id: module }
}

/** Makes the delivery of a fixture, with every credential that its mappings may require: a fixture does not test the proof. */
function buildFixtureDelivery(
  { request }: Fixture,
  path: string,
  { hook, prefix }: { hook: Hook; prefix: string },
): Delivery {
  const { method, query, payload } = request
  // own properties only, as in an admitted request
  const headers: Record<string, string> = Object.create(null)
  for (const [name, value] of Object.entries(request.headers)) headers[name.toLowerCase()] = value
  // a fixture stores the payload as JSON, no matter which format the original request had
  if (!/json/i.test(headers['content-type'] ?? '')) headers['content-type'] = 'application/json'
  const verifiedBy = hook.signed[0]?.provenSender.source
  const head = toLocalHead(hook, { prefix, path, method, headers, query, verifiedBy })
  return buildDelivery(head, Buffer.from(stringify(payload)), { hook, id: `${idPrefix}delivery`, receivedAt })
}

function readActual(decision: Decision): Actual {
  switch (decision.kind) {
    case 'accept':
      return { decision: 'accept', actions: decision.actions.map(buildComparedFields), response: decision.response }
    case 'skip':
      return { decision: 'skip', actions: [] }
    case 'park':
      return { decision: 'park', actions: [], code: decision.problem.code }
    case 'refuse':
      return { decision: 'refusal', actions: [], code: decision.problem.code }
  }
}

const defaultsOf: Readonly<Record<PlannedAction['kind'], Readonly<Record<string, unknown>>>> = {
  agent: AgentAction.parse({ kind: 'agent', message: 'x' }),
  wake: WakeAction.parse({ kind: 'wake', text: 'x' }),
  deliver: DeliverAction.parse({ kind: 'deliver', message: 'x' }),
}

/** The fields of an action that a fixture lists: its kind and text, the session if one was chosen, and the fields that differ from the defaults. */
function buildComparedFields({ kind, action, sessionKey }: PlannedAction): Record<string, JsonValue> {
  const fields: Record<string, JsonValue> = { kind }
  if (kind === 'agent' && !sessionKey.startsWith(`hook:${idPrefix}`)) fields['sessionKey'] = sessionKey
  const defaults = defaultsOf[kind]
  for (const [field, value] of Object.entries(action)) {
    const isText = field === 'message' || field === 'text'
    if (field !== 'sessionKey' && value !== undefined && (isText || value !== defaults[field])) fields[field] = value
  }
  return fields
}

function findProblem(decision: Decision): ProblemRecord | undefined {
  return 'problem' in decision ? toProblemRecord(decision.problem) : undefined
}

function compareExpected(expected: Fixture['expect'], actual: Actual, decision: Decision): string[] {
  const why = 'problem' in decision ? ` (${decision.problem.message})` : ''
  if (expected.decision === undefined) {
    return [`expect.decision: expected a decision, got ${actual.decision}${why}. "hookloom test -u" writes the result.`]
  }
  if (expected.decision !== actual.decision) {
    return [`decision: expected ${expected.decision}, got ${actual.decision}${why}`]
  }
  if (expected.code !== undefined && expected.code !== actual.code) {
    return [`code: expected ${expected.code}, got ${actual.code ?? 'nothing'}${why}`]
  }
  const response = Object.entries(expected.response ?? {})
    .map(([field, value]) => ({
      field,
      value,
      got: Object.entries(actual.response ?? {}).find(([name]) => name === field)?.[1],
    }))
    .filter(({ value, got }) => value !== got)
    .map(({ field, value, got }) => describeDifference(`response.${field}`, value, got))
  const wanted = expected.actions
  if (wanted === undefined) return response
  if (wanted.length !== actual.actions.length) {
    return [`actions: expected ${wanted.length}, got ${actual.actions.length}`]
  }
  const planned = decision.kind === 'accept' ? decision.actions : []
  const actions = wanted.flatMap((action, index) => {
    const plan = planned[index]
    const full: Record<string, unknown> =
      plan === undefined ? {} : { ...plan.action, agentId: plan.agentId, sessionKey: plan.sessionKey }
    return Object.entries(action)
      .filter(([field, value]) => !isSameJson(full[field], value))
      .map(([field, value]) => describeDifference(`actions[${index}].${field}`, value, full[field]))
  })
  return [...actions, ...response]
}

/** A line about two values. Of long texts, it shows a part that begins shortly before the first difference. */
function describeDifference(path: string, expected: unknown, got: unknown): string {
  if (typeof expected !== 'string' || typeof got !== 'string') {
    return `${path}: expected ${formatShown(expected)}, got ${formatShown(got)}`
  }
  let same = 0
  while (same < expected.length && expected[same] === got[same]) same += 1
  const from = Math.max(expected.length, got.length) > maxShownChars ? Math.max(0, same - 20) : 0
  const start = from === 0 ? '' : ` from character ${from + 1}`
  return `${path}${start}: expected ${formatShown(expected.slice(from))}, got ${formatShown(got.slice(from))}`
}

function formatShown(value: unknown): string {
  const text = value === undefined ? 'nothing' : stringify(value)
  return cut(text, maxShownChars)
}
