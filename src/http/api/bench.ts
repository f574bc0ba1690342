// Routes of the admin API for the hooks and their bench, which tries a typed request, sends it, or makes a fixture or a transform of it.
import { join } from 'node:path'
import type Router from '@koa/router'
import type { Context } from 'koa'
import { z } from 'zod'
import { tryParseJson } from '../../base/json.ts'
import type {
  HookCounts,
  HookFields,
  HooksFields,
  SampleFields,
  MadeTransformFields,
  SavedMappingFields,
  TriedDraft,
  TriedFields,
  TypedRequest,
} from '../../model/api/bench.ts'
import { normalizeHookName } from '../../model/config/mapping-rules.ts'
import { Problem } from '../../model/problem.ts'
import type { CompiledMapping } from '../../pipeline/compile.ts'
import type { Hook } from '../../pipeline/hook.ts'
import { toIsoTime } from '../../deliveries/records.ts'
import { resolveTransformsRoot } from '../../transforms/root.ts'
import type { CapturedFields, ShadowFields } from '../../model/api/replay.ts'
import type { LearntPaths, ShapeFields } from '../../model/api/shapes.ts'
import type { AdminReplayer } from './replays.ts'
import { maxReplays } from '../../model/replay.ts'
import type { KeptQuery } from '../../store/queries.ts'
import type { HandshakeSecrets } from '../handshake-secrets.ts'
import { type Case, readCases } from './attention.ts'
import type { ApiParts } from './parts.ts'
import { countMostBytes, readParameter, readRequestText } from './query.ts'
import type { Guards } from '../operator.ts'
import { answerJson } from './answer.ts'
import { send } from './send.ts'

type Draft = { readonly mappingId?: string | undefined; readonly template: string }
export type AdminBench = {
  try(request: TypedRequest, draft: Draft | undefined, isWanted: () => boolean): Promise<TriedFields>
  /** Tries a draft with kept requests; see `tryDraft` of `replay/`. */
  tryKept(draft: { readonly template: string; readonly match: object }, query: KeptQuery): Promise<TriedDraft>
  checkDraft(hook: string, draft: Draft): void
  samples(hook: string): Promise<SampleFields[]>
  /** Paths in templates and conditions that no known request has; see `path-warnings.ts` of `replay/`. */
  pathWarnings(): Promise<readonly { readonly mappingId: string; readonly text: string }[]>
  /** `hook`: undefined for all. `since`: milliseconds since the epoch; undefined for all changes. */
  shapes(query: { readonly hook: string | undefined; readonly since: number | undefined }): AsyncIterable<ShapeFields>
  paths(query: { readonly hook: string; readonly mappingId: string | undefined }): Promise<LearntPaths>
  /** Writes a fixture; see `capture` of the replayer. */
  capture(
    request: TypedRequest,
    options: { name?: string | undefined; module?: string | undefined },
  ): Promise<CapturedFields>
  /** Undefined if the page may not change the configuration. */
  readonly saveTemplate: ((template: Draft & { readonly hook: string }) => Promise<SavedMappingFields>) | undefined
  /** Undefined except in `hookloom dev`. */
  readonly makeTransform: ((request: TypedRequest) => Promise<MadeTransformFields>) | undefined
}

type BenchParts = Pick<ApiParts, 'generation' | 'store' | 'refusals' | 'clock' | 'hooksUrl' | 'dir'> & {
  readonly bench: AdminBench
  readonly replayer: Pick<AdminReplayer, 'shadows'>
  readonly handed: Pick<HandshakeSecrets, 'find'>
  readonly hookCounts: (name: string) => HookCounts
}

const maxTemplateChars = 100_000
const texts = z.record(z.string().max(200), z.string().max(20_000))
export const TypedBody = z.strictObject({
  hook: z.string().min(1).max(512),
  headers: texts.default({}),
  query: texts.default({}),
  body: z.string(),
})
const DraftFields = z.strictObject({
  mappingId: z.string().max(500).optional(),
  template: z.string().min(1).max(maxTemplateChars),
})
const TryBody = TypedBody.extend({ draft: DraftFields.optional() })
const KeptDraft = z.strictObject({
  template: z.string().min(1).max(maxTemplateChars),
  match: z.record(z.string(), z.unknown()).default({}),
})
export const TryKeptBody = z.strictObject({
  last: z.number().int().min(1).max(maxReplays),
  hook: z.string().max(512).optional(),
  source: z.string().max(512).optional(),
  draft: KeptDraft,
})
/** With `last`, a draft is tried with kept requests. */
export const AnyTryBody = z.union([TryKeptBody, TryBody])
export const FixtureBody = TypedBody.extend({
  name: z.string().max(200).optional(),
  module: z.string().max(500).optional(),
})
export const TemplateBody = DraftFields.extend({ hook: z.string().min(1).max(512) })

export function addBenchRoutes(router: Router, guards: Guards, parts: BenchParts): void {
  const { bench } = parts
  router.get('/api/hooks', guards.read, async (ctx) => answerJson(ctx, await readHooks(parts)))
  router.get('/api/samples', guards.read, async (ctx) => {
    const hook = readParameter(ctx, 'hook')
    if (hook === undefined) throw new Problem('usage-invalid', 'hook must be the name of a hook.')
    answerJson(ctx, { samples: await bench.samples(hook) })
  })
  router.post('/api/try', guards.operate, async (ctx) => {
    const body = await readBody(parts, ctx, AnyTryBody)
    if ('last' in body) {
      const { draft, last: limit, ...filter } = body
      return answerJson(ctx, await bench.tryKept(draft, { ...filter, limit }))
    }
    const { draft, ...request } = body
    const isConnected = () => !ctx.res.destroyed
    answerJson(ctx, await bench.try(request, draft, isConnected))
  })
  router.post('/api/send', guards.admin, async (ctx) =>
    answerJson(ctx, await send(parts, await readBody(parts, ctx, TypedBody))),
  )
  router.post('/api/fixtures', guards.admin, async (ctx) => {
    const { name, module, ...request } = await readBody(parts, ctx, FixtureBody)
    const { file, module: made, removed, decision, note } = await bench.capture(request, { name, module })
    answerJson(ctx, { file, module: made, removed, decision, note })
  })
  router.post('/api/mappings', guards.admin, async (ctx) => {
    const template = await readBody(parts, ctx, TemplateBody)
    if (bench.saveTemplate === undefined) {
      throw new Problem('conflict', 'Only a gateway of "hookloom dev" changes its configuration. Copy the mapping.')
    }
    bench.checkDraft(template.hook, template)
    answerJson(ctx, await bench.saveTemplate(template))
  })
  router.post('/api/transforms', guards.admin, async (ctx) => {
    const request = await readBody(parts, ctx, TypedBody)
    if (bench.makeTransform === undefined) {
      throw new Problem('conflict', 'Only a gateway of "hookloom dev" makes transforms. Use "hookloom new".')
    }
    answerJson(ctx, await bench.makeTransform(request))
  })
}

/** Throws `usage-invalid` and `body-too-large`. */
async function readBody<T>({ generation }: BenchParts, ctx: Context, schema: z.ZodType<T>): Promise<T> {
  const { server } = generation().config
  const text = await readRequestText(ctx, countMostBytes(server))
  if (text === undefined)
    throw new Problem('body-too-large', `The request is over server.maxBodyBytes (${server.maxBodyBytes}).`)
  const parsed = schema.safeParse(tryParseJson(text))
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const wrong = issue?.code === 'invalid_union' ? issue.errors.at(-1)?.[0] : issue
  const where = wrong?.path.join('.') ?? ''
  throw new Problem(
    'usage-invalid',
    `The body must be {"hook": "<name>", "headers": {}, "query": {}, "body": "<text>"}. Wrong: ${where === '' ? 'its form' : where}.`,
  )
}

async function readHooks(parts: BenchParts): Promise<HooksFields> {
  const { generation, bench, hooksUrl, hookCounts } = parts
  const current = generation()
  const cases = (await readCases(parts)).toSorted((one, other) => other.at - one.at)
  const paths = [...new Set(current.mappings.flatMap(({ match }) => normalizeHookName(match.path ?? '') || []))]
  const nameless = current.mappings.filter(({ match }) => normalizeHookName(match.path ?? '') === '')
  const root = await resolveTransformsRoot({ configDir: parts.dir, transformsDir: current.config.hooks.transformsDir })
  const own = new Set(current.mappings.slice(0, current.config.hooks.mappings.length))
  const warned = await bench.pathWarnings()
  const shadows = parts.replayer.shadows()
  const toMapping = (mapping: CompiledMapping) => {
    const warnings = warned.flatMap(({ mappingId, text }) => (mappingId === mapping.id ? text : []))
    return toMappingFields(mapping, {
      root,
      isEditable: bench.saveTemplate !== undefined && own.has(mapping),
      warnings,
      shadow: shadows.find(({ mappingId }) => mappingId === mapping.id),
    })
  }
  const toHook = (name: string, hook: Hook): HookFields => ({
    name,
    isBuiltIn: hook.kind === 'built-in',
    proof: readProof(hook.kind === 'built-in' ? undefined : hook.mappings),
    mappings: hook.mappings.map(toMapping),
    lastHour: hookCounts(name),
    lastFailure: toFailure(cases.find((one) => one.hook === name)),
  })
  const anywhere: HookFields = {
    name: null,
    isBuiltIn: false,
    proof: readProof(nameless),
    mappings: nameless.map(toMapping),
    lastHour: hookCounts('*'),
    lastFailure: null,
  }
  const hooks = [...paths, 'agent', 'wake'].map((path) => toHook(path, current.findHook(path)))
  return {
    hooksUrl: hooksUrl() ?? null,
    canEdit: bench.saveTemplate !== undefined,
    hooks: nameless.length === 0 ? hooks : [...hooks, anywhere],
  }
}

/** `mappings`: undefined for a built-in hook, which the token opens. */
function readProof(mappings: readonly CompiledMapping[] | undefined): HookFields['proof'] {
  if (mappings === undefined) return { token: true, schemes: [] }
  const schemes = mappings.flatMap(({ verifier }) => (verifier === undefined ? [] : verifier.scheme))
  return { token: mappings.some(({ verifier }) => verifier === undefined), schemes: [...new Set(schemes)] }
}

function toFailure(found: Case | undefined): HookFields['lastFailure'] {
  return found === undefined ? null : { kind: found.kind, id: found.id, at: toIsoTime(found.at), title: found.title }
}

function toMappingFields(
  { id, match, mapping, transform, verifier }: CompiledMapping,
  given: { root: string; isEditable: boolean; warnings: readonly string[]; shadow: ShadowFields | undefined },
): HookFields['mappings'][number] {
  const { root, isEditable, warnings, shadow } = given
  const { path: _, headers, ...others } = match
  // a header may contain a shared secret
  const masked = headers && Object.fromEntries(Object.keys(headers).map((name) => [name, '…']))
  const conditions = masked === undefined ? others : { headers: masked, ...others }
  const { action, messageTemplate, textTemplate, transform: ref } = mapping
  return {
    id,
    action,
    conditions: Object.keys(conditions).length === 0 ? null : JSON.stringify(conditions),
    scheme: verifier?.scheme ?? null,
    template: (action === 'wake' ? textTemplate : messageTemplate) ?? null,
    transform:
      ref === undefined
        ? null
        : {
            module: ref.module,
            file: join(root, ref.module),
            problem: transform?.problem?.detail ?? null,
            shadow: shadow === undefined ? null : describeShadow(shadow),
          },
    isEditable: isEditable && ref === undefined,
    warnings,
  }
}

function describeShadow({ shadow, problem, runs, counts }: ShadowFields): string {
  if (problem !== null) return `${shadow} does not run: ${problem}`
  return `${shadow} differs in ${runs - (counts.same ?? 0)} of ${runs} requests`
}
