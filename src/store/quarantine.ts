// Sealed copies of refused requests. The store knows their hooks and networks, but nothing of their content.
import { column, type Row, type SqlValue } from './rows.ts'
import { countChanged, type Dialect, run, type Script } from './script.ts'

/** A refused request, as lists show it. `place`: its position in the order of arrival. */
export type QuarantinedRequest = {
  readonly place: number
  readonly requestId: string
  /** Milliseconds since the epoch, by the clock of the gateway that refused it. */
  readonly receivedAt: number
  readonly hook: string
  /** Why the request was refused, as JSON. Nothing in it comes from the headers, the query or the body of the request. */
  readonly refusal: string
  /** The id of the key that decrypts the content. */
  readonly keyId: string
}

/** `sealed`: the head and the body of the request, encrypted. */
export type SealedRequest = Omit<QuarantinedRequest, 'place'> & {
  /** A configured name, so that strangers cannot create many shares: `hookLabel` and `network` identify a share of the space. */
  readonly hookLabel: string
  readonly network: string
  /** Whether the hook accepted a request of this network before. Requests of networks that it does not know are deleted first. */
  readonly isKnown: boolean
  readonly sealed: Uint8Array
}

/** `olderThan`: requests that arrived before this moment, in milliseconds since the epoch, are deleted too. */
export type QuarantineBounds = {
  readonly maxRequests: number
  readonly maxBytes: number
  readonly olderThan: number
}

export type QuarantineQuery = {
  readonly limit: number
  /** Only requests after this `place`, the oldest first; 0 begins with the first one. Without it: the newest requests. */
  readonly after?: number | undefined
  /** Only the request with this id, found by an index. `after` must not be given. */
  readonly requestId?: string | undefined
  readonly hook?: string | undefined
  /** Milliseconds since the epoch: only requests that arrived then or later. */
  readonly since?: number | undefined
}

export const quarantineColumns = 'id, received_at, hook, label, network, known, bytes, key_id, refusal, sealed'.split(
  ', ',
)

/**
 * The requests beyond the bounds, as SQL: the oldest ones of the largest network of the largest hook, until the remaining requests fit. So a
 * flood from one network, or to one hook, deletes its own requests. Requests of networks that the hook knows are deleted last.
 *
 * `larger`: the name of the function that returns the larger of two numbers. `rows` and `bytes`: the parameters of the bounds.
 */
function selectBeyond({ larger, rows, bytes }: { larger: string; rows: string; bytes: string }): string {
  const share = (window: string) =>
    `${larger}(1.0 * row_number() OVER ${window} / ${rows}, 1.0 * sum(bytes) OVER ${window} / ${bytes})`
  const ofSender = `SELECT seq, label, known, bytes, ${share('sender')} AS share FROM quarantine
    WINDOW sender AS (PARTITION BY label, network ORDER BY seq DESC)`
  const ofHook = `SELECT seq, known, bytes, ${share('hooks')} AS share FROM (${ofSender}) s
    WINDOW hooks AS (PARTITION BY label ORDER BY known DESC, share, seq DESC)`
  return `SELECT seq FROM (SELECT seq, row_number() OVER everything AS place, sum(bytes) OVER everything AS total FROM (${ofHook}) h
    WINDOW everything AS (ORDER BY known DESC, share, seq DESC)) ranked WHERE place > ${rows} OR total > ${bytes}`
}

function toQuarantinedRequest(row: Row): QuarantinedRequest {
  return {
    place: column(row, 'seq'),
    requestId: column(row, 'id'),
    receivedAt: column(row, 'received_at'),
    hook: column(row, 'hook'),
    refusal: column(row, 'refusal'),
    keyId: column(row, 'key_id'),
  }
}

/** The values for `quarantineColumns`. */
export function toQuarantineValues(request: SealedRequest): SqlValue[] {
  const { requestId, receivedAt, hook, hookLabel, network, isKnown, refusal, keyId, sealed } = request
  const bytes = sealed.byteLength + refusal.length
  return [requestId, receivedAt, hook, hookLabel, network, isKnown ? 1 : 0, bytes, keyId, refusal, sealed]
}

/** Without a lock, no order: SQLite would read the table instead of an index that has no bodies. */
const deleteWhere = (condition: string, { skipLocked }: Dialect) =>
  `DELETE FROM quarantine WHERE seq IN (SELECT seq FROM quarantine WHERE ${condition} ${skipLocked && `ORDER BY seq ${skipLocked}`})`

/** Deletes the requests beyond the bounds. */
export function* limitSealed({ maxRequests, maxBytes, olderThan }: QuarantineBounds, dialect: Dialect): Script<void> {
  yield* run(deleteWhere('received_at < $1', dialect), olderThan)
  const [size] = yield* run(
    'SELECT count(*) AS requests, CAST(coalesce(sum(bytes), 0) AS bigint) AS bytes FROM quarantine',
  )
  if (Number(size?.['requests']) <= maxRequests && Number(size?.['bytes']) <= maxBytes) return
  const beyond = selectBeyond({ larger: dialect.larger, rows: 'CAST($1 AS bigint)', bytes: 'CAST($2 AS bigint)' })
  yield* run(deleteWhere(`seq IN (${beyond})`, dialect), maxRequests, maxBytes)
}

type Refusals = readonly Pick<QuarantinedRequest, 'requestId' | 'refusal'>[]

export function* noteRefusals(refusals: Refusals, { rows }: Dialect): Script<void> {
  const sql = `UPDATE quarantine SET refusal = given.refusal FROM (${rows('$1', { request_id: 'text', refusal: 'text' })}) given
    WHERE quarantine.id = given.request_id`
  yield* run(sql, JSON.stringify(refusals.map(({ requestId, refusal }) => [requestId, refusal])))
}

export function deleteSealed(requestIds: readonly string[], dialect: Dialect): Script<number> {
  return countChanged(deleteWhere(`id IN (${dialect.texts('$1')})`, dialect), JSON.stringify(requestIds))
}

export function* findQuarantined(query: QuarantineQuery): Script<QuarantinedRequest[]> {
  const { limit, after, requestId, hook = null, since = 0 } = query
  const select = `SELECT seq, id, received_at, hook, refusal, key_id FROM quarantine
    WHERE (CAST($2 AS text) IS NULL OR hook = $2) AND received_at >= $3`
  if (requestId !== undefined)
    return (yield* run(`${select} AND id = $4 LIMIT $1`, limit, hook, since, requestId)).map(toQuarantinedRequest)
  const rows =
    after === undefined
      ? (yield* run(`${select} ORDER BY seq DESC LIMIT $1`, limit, hook, since)).toReversed()
      : yield* run(`${select} AND seq > $4 ORDER BY seq LIMIT $1`, limit, hook, since, after)
  return rows.map(toQuarantinedRequest)
}

export function* findSealed(requestId: string): Script<Uint8Array | undefined> {
  const [row] = yield* run('SELECT sealed FROM quarantine WHERE id = $1', requestId)
  return row?.['sealed'] instanceof Uint8Array ? row['sealed'] : undefined
}
