// Waits for a delivery. Each is a cursor, and the commit that queues a run with its hook and session key completes it: triggers of the engines do.
import { awaitPrefix, updateCursor } from './cursors.ts'
import type { Store } from './store.ts'

/** Stands between the parts of the name: no hook name and no key of a wait has it. */
const separator = '\u001f'

/** `key`: a session key. `id`: several waits for the same deliveries differ by it. Neither has control characters. */
export type AwaitName = { readonly hook: string; readonly key: string; readonly id: string }

/** `endsAt`: milliseconds since the epoch. `deliveryId`: the delivery that came before then. */
export type Await = { readonly endsAt: number; readonly deliveryId: string | undefined }

const toCursorName = ({ hook, key, id }: AwaitName) => `${awaitPrefix}${[hook, key, id].join(separator)}`

/** The time for which the end of a wait is remembered. */
const rememberMs = 7 * 24 * 3_600_000

/** Begins a wait, and continues one that was begun before: then its end stays. Deliveries of which the commit begins after the call complete it. */
export async function beginAwait(
  store: Pick<Store, 'cursor' | 'appendAll'>,
  name: AwaitName,
  endsAt: number,
): Promise<Await> {
  let value = `${endsAt + rememberMs} ${endsAt}`
  await updateCursor(store, toCursorName(name), (known) => {
    if (known === undefined) return value
    value = known
    return undefined
  })
  return toAwait(value)
}

/** Undefined if the wait was never begun, or ended a week ago. */
export async function readAwait(store: Pick<Store, 'cursor'>, name: AwaitName): Promise<Await | undefined> {
  const value = await store.cursor(toCursorName(name))
  return value === undefined ? undefined : toAwait(value)
}

function toAwait(value: string): Await {
  const [, endsAt, deliveryId] = value.split(' ')
  return { endsAt: Number(endsAt), deliveryId }
}

/** SQL of the range of the names of the waits for a hook and a key, which are SQL. By code points, the separator precedes the space. */
export function selectAwaits({ hook, key, char }: { hook: string; key: string; char: string }) {
  const start = `'${awaitPrefix}' || ${hook} || ${char}(31) || ${key}`
  return { from: `(${start} || ${char}(31))`, to: `(${start} || ' ')` }
}

/** SQL: whether there is any wait. */
export const someAwait = `EXISTS (SELECT 1 FROM cursors WHERE name >= '${awaitPrefix}' AND name < '${awaitPrefix.slice(0, -1)}0')`
