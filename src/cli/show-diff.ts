// Compares two deliveries: their requests, and the decisions on them.
import { stringify, tryParseSentJson } from '../base/sent-json.ts'
import { isJsonObject, isSameJson, type SentValue } from '../base/json.ts'
import { readRecorded } from '../gateway/replay/replay.ts'
import { type Change, listChanges } from '../gateway/replay/outcome.ts'
import type { KeptDelivery } from '../store/records.ts'
import { readDelivery } from './requests/kept.ts'
import type { Context } from './terminal/context.ts'
import { renderDiff } from './terminal/diff.ts'
import { cutLine } from './terminal/print.ts'

/** The maximum number of differences between two requests that are shown. */
const maxChanges = 100

/** Throws `not-found` for an unknown id. */
export async function showDiff(context: Context, ids: readonly [string, string]): Promise<number> {
  const [one, other] = [await readDelivery(context, ids[0]), await readDelivery(context, ids[1])]
  const changes = [...compareFields(one, other), ...compareDecisions(one, other), ...compareRequests(one, other)]
  const deliveryIds = [one.deliveryId, other.deliveryId]
  if (context.json) context.printJson({ deliveryIds, changes })
  else {
    context.print(`Delivery ${deliveryIds[0]} (-) and ${deliveryIds[1]} (+)`)
    for (const { path, before, after } of changes) {
      context.print(
        `\n  ${cutLine(path, 200)}\n${renderDiff(before, after)
          .map((line) => `    ${line}`)
          .join('\n')}`,
      )
    }
    if (changes.length === 0) context.print('\nThey have no difference.')
    if (one.request === undefined || other.request === undefined) {
      context.print('\nThe requests are not compared: one of them is not kept. "retain" keeps requests.')
    }
  }
  return 0
}

const fields = ['state', 'hook', 'source', 'event', 'mappingId', 'generation', 'transformHash'] as const

function compareFields(one: KeptDelivery, other: KeptDelivery): Change[] {
  return fields
    .filter((name) => one[name] !== other[name])
    .map((name) => ({ path: name, before: one[name], after: other[name] }))
}

function compareDecisions(one: KeptDelivery, other: KeptDelivery): Change[] {
  const [before, after] = [readRecorded(one), readRecorded(other)]
  return before === undefined || after === undefined ? [] : listChanges(before, after)
}

function compareRequests(one: KeptDelivery, other: KeptDelivery): Change[] {
  if (one.request === undefined || other.request === undefined) return []
  const [before, after] = [one.request, other.request].map(({ head, body }) => {
    const text = Buffer.from(body).toString()
    const rest: SentValue = {
      headers: { ...head.headers },
      query: { ...head.query },
      payload: tryParseSentJson(text) ?? text,
    }
    return new Map(listLeaves(rest, ''))
  })
  const paths = new Set([...(before?.keys() ?? []), ...(after?.keys() ?? [])])
  return [...paths]
    .filter((path) => !isSameJson(before?.get(path), after?.get(path)))
    .slice(0, maxChanges)
    .map((path) => ({ path, before: before?.get(path), after: after?.get(path) }))
}

/** Each value that is neither an object nor an array, with its path. Empty objects and arrays are included. */
function listLeaves(value: SentValue, path: string): [string, SentValue][] {
  const entries: [string, SentValue][] = Array.isArray(value)
    ? value.map((item, index) => [`${path}[${index}]`, item])
    : isJsonObject(value)
      ? Object.entries(value).map(([key, item]) => [path === '' ? key : `${path}.${key}`, item])
      : []
  if (entries.length > 0) return entries.flatMap(([at, item]) => listLeaves(item, at))
  return [[path, typeof value === 'object' && value !== null ? stringify(value) : value]]
}
