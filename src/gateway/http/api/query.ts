// Reads the parameters and the body of a request to the admin API. A wrong value is refused: a filter with a typo in its value must not show
// everything. Parameters of other names are ignored.
import type { IncomingMessage } from 'node:http'
import type { Context } from 'koa'
import { readLimitedBody } from '../../../base/http.ts'
import { tryParseJson } from '../../../base/json.ts'
import type { CallBody } from '../../../model/api/bodies.ts'
import { deliveryStates, type DeliveryState } from '../../../core/model/delivery.ts'
import { Problem } from '../../../core/model/problem.ts'
import { dropRest } from '../body.ts'

/** Parameters as they came. */
export type QueryTexts<Name extends string> = { readonly [Each in Name]?: string | readonly string[] | undefined }

const maxRows = 500
const usualRows = 100

/** A parameter that came once; undefined if it is missing or blank. Throws `usage-invalid` for one that came twice. */
export function readParameter<Name extends string>(query: QueryTexts<Name>, name: Name): string | undefined {
  const value = query[name]
  if (value === undefined || typeof value === 'string') return value?.trim() === '' ? undefined : value
  throw new Problem('usage-invalid', `The parameter "${name}" came twice.`)
}

/** `limit`, from 1 to 500; `usual` if it is not given. */
export function readLimit(query: QueryTexts<'limit'>, usual = usualRows): number {
  const text = readParameter(query, 'limit')
  if (text === undefined) return usual
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= maxRows) return limit
  throw new Problem('usage-invalid', `limit must be a number from 1 to ${maxRows}.`)
}

/** A moment in ISO 8601; the result is in milliseconds since the epoch. */
export function readMoment<Name extends string>(query: QueryTexts<Name>, name: Name): number | undefined {
  const text = readParameter(query, name)
  if (text === undefined) return undefined
  const at = /^\d{4}-\d\d-\d\dT/.test(text) ? Date.parse(text) : Number.NaN
  if (!Number.isNaN(at)) return at
  throw new Problem('usage-invalid', `${name} must be a time such as 2026-01-02T03:04:05.678Z.`)
}

/** `dead`: deliveries with a dead job. `waiting`: those that have not ended. */
export function readStateParameter(query: QueryTexts<'state'>): DeliveryState | 'dead' | 'waiting' | undefined {
  const text = readParameter(query, 'state')
  if (text === undefined || text === 'dead' || text === 'waiting') return text
  const state = deliveryStates.find((each) => each === text)
  if (state !== undefined) return state
  throw new Problem('usage-invalid', `state must be one of ${[...deliveryStates, 'dead', 'waiting'].join(', ')}.`)
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

/** The body of a call, parsed. Throws `usage-invalid`, with the form of the body, and `body-too-large`. */
export async function readCallBody(
  ctx: Context,
  { schema, form, maxBytes, isOptional = false }: CallBody,
  server: { readonly maxBodyBytes: number },
  ifEmpty = isOptional ? '{}' : '',
): Promise<unknown> {
  const hasRequest = maxBytes === 'request'
  const text = await readRequestText(ctx, hasRequest ? countMostBytes(server) : maxBytes)
  if (text === undefined && hasRequest)
    throw new Problem('body-too-large', `The request is over server.maxBodyBytes (${server.maxBodyBytes}).`)
  const parsed = schema.safeParse(tryParseJson(text === '' ? ifEmpty : (text ?? '')))
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const wrong = issue?.code === 'invalid_union' ? issue.errors.at(-1)?.[0] : issue
  const where = wrong?.path.join('.') || 'its form'
  throw new Problem('usage-invalid', hasRequest ? `${form} Wrong: ${where}.` : form)
}
