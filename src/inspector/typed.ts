// The request that somebody types on the bench of a hook. It is kept until the page is loaded again.
import type { HookFields, ModuleText, TypedRequest } from '../model/api/bench.ts'
import type { RequestFields } from '../model/api/answers.ts'

/** `headers`: one line `name: value` for each header. `template`: the draft; undefined if the saved template is tried. */
export type BenchInput = {
  readonly body: string
  readonly headers: string
  readonly query: Readonly<Record<string, string>>
  readonly template: string | undefined
  /** The mapping whose template the draft replaces. Undefined for a new mapping. */
  readonly mappingId: string | undefined
  /** The unsaved text of a transform; undefined if all are tried as they are on disk. */
  readonly code: ModuleText | undefined
}

const typed = new Map<string, BenchInput>()
const maxHooks = 50

export function readBenchInput(hook: string): BenchInput | undefined {
  return typed.get(hook)
}

export function keepBenchInput(hook: string, request: BenchInput): void {
  typed.delete(hook)
  typed.set(hook, request)
  for (const oldest of typed.keys()) if (typed.size > maxHooks) typed.delete(oldest)
}

export const emptyBenchInput: BenchInput = {
  body: '{}',
  headers: '',
  query: {},
  template: undefined,
  mappingId: undefined,
  code: undefined,
}

/** Whether the last placeholder of a template is not closed yet. */
export function isUnfinished(template = ''): boolean {
  return template.lastIndexOf('{{') > template.lastIndexOf('}}')
}

/** A request in the form in which it is typed, without hidden secrets and without headers that have line breaks. */
export function toBenchInput({
  headers,
  query,
  body,
}: Pick<RequestFields, 'headers' | 'query' | 'body'>): Omit<BenchInput, 'template' | 'mappingId' | 'code'> {
  const lines = Object.entries(headers).filter(([, value]) => value !== '[secret]' && !/[\r\n]/.test(value))
  return { body, query, headers: lines.map(([name, value]) => `${name}: ${value}`).join('\n') }
}

/** Reads the typed headers. Lines without a colon are ignored, because somebody may still be typing them. */
function readHeaders(text: string): Record<string, string> {
  const pairs = text.split('\n').flatMap((line) => {
    const [, name, value = ''] = /^([!#$%&'*+.^_`|~\w-]+):(.*)$/.exec(line.trim()) ?? []
    return name === undefined ? [] : [[name.toLowerCase(), value.trim()] as const]
  })
  return Object.fromEntries(pairs)
}

export function toTypedRequest(hook: string, { body, headers, query }: BenchInput): TypedRequest {
  return { hook, body, headers: readHeaders(headers), query }
}

/**
 * A payload that a hook accepts. It has the fields that its templates read, and the value of each field is its name. If all mappings have conditions,
 * it has the values that the first of them asks for.
 */
export function buildPayload(mappings: HookFields['mappings']): string {
  const payload: Record<string, unknown> = {}
  for (const [path, value] of mappings.every(({ conditions }) => conditions !== null) ? listAsked(mappings[0]) : []) {
    addField(payload, path, value)
  }
  for (const { template } of mappings) {
    for (const [, path = ''] of template?.matchAll(/\{\{\s*((?:[\w.-]|\[(["']).*?\2\])+)/g) ?? []) {
      const steps = toSteps(path)
      if (!notField.test(path)) addField(payload, steps, steps.at(-1))
    }
  }
  return JSON.stringify(payload, undefined, 2)
}

/** The placeholders of the request itself. */
const notField = /^(payload|path|source|event|now|(headers|query)[.[].*)$/

function toSteps(path: string): string[] {
  const steps = path.replace(/^payload(?=[.[])/, '').matchAll(/([\w-]+)|\[(["'])(.*?)\2\]/g)
  return [...steps].map(([, name, , key]) => name ?? key ?? '')
}

/** The fields of a payload for which the conditions of a mapping ask, with a value that they allow. A test, such as `gt`, allows too many. */
function listAsked(mapping: HookFields['mappings'][number] | undefined): (readonly [string[], unknown])[] {
  // as: `conditions` is the JSON of the conditions of a mapping
  const { payload = {} } = JSON.parse(mapping?.conditions ?? '{}') as { payload?: Readonly<Record<string, unknown>> }
  return Object.entries(payload).flatMap(([path, allowed]) => {
    const value: unknown = Array.isArray(allowed) ? allowed[0] : allowed
    return typeof value === 'object' ? [] : [[toSteps(path), value] as const]
  })
}

function addField(payload: Record<string, unknown>, steps: readonly string[], value: unknown): void {
  const [step = '', ...rest] = steps
  if (step === '') return
  const known = Object.hasOwn(payload, step) ? payload[step] : undefined
  if (rest.length === 0) {
    payload[step] ??= value
    return
  }
  const inner: Record<string, unknown> = typeof known === 'object' && known !== null ? { ...known } : {}
  addField(inner, rest, value)
  payload[step] = inner
}
