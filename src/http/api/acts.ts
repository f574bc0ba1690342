// The acts of the admin API: how the audit log names each call that changes something, and what its entries show of the request.
import { hash } from 'node:crypto'
import type { Context, Next } from 'koa'
import { isJsonObject, type JsonValue, tryParseJson } from '../../base/json.ts'
import type { Generation } from '../../pipeline/generation.ts'
import type { NewAuditEntry } from '../../store/audit.ts'
import type { AuditedAct, Auditor } from '../audit.ts'
import { countMostBytes, readRequestText } from './query.ts'

type KnownAct = {
  readonly name: string
  /** The parameters, and the fields of the body, that an audit entry shows: never a payload, and never a secret. */
  readonly query?: readonly string[]
  readonly body?: readonly string[]
  /** A field of the body of which an entry shows the hash. */
  readonly hashed?: string
  /** The field that names the target of the act, if the path does not name it. */
  readonly target?: string
}

const asked = ['by', 'reason']
const fixture = ['name', 'module']
const parked = ['hook', 'after']
const range = ['hook', 'since', 'after']

/** The act of each call. A call that is missing here and in `readOnlyCalls` is also an act: its entry has its method and path. */
export const acts: Readonly<Record<string, KnownAct>> = {
  'POST /api/deliveries/{id}/retry': { name: 'retry' },
  'POST /api/deliveries/{id}/drop': { name: 'drop' },
  'POST /api/deliveries/{id}/again': { name: 'again', hashed: 'body' },
  'POST /api/deliveries/{id}/capture': { name: 'capture', body: fixture },
  'POST /api/parked/retry': { name: 'retry.parked', query: parked, target: 'hook' },
  'POST /api/parked/drop': { name: 'drop.parked', query: parked, target: 'hook' },
  'POST /api/refusals/retry': { name: 'retry.refused', query: [...range, 'dryRun'], target: 'hook' },
  'POST /api/refusals/drop': { name: 'drop.refused', query: range, target: 'hook' },
  'DELETE /api/runs/{id}': { name: 'cancel', query: asked, body: asked },
  'POST /api/cancel': { name: 'cancel', body: ['what', ...asked], target: 'what' },
  'POST /api/pauses': { name: 'pause', body: ['what', 'until', ...asked], target: 'what' },
  'POST /api/resume': { name: 'resume', body: ['what', ...asked], target: 'what' },
  'POST /api/budgets/{name}/raise': { name: 'budget.raise', query: ['usd', 'tokens', 'turns'] },
  'POST /api/sessions/{key}/trim': { name: 'session.trim', query: ['agentId', 'keep'] },
  'POST /api/state/drop': { name: 'state.drop', query: ['module', 'key'], target: 'module' },
  'POST /api/tokens': { name: 'token.new', body: ['name', 'may', 'expiresAt'], target: 'name' },
  'POST /api/tokens/{name}/revoke': { name: 'token.revoke' },
  'POST /api/recover': { name: 'recover', query: ['name', 'since', 'dryRun'], target: 'name' },
  'POST /api/alerts/test': { name: 'alert.test' },
  'POST /api/publish': { name: 'publish' },
  'POST /api/send': { name: 'send', body: ['hook'], target: 'hook' },
  'POST /api/fixtures': { name: 'fixture', body: ['hook', ...fixture], target: 'hook' },
  'POST /api/fixtures/update': { name: 'fixture.update', body: fixture, target: 'module' },
  'POST /api/mappings': { name: 'mapping', body: ['hook', 'mappingId'], target: 'mappingId' },
  'POST /api/transforms': { name: 'transform', body: ['hook'], target: 'hook' },
  'POST /api/mappings/{id}/arm': { name: 'secret.arm' },
  'POST /api/page/code': { name: 'page.code' },
  'POST /api/writes': { name: 'file.write', body: ['what', 'tool'], target: 'what' },
}

/** The calls that change nothing, although their method is not GET. */
export const readOnlyCalls: ReadonlySet<string> = new Set([
  'POST /api/coverage',
  'POST /api/doctor',
  'POST /api/replay',
  'POST /api/replay/live',
  'POST /api/try',
])

type Actor = NewAuditEntry['by']

export type ActRecorder = {
  /** Runs the rest of the route. If the call is an act, writes an audit entry before it and one after it. */
  perform(ctx: Context, by: Actor, next: Next): Promise<void>
  /** If the call is an act, writes an audit entry that it was refused, with the reason why its caller may not do it. */
  refuse(ctx: Context, by: Actor, reason: string): void
}

type ActParts = {
  readonly auditor: Pick<Auditor, 'perform' | 'note'>
  readonly generation: () => Generation
}

export function createActRecorder({ auditor, generation }: ActParts): ActRecorder {
  async function readFields(ctx: Context, { body: names = [], hashed }: KnownAct): Promise<Record<string, string>> {
    if (names.length === 0 && hashed === undefined) return {}
    const text = await readRequestText(ctx, countMostBytes(generation().config.server))
    const body = tryParseJson(text ?? '')
    return isJsonObject(body) ? { ...pickTexts(body, names), ...hashField(body, hashed) } : {}
  }

  return {
    async perform(ctx, by, next) {
      const found = findAct(ctx)
      if (found === undefined) return void (await next())
      const fields = await readFields(ctx, found)
      await auditor.perform({ by, ...toAct(ctx, found, fields) }, next)
    },
    refuse(ctx, by, reason) {
      // the body of a caller without the right is not read
      const found = findAct(ctx)
      if (found !== undefined) auditor.note({ by, ...toAct(ctx, found, {}), outcome: 'refused', reason })
    },
  }
}

type FoundAct = KnownAct & { readonly param: string | undefined }

/** The act of a request; undefined if the request changes nothing. */
function findAct(ctx: Context): FoundAct | undefined {
  const { method, path, query } = ctx
  if (method === 'GET' || method === 'HEAD') return undefined
  const call = `${method} ${path}`
  if (readOnlyCalls.has(call)) return undefined
  const given = call.split('/')
  for (const [pattern, act] of Object.entries(acts)) {
    const parts = pattern.split('/')
    if (parts.length !== given.length) continue
    if (!parts.every((part, index) => part.startsWith('{') || part === given[index])) continue
    // `dryRun` counts only for calls that have it: with any other call, it would keep an act out of the audit log
    if (act.query?.includes('dryRun') === true && String(query['dryRun'] ?? '').trim() !== '') return undefined
    const place = parts.findIndex((part) => part.startsWith('{'))
    return { ...act, param: place < 0 ? undefined : decode(given[place] ?? '') }
  }
  return { name: call, param: undefined }
}

function toAct(ctx: Context, found: FoundAct, fields: Readonly<Record<string, string>>): Omit<AuditedAct, 'by'> {
  const { name: act, param, query = [], target: named } = found
  const { [param === undefined ? (named ?? '') : '']: target, ...details } = {
    ...pickTexts(ctx.query, query),
    ...fields,
  }
  return { act, target: param ?? target ?? null, details }
}

/** Picks only strings and lists of strings: an audit entry needs no other values. */
function pickTexts(
  from: Readonly<Record<string, JsonValue | undefined>>,
  names: readonly string[],
): Record<string, string> {
  const picked: Record<string, string> = {}
  for (const name of names) {
    const value = Object.hasOwn(from, name) ? from[name] : undefined
    if (typeof value === 'string') picked[name] = value
    else if (Array.isArray(value)) picked[name] = value.filter((each) => typeof each === 'string').join(' ')
  }
  return picked
}

function hashField(
  from: Readonly<Record<string, JsonValue | undefined>>,
  name: string | undefined,
): Record<string, string> {
  const value = name !== undefined && Object.hasOwn(from, name) ? from[name] : undefined
  return typeof value === 'string' ? { [`${name}Sha256`]: hash('sha256', value) } : {}
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
