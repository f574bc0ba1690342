// Shows how a template and conditions apply to kept requests. The running gateway applies them.
import colors from 'picocolors'
import { isJsonObject, type JsonObject, tryParseJson } from '../base/json.ts'
import type { TriedDraft } from '../model/api/bench.ts'
import { Problem } from '../core/model/problem.ts'
import { nothingKept } from './replay.ts'
import { askAdmin } from './gateway/gateway.ts'
import type { Context } from './terminal/context.ts'
import { cutLine, formatTime, indent, printTable } from './terminal/print.ts'

type TryOptions = {
  readonly template: string
  /** The conditions; see `parseMatch`. */
  readonly match: readonly string[]
  readonly last: number
  readonly hook?: string
}

export async function tryTemplate(
  context: Context,
  { template, match: given, last, hook }: TryOptions,
): Promise<number> {
  const match = { ...(hook === undefined ? {} : { path: hook }), ...parseMatch(given) }
  const body = { last, hook, draft: { template, match } }
  const answer = await askAdmin(context, 'POST /api/try', { body })
  if (!('tried' in answer)) throw new Error('the answer is not that of a draft')
  const { tried, empty } = answer
  if (context.json) for (const one of tried) context.printJson(one)
  else print(context, tried, { match, template })
  for (const { path, count, near } of context.json ? [] : empty) {
    const next = near === null ? '' : ` Did you mean {{${cutLine(near, 80)}}}?`
    context.note(`${colors.yellow('!')} {{${cutLine(path, 80)}}} is empty in ${count} of them.${next}`)
  }
  return 0
}

type Draft = { readonly match: JsonObject; readonly template: string }

/** Parses conditions. Each is `<place>=<value>`, or a JSON object as in the configuration. Throws `usage-invalid`. */
function parseMatch(given: readonly string[]): JsonObject {
  const match: Record<string, JsonObject[string]> = {}
  for (const text of given) {
    for (const [name, value] of Object.entries(
      text.trimStart().startsWith('{') ? parseObject(text) : parseCondition(text),
    )) {
      const before = match[name]
      match[name] = isJsonObject(before) && isJsonObject(value) ? { ...before, ...value } : value
    }
  }
  return match
}

function parseObject(text: string): JsonObject {
  const value = tryParseJson(text)
  if (value !== undefined && isJsonObject(value)) return value
  throw new Problem(
    'usage-invalid',
    `--match is not valid JSON: ${cutLine(text, 80)}. It takes the "match" of a mapping, as in '{"event": "push"}'.`,
  )
}

function parseCondition(text: string): JsonObject {
  const [, place, root = '', name, value = ''] =
    /^((event|source|path)|(?:headers|payload)\.([^=]+))=([^]*)$/.exec(text) ?? []
  if (place === undefined) {
    throw new Problem(
      'usage-invalid',
      `--match takes event=…, source=…, path=…, headers.<name>=…, payload.<path>=…, or JSON, found ${cutLine(text, 80)}.`,
    )
  }
  if (name === undefined) return { [root]: value }
  // a number, a boolean or null is compared as such, not as a text
  const literal = /^(true|false|null|-?\d+(\.\d+)?)$/.test(value) ? tryParseJson(value) : undefined
  return place.startsWith('headers.') ? { headers: { [name]: value } } : { payload: { [name]: literal ?? value } }
}

function print(context: Context, tried: TriedDraft['tried'], { match, template }: Draft): void {
  if (tried.length === 0) return context.print(nothingKept)
  const rows = tried.map((one) => {
    const { receivedAt, hook, source, event, takenBy, matches } = one
    const sender = [source, event].filter((word) => word !== null).join(' ')
    return [
      formatTime(Date.parse(receivedAt)),
      hook,
      sender,
      takenBy ?? '',
      matches ? '✓' : '·',
      cutLine(describe(one), 100),
    ]
  })
  printTable(context, ['received', 'hook', 'from', 'taken by', '', 'message, or why not'], rows)
  const matching = tried.filter(({ matches }) => matches)
  context.print(`\n${matching.length} of ${tried.length} kept requests match.`)
  if (matching.length > 0) printMapping(context, matching, { match, template })
}

/** Prints a mapping for the matching requests, and what else the configuration needs so that it takes them. */
function printMapping(context: Context, matching: TriedDraft['tried'], { match, template }: Draft): void {
  const hooks = [...new Set(matching.map(({ hook }) => hook))]
  const isOneHook = match['path'] === undefined && hooks.length === 1
  const mapping = { match: { ...(isOneHook ? { path: hooks[0] ?? '' } : {}), ...match }, messageTemplate: template }
  context.print(`A mapping for hookloom.jsonc:\n${indent(JSON.stringify(mapping))}`)
  if (match['path'] === undefined && hooks.length > 1)
    context.print('It has no "path", so it takes requests of every hook. --hook <name> selects one.')
  if (matching.some(({ takenBy }) => takenBy !== null))
    context.print(
      'Put it before the mappings under "taken by": the first one whose conditions are true takes a request.',
    )
  const proven = matching.find(({ provenBy }) => provenBy !== null)?.provenBy
  if (proven !== undefined)
    context.print(
      `Copy "verify" from ${cutLine(JSON.stringify(proven), 80)}: without it, only the hook token opens the new mapping.`,
    )
}

function describe({ matches, message, why, problem }: TriedDraft['tried'][number]): string {
  if (problem !== null) return problem
  return matches ? (message ?? '') : why
}
