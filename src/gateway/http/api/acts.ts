// The acts of the admin API: the entries that the audit log has of the calls that change something.
import { hash } from 'node:crypto'
import type { Context } from 'koa'
import { isJsonObject, type JsonValue, tryParseJson } from '../../../base/json.ts'
import type { CallBody } from '../../../model/api/bodies.ts'
import type { Call } from '../../../model/api/call.ts'
import type { Generation } from '../../generation/generation.ts'
import type { NewAuditEntry } from '../../../store/audit.ts'
import type { AuditedAct, Auditor } from '../audit.ts'
import { countMostBytes, readRequestText } from './query.ts'

type Actor = NewAuditEntry['by']
type ActCall = Pick<Call, 'act' | 'query' | 'body'>

export type ActRecorder = {
  /** Runs a call. If it is an act, writes an audit entry before it and one after it. */
  perform(ctx: Context, call: ActCall, by: Actor, run: () => Promise<void>): Promise<void>
  /** If the call is an act, writes an audit entry that it was refused, with the reason why its caller may not do it. */
  refuse(ctx: Context, call: ActCall, by: Actor, reason: string): void
}

type ActParts = {
  readonly auditor: Pick<Auditor, 'perform' | 'note'>
  readonly generation: () => Generation
}

type Texts = Readonly<Record<string, string>>

export function createActRecorder({ auditor, generation }: ActParts): ActRecorder {
  async function readFields(ctx: Context, { shown, hashed }: CallBody): Promise<Texts> {
    if (shown.length === 0 && hashed === undefined) return {}
    const text = await readRequestText(ctx, countMostBytes(generation().config.server))
    const body = tryParseJson(text ?? '')
    return isJsonObject(body) ? { ...pickTexts(body, shown), ...hashField(body, hashed) } : {}
  }

  return {
    async perform(ctx, call, by, run) {
      const name = findName(ctx, call)
      if (name === undefined) return run()
      const fields = call.body === undefined ? {} : await readFields(ctx, call.body)
      await auditor.perform({ by, ...toAct(name, ctx, call, fields) }, run)
    },
    refuse(ctx, call, by, reason) {
      // the body of a caller without the right is not read
      const name = findName(ctx, call)
      if (name !== undefined) auditor.note({ by, ...toAct(name, ctx, call, {}), outcome: 'refused', reason })
    },
  }
}

/** The name of the act; undefined if the request changes nothing. */
function findName({ query: given }: Context, { act, query }: ActCall): string | undefined {
  // `dryRun` counts only for calls that have it: with any other call, it would keep an act out of the audit log
  const isDry = query['dryRun'] !== undefined && String(given['dryRun'] ?? '').trim() !== ''
  return isDry ? undefined : (act ?? undefined)
}

function toAct(act: string, ctx: Context, { query, body }: ActCall, fields: Texts): Omit<AuditedAct, 'by'> {
  const [param] = Object.values<string>(ctx.params)
  const names = Object.keys(query)
  const { [param === undefined ? (names[0] ?? body?.shown[0] ?? '') : '']: target, ...details } = {
    ...pickTexts(ctx.query, names),
    ...fields,
  }
  return { act, target: param ?? target ?? null, details }
}

/** Picks only strings and lists of strings: an audit entry needs no other values. */
function pickTexts(from: Readonly<Record<string, JsonValue | undefined>>, names: readonly string[]): Texts {
  const picked: Record<string, string> = {}
  for (const name of names) {
    const value = Object.hasOwn(from, name) ? from[name] : undefined
    if (typeof value === 'string') picked[name] = value
    else if (Array.isArray(value)) picked[name] = value.filter((each) => typeof each === 'string').join(' ')
  }
  return picked
}

function hashField(from: Readonly<Record<string, JsonValue | undefined>>, name: string | undefined): Texts {
  const value = name !== undefined && Object.hasOwn(from, name) ? from[name] : undefined
  return typeof value === 'string' ? { [`${name}Sha256`]: hash('sha256', value) } : {}
}
