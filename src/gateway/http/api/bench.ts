// Routes of the admin API for the hooks and their bench, which tries a typed request, sends it, or makes a fixture or a transform of it.
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import type { HookFields, HooksFields } from '../../../model/api/bench.ts'
import { normalizeHookName } from '../../../core/model/mapping-rules.ts'
import { Problem } from '../../../core/model/problem.ts'
import type { CompiledMapping } from '../../../core/mapping/compile.ts'
import type { Hook } from '../../../core/mapping/hook.ts'
import { toIsoTime } from '../../deliveries/records.ts'
import { toSenderList } from '../../deliveries/senders/list.ts'
import { readRecords } from '../../deliveries/senders/record.ts'
import { resolveTransformsRoot } from '../../../core/transforms/root.ts'
import type { ShadowFields } from '../../../model/api/replay.ts'
import { type Case, readCases } from './attention.ts'
import { toMapFields, toRoute } from './hook-map.ts'
import type { ApiParts } from './parts.ts'
import type { Handlers } from './handlers.ts'
import type { OperatorCheck } from '../operator.ts'
import { readParameter } from './query.ts'
import { send } from './send.ts'

type BenchParts = Pick<
  ApiParts,
  | 'generation'
  | 'store'
  | 'refusals'
  | 'clock'
  | 'hooksUrl'
  | 'dir'
  | 'bench'
  | 'replayer'
  | 'handed'
  | 'lastHour'
  | 'hour'
  | 'day'
>

export function handleBench({
  operators,
  ...parts
}: BenchParts & { readonly operators: Pick<OperatorCheck, 'require'> }) {
  const { bench } = parts
  /** Only an operator who may change everything runs code of his own. */
  const requireRight = (req: IncomingMessage, draft: { readonly code?: object | undefined } = {}) =>
    draft.code === undefined ? undefined : operators.require(req, 'admin')
  return {
    'GET /api/hooks': () => readHooks(parts),
    'GET /api/samples': async ({ query }) => {
      const hook = readParameter(query, 'hook')
      if (hook === undefined) throw new Problem('usage-invalid', 'hook must be the name of a hook.')
      const [samples, code] = await Promise.all([bench.samples(hook), bench.code(hook)])
      return { samples, code }
    },
    'POST /api/try': async ({ body, ctx }) => {
      const asked = await body()
      if ('last' in asked) {
        const { draft, last: limit, ...filter } = asked
        return bench.tryKept(draft, { ...filter, limit })
      }
      const { draft, ...request } = asked
      requireRight(ctx.req, draft)
      return bench.try(request, draft, () => !ctx.res.destroyed)
    },
    'POST /api/try/kept': async ({ body, ctx }) => {
      const { hook, last: limit, ...draft } = await body()
      requireRight(ctx.req, draft)
      return bench.compareDraft(draft, { hook, limit }, () => !ctx.res.destroyed)
    },
    'POST /api/send': async ({ body }) => send(parts, await body()),
    'POST /api/fixtures': async ({ body }) => {
      const { name, module, ...request } = await body()
      const { deliveryId: _, ...made } = await bench.capture(request, { name, module })
      return made
    },
    'POST /api/mappings': async ({ body }) => {
      const template = await body()
      if (bench.saveTemplate === undefined) {
        throw new Problem('conflict', 'Only a gateway of "hookloom dev" changes its configuration. Copy the mapping.')
      }
      bench.checkDraft(template.hook, template)
      return bench.saveTemplate(template)
    },
    'POST /api/transforms': async ({ body }) => {
      const request = await body()
      if (bench.makeTransform === undefined) {
        throw new Problem('conflict', 'Only a gateway of "hookloom dev" makes transforms. Use "hookloom new".')
      }
      return bench.makeTransform(request)
    },
  } satisfies Partial<Handlers>
}

async function readHooks(parts: BenchParts): Promise<HooksFields> {
  const { generation, bench, hooksUrl, lastHour, hour, day, store, clock } = parts
  const current = generation()
  const records = await readRecords(store)
  const cases = (await readCases(parts, records)).toSorted((one, other) => other.at - one.at)
  const counted = await hour()
  const paths = [...new Set(current.mappings.flatMap(({ match }) => normalizeHookName(match.path ?? '') || []))]
  const nameless = current.mappings.filter(({ match }) => normalizeHookName(match.path ?? '') === '')
  const root = await resolveTransformsRoot(parts.dir, current.config.hooks)
  const own = new Set(current.mappings.slice(0, current.config.hooks.mappings.length))
  const warned = await bench.pathWarnings()
  const shadows = parts.replayer.shadows()
  const senders = toSenderList(records, current.senders)
  const toMapping = (mapping: CompiledMapping) => {
    const warnings = warned.flatMap(({ mappingId, text }) => (mappingId === mapping.id ? text : []))
    const fields = toMappingFields(mapping, {
      root,
      isEditable: bench.saveTemplate !== undefined && own.has(mapping),
      warnings,
      shadow: shadows.find(({ mappingId }) => mappingId === mapping.id),
    })
    return { ...fields, ...toRoute(mapping, current.config) }
  }
  const names = new Set([...paths, 'agent', 'wake'])
  const facts = { now: clock(), day: await day(), cases, senders, names }
  const toHook = (name: string, hook: Hook): HookFields => ({
    name,
    isBuiltIn: hook.kind === 'built-in',
    proof: readProof(hook.kind === 'built-in' ? undefined : hook.mappings),
    mappings: hook.mappings.map(toMapping),
    lastHour: lastHour.hookCounts(name, counted, names),
    lastFailure: toFailure(cases.find((one) => one.hook === name)),
    ...toMapFields(name, facts),
  })
  const anywhere: HookFields = {
    name: null,
    isBuiltIn: false,
    proof: readProof(nameless),
    mappings: nameless.map(toMapping),
    lastHour: lastHour.hookCounts(undefined, counted, names),
    lastFailure: null,
    ...toMapFields(undefined, facts),
  }
  const hooks = [...names].map((path) => toHook(path, current.findHook(path)))
  return {
    hooksUrl: hooksUrl() ?? null,
    dir: parts.dir,
    canEdit: bench.saveTemplate !== undefined,
    countedSince: { deliveries: toIsoTime(counted.since), others: toIsoTime(lastHour.since()) },
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
  return found === undefined
    ? null
    : { kind: found.kind, id: found.ids[0] ?? '', at: toIsoTime(found.at), title: found.title }
}

function toMappingFields(
  { id, match, mapping, transform, verifier }: CompiledMapping,
  given: { root: string; isEditable: boolean; warnings: readonly string[]; shadow: ShadowFields | undefined },
): Omit<HookFields['mappings'][number], 'agentId' | 'model' | 'to'> {
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
