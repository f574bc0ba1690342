// Reads the parameters and the body of a request to the admin API. A wrong value is refused: a filter with a typo in its value must not show
// everything. Parameters of other names are ignored.
import type { IncomingMessage } from 'node:http'
import type { Context } from 'koa'
import { readLimitedBody } from '../../base/http.ts'
import { deliveryStates, type DeliveryState } from '../../model/delivery.ts'
import { Problem } from '../../model/problem.ts'
import { dropRest } from '../body.ts'

export type RouteContext = Context & { readonly params: Record<string, string> }

const maxRows = 500
const usualRows = 100

/** A parameter that came once; undefined if it is missing or blank. Throws `usage-invalid` for one that came twice. */
export function readParameter({ query }: Context, name: string): string | undefined {
  const value = query[name]
  if (Array.isArray(value)) throw new Problem('usage-invalid', `The parameter "${name}" came twice.`)
  return value === undefined || value.trim() === '' ? undefined : value
}

/** `limit`, from 1 to 500; `usual` if it is not given. */
export function readLimit(ctx: Context, usual = usualRows): number {
  const text = readParameter(ctx, 'limit')
  if (text === undefined) return usual
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= maxRows) return limit
  throw new Problem('usage-invalid', `limit must be a number from 1 to ${maxRows}.`)
}

/** A moment in ISO 8601; the result is in milliseconds since the epoch. */
export function readMoment(ctx: Context, name: string): number | undefined {
  const text = readParameter(ctx, name)
  if (text === undefined) return undefined
  const at = /^\d{4}-\d\d-\d\dT/.test(text) ? Date.parse(text) : Number.NaN
  if (!Number.isNaN(at)) return at
  throw new Problem('usage-invalid', `${name} must be a time such as 2026-01-02T03:04:05.678Z.`)
}

/** `dead`: deliveries with a dead job. */
export function readStateParameter(ctx: Context): DeliveryState | 'dead' | undefined {
  const text = readParameter(ctx, 'state')
  if (text === undefined || text === 'dead') return text
  const state = deliveryStates.find((each) => each === text)
  if (state !== undefined) return state
  throw new Problem('usage-invalid', `state must be one of ${[...deliveryStates, 'dead'].join(', ')}.`)
}

/** The bytes of JSON that a byte of a text can take: six for a control character. */
export const maxEscaped = 6
/** The bytes of JSON that all fields except the body of a typed request may take. */
const maxOtherBytes = 500_000

/** The maximum size of a body of the admin API that contains a whole request of a sender. No route reads a larger body. */
export function countMostBytes({ maxBodyBytes }: { readonly maxBodyBytes: number }): number {
  return maxEscaped * maxBodyBytes + maxOtherBytes
}

/** Bodies that were already read: the audit log and the route use the same body. */
const bodies = new WeakMap<IncomingMessage, Promise<string | undefined>>()

/** The body; undefined if it is over the limit. The connection stays open, so that the refusal can be sent. */
export async function readRequestText({ req, res }: Context, maxBytes: number): Promise<string | undefined> {
  const reading = bodies.get(req) ?? readLimitedBody(req.iterator({ destroyOnReturn: false }), maxBytes)
  bodies.set(req, reading)
  const text = await reading
  // called now: the audit log is written before the answer, and by then Node no longer shows that a part was not read
  if (text === undefined) dropRest(req, res)
  return text !== undefined && Buffer.byteLength(text) > maxBytes ? undefined : text
}
