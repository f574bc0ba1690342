// The shape of one event, and the types that are written for the events of a hook.
import { countSeen, createShape, kinds, type Kind, learn, merge, type Shape } from './shape.ts'
import { decodeShape, encodeShape } from './encoded-shape.ts'
import { isEventName, splitWords } from './names.ts'
import type { SentValue } from '../../base/json.ts'

/** `source` and `event` are empty if a request shows none. */
export type EventKey = { readonly hook: string; readonly source: string; readonly event: string }

export type EventShape = EventKey & { readonly shape: Shape }

/** A word that does not read like a name is left out: a sender may send any text there. */
export function createEventShape({
  hook,
  source = '',
  event = '',
}: Pick<EventKey, 'hook'> & Partial<EventKey>): EventShape {
  const known = (word: string) => (isEventName(word) ? word : '')
  return { hook, source: known(source), event: known(event), shape: createShape() }
}

export function learnPayload({ shape }: EventShape, payload: SentValue, at: number): void {
  learn(shape, payload, at)
}

export function mergeEventShape(into: EventShape, other: EventShape): void {
  merge(into.shape, other.shape)
}

/** The number of requests that the shape was learnt from, and the times of the first and the last of them. */
export function readRequests({ shape }: EventShape): { count: number; first: number; last: number } {
  const all = [...shape.kinds.values()]
  return {
    count: countSeen(shape),
    first: Math.min(...all.map(({ first }) => first)),
    last: Math.max(...all.map(({ last }) => last)),
  }
}

export function renderEventShape({ hook, source, event, shape }: EventShape): string {
  return JSON.stringify({ hook, source, event, shape: encodeShape(shape) })
}

/** `text`: the result of `renderEventShape`. */
export function parseEventShape(text: string): EventShape {
  // as: only renderEventShape writes such a text
  const { shape, ...key } = JSON.parse(text) as EventKey & { shape: Parameters<typeof decodeShape>[0] }
  return { ...key, shape: decodeShape(shape) }
}

/** An event with the name of its type. `source` and `event` are those of the first shape; others with the same name were merged into it. */
export type NamedShape = EventShape & { readonly name: string }

/**
 * The events of a hook with the names of their types, in the order of the names: `GithubPullRequest` for the event `pull_request` of the
 * hook `github`. The source is part of a name only if it differs from the hook.
 */
export function nameShapes(shapes: readonly EventShape[]): NamedShape[] {
  const named = new Map<string, NamedShape>()
  for (const each of shapes) addNamedShape(named, each)
  return sortNamedShapes(named)
}

/** One step of `nameShapes`, for a caller that gets one event at a time. */
export function addNamedShape(named: Map<string, NamedShape>, shape: EventShape): void {
  const name = buildTypeName(shape)
  const known = named.get(name) ?? { ...createEventShape(shape), name }
  named.set(name, known)
  mergeEventShape(known, shape)
}

export function sortNamedShapes(named: ReadonlyMap<string, NamedShape>): NamedShape[] {
  return [...named.values()].toSorted((one, other) => (one.name < other.name ? -1 : 1))
}

/** The type name of the union of all events of a hook. If the only event has no name, its type has this name. */
export function buildUnionName(hook: string): string {
  return `${toPascalCase(hook)}Payload`
}

function buildTypeName({ hook, source, event }: EventKey): string {
  const start = toPascalCase(hook)
  const sender = toPascalCase(source)
  const middle = source === '' || start.startsWith(sender) ? '' : sender
  return event === '' ? `${start}${middle}Payload` : start + middle + toPascalCase(event)
}

/** ASCII letters and digits, from a word that may be any text. */
function toPascalCase(text: string): string {
  const words = splitWords(text).map((word) => word.replace(/[^a-z\d]/g, ''))
  const name = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
  return /^[A-Z]/.test(name) ? name : `Hook${name}`
}

/** The facts that decide the type of a place, together with its shape. */
export type Learnt = {
  /** The number of requests that the shape of the event was learnt from. */
  readonly requests: number
  /** Whether the sender writes some numbers as texts. */
  readonly hasNumbersAsTexts: boolean
}

/** Whether the sender with this name writes some numbers as texts. */
export type HasNumbersAsTexts = (source: string) => boolean

/** Fewer requests prove nothing: a field that all of them have may be missing in the next one, or be null. */
const fewestCertain = 20

/**
 * Whether a field may be missing. `requests`: the number of requests of the event. The items of one request are alike, so many items from few requests
 * prove nothing.
 */
export function isOptional(field: Shape, { opened }: Shape, requests: number): boolean {
  return Math.min(opened, requests) < fewestCertain || countSeen(field) < opened
}

/** Whether a field may be null. */
export function isNullable(field: Shape, requests: number): boolean {
  return field.kinds.has('null') || Math.min(countSeen(field), requests) < fewestCertain
}

/** The kinds that a place may have, except null, in a fixed order. */
export function listKinds(shape: Shape, { requests, hasNumbersAsTexts }: Learnt): Kind[] {
  const isNumber = shape.kinds.has('number') || shape.form === 'an integer'
  const isUnknown =
    shape.hasLongNumbers || (hasNumbersAsTexts && isNumber && Math.min(countSeen(shape), requests) < fewestCertain)
  return kinds.filter((kind) => (kind !== 'null' && shape.kinds.has(kind)) || (isUnknown && isNumberOrText(kind)))
}

const isNumberOrText = (kind: Kind) => kind === 'number' || kind === 'string'

/** The words that were seen more than once, in alphabetical order. */
export function listWords({ words = new Map() }: Shape): string[] {
  return [...words].flatMap(([word, count]) => (count > 1 ? [word] : [])).toSorted()
}
