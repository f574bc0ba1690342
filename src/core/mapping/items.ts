// Splits a delivery into one for each item of the list that `forEach` names.
import type { SentValue } from '../../base/json.ts'
import { stringify } from '../../base/sent-json.ts'
import { readPayload } from '../model/body.ts'
import { type Delivery, type DeliveryHead, toDeliveryHead, withContentType } from '../model/delivery.ts'
import { Problem } from '../model/problem.ts'
import { parsePath, type Path, readPath } from '../model/path.ts'

/** A list of a payload. `count`: its items. */
export type ItemsList = { readonly text: string; readonly path: Path; readonly count: number }

/** A list has too many items for one commit, but not for several. */
export class LongListProblem extends Problem {
  readonly list: ItemsList

  constructor(list: ItemsList) {
    super('too-many-items', `The ${list.count} items of ${list.text} are too many for one commit.`)
    this.list = list
  }
}

/** The maximum number of items of one part. With the most recipients, they make no more actions than a delivery may have. */
const maxPartItems = 500

function toPartSize({ count }: ItemsList): number {
  return Math.min(maxPartItems, Math.ceil(count / 2))
}

export function countParts(list: ItemsList): number {
  return Math.ceil(list.count / toPartSize(list))
}

/** The requests of the parts of a list that is too long, in order. The rest of the payload is in each of them. */
export function* listParts(delivery: Delivery, list: ItemsList): Generator<{ head: DeliveryHead; body: Buffer }> {
  const head = withContentType(toDeliveryHead(delivery), 'application/json')
  const payload = readPayload(delivery.body)
  const items = readPath(payload, list.path)
  if (!Array.isArray(items)) return
  const size = toPartSize(list)
  for (let from = 0; from < items.length; from += size) {
    const part = replaceAt(payload, list.path, items.slice(from, from + size))
    yield { head, body: Buffer.from(stringify(part)) }
  }
}

/**
 * The maximum number of actions of one delivery. They are stored in one transaction: with 6,000 of them, the answer took 5 seconds on two busy cores,
 * and senders wait longer. A body of the usual 256 KiB has no room for more items of at least 26 bytes.
 */
export const maxActions = 10_000

/** The maximum number of bytes outside the list, times the items: each action may read all of them. It is 200 times the usual maximum of a body. */
const maxRepeatedBytes = 52_428_800

/** Where a mapping finds its list: at the first of the paths that leads to one. */
export type ItemsPath = { readonly text: string; readonly paths: readonly Path[] }

/**
 * Parses `messages`, `data.events`, `['a.b'].items`, or `payload` for a payload that is a list itself. As in a template, `payload.data` is the field
 * `data`; but if this is no list, the payload may have a field `payload`. Throws `config-invalid`.
 */
export function parseItemsPath(text: string): ItemsPath {
  const path = parsePath(text)
  return { text, paths: /^payload(?=$|[.[])/.test(text) ? [path.slice(1), path] : [path] }
}

/** The list, and the delivery of each of its items. `whyNone`: a sentence for the operator; undefined if there are items. */
type Items = {
  readonly list: ItemsList | undefined
  readonly deliveries: Iterable<Delivery>
  readonly whyNone?: string
}

/**
 * The delivery once, or once for each item of its list, with that item alone in the list. Empty if the payload does not have this list. Each delivery
 * may be read only until the next one is taken: they share a payload, because a copy for each item would cost the items times the fields outside the
 * list. Throws `too-many-items`.
 */
export function splitItems(delivery: Delivery, itemsPath: ItemsPath | undefined): Items {
  if (itemsPath === undefined) return { list: undefined, deliveries: [delivery] }
  const payload = readPayload(delivery.body)
  for (const path of itemsPath.paths) {
    const items = readPath(payload, path)
    if (!Array.isArray(items)) continue
    const list: ItemsList = { text: itemsPath.text, path, count: items.length }
    requireFewItems(list, () => JSON.stringify(replaceAt(payload, path, [])).length)
    if (items.length === 0) return { list, deliveries: [], whyNone: `The list ${list.text} of forEach is empty.` }
    return { list, deliveries: listAlone(delivery, { payload, path, items }) }
  }
  const next = Array.isArray(payload) ? ' The payload is a list itself: write "payload".' : ''
  return {
    list: undefined,
    deliveries: [],
    whyNone: `forEach finds no list at ${itemsPath.text} in the payload.${next}`,
  }
}

function* listAlone(
  delivery: Delivery,
  { payload, path, items }: { payload: SentValue; path: Path; items: readonly SentValue[] },
): Generator<Delivery> {
  const alone: SentValue[] = [null]
  const parsed = replaceAt(payload, path, alone)
  for (const item of items) {
    alone[0] = item
    yield { ...delivery, body: { ...delivery.body, parsed } }
  }
}

/** A copy of the value with another list at the path, which exists. */
function replaceAt(value: SentValue, [step, ...below]: Path, list: SentValue): SentValue {
  if (step === undefined || typeof value !== 'object' || value === null) return list
  const inner = replaceAt(readPath(value, [step]) ?? null, below, list)
  return Array.isArray(value) ? value.with(Number(step), inner) : { ...value, [step]: inner }
}

function requireFewItems(list: ItemsList, measureOutside: () => number): void {
  const { text, count } = list
  if (count < 2) return
  const bytesOutside = measureOutside()
  if (count * bytesOutside > maxRepeatedBytes) {
    const found = `${count} items and ${bytesOutside} bytes outside the list`
    throw toItemsProblem(text, `each item repeats the fields outside the list, found ${found}`)
  }
  if (count > maxActions) throw new LongListProblem(list)
}

/** `fault`: a part of a sentence. */
export function toItemsProblem(text: string, fault: string): Problem {
  return new Problem('too-many-items', `${text}: ${fault}. Send fewer items at once, or choose them in a transform.`)
}
