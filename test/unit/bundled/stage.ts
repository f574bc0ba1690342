// The bundled transforms, loaded and called as their mappings call them.
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { loadTransforms } from '../../inline-transforms.ts'
import type { Action } from '../../../src/core/model/action.ts'
import { ConfigSchema } from '../../../src/gateway/config/keys.ts'
import type { JsonValue } from '../../../src/base/json.ts'
import { Mapping } from '../../../src/core/model/mapping.ts'
import { Match } from '../../../src/core/model/match.ts'
import { toJsonBody } from '../../../src/core/model/body.ts'
import type { Decision } from '../../../src/core/mapping/decision.ts'
import { createGeneration } from '../../../src/gateway/generation/generation.ts'
import { readEvent } from '../../../src/core/mapping/sources.ts'
import { decideOn, toTestDelivery } from '../core/mapping/decide.ts'
import { builtInSenders } from '../../../src/gateway/built-in.ts'

const { recognise: recogniseSender } = builtInSenders

export const root = resolve(import.meta.dirname, '../../../transforms')
export const modules = readdirSync(root).filter((name) => name.endsWith('.ts'))
export const readme = readFileSync(join(root, 'README.md'), 'utf8')

export type Request = { headers: Record<string, string>; payload: JsonValue }

/** The `match` that the table of the README shows for a module. */
export function toDocumentedMatch(module: string): Match {
  const row = readme.split('\n').find((line) => line.startsWith(`| [${module}](${module}) |`))
  const [, code = '{}'] = /`(\{.*\})`/.exec(row ?? '') ?? []
  return z.strictObject({ match: Match.default({}) }).parse(JSON.parse(code)).match
}

/** All bundled transforms, loaded once. */
export const loading = loadTransforms({ root, refs: modules.map((module) => ({ module })), timeoutMs: 5000 })

/** `match`: that of the README, or every event of the path, so that only the transform decides. */
export async function run(module: string, { headers, payload }: Request, match?: Match): Promise<Decision> {
  const path = toDocumentedMatch(module).path ?? ''
  const generation = createGeneration({
    senders: builtInSenders,
    config: ConfigSchema.parse({
      hooks: { enabled: true, token: 'hook-secret', allowedSessionKeyPrefixes: ['hook:'] },
    }),
    mappings: [{ ...Mapping.parse({ match: match ?? { path }, transform: { module } }), id: module }],
    transforms: await loading,
  })
  const sender = recogniseSender({ headers })
  const event = sender === undefined ? undefined : readEvent(sender, { headers, body: toJsonBody(payload) })
  const known = {
    ...(sender === undefined ? {} : { source: sender.facts.name }),
    ...(event === undefined ? {} : { event }),
  }
  return decideOn(generation, toTestDelivery(path, payload, { headers, ...known }))
}

export function toActions(decision: Decision): Action[] {
  return decision.kind === 'accept' ? decision.actions.map(({ action }) => action) : []
}

export const toText = (action: Action) => (action.kind === 'wake' ? action.text : action.message)
