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

/**
 * Deletes the requests beyond the bounds: the oldest ones of the largest network of the largest hook, until the remaining ones fit. So a flood
 * from one network, or to one hook, deletes its own requests. Requests of networks that the hook knows are deleted last.
 */
export function* limitSealed({ maxRequests, maxBytes, olderThan }: QuarantineBounds, dialect: Dialect): Script<void> {
  yield* run(deleteWhere('received_at < $1', dialect), olderThan)
  const { requests, bytes } = sumUp(yield* findHooks())
  if (requests <= maxRequests && bytes <= maxBytes) return
  // a little more than must be, so that not each batch of a flood has to look for the largest shares
  const room = { requests: leaveSlack(maxRequests), bytes: leaveSlack(maxBytes) }
  while (yield* deleteLargest(room, dialect));
}

const leaveSlack = (max: number) => max - Math.floor(max / 64)
/** How many requests are chosen before they are deleted: at least as many networks are compared. */
const [leastChosen, mostChosen] = [64, 4_000]

type Size = { requests: number; bytes: number }
type Network = Size & { readonly name: string; oldest?: { readonly seq: number; readonly bytes: number }[] }
type Hook = Size & { readonly label: string; deletable: number; networks?: readonly Network[] }

/**
 * Deletes some of the requests beyond the room. Returns false if it deleted none. It ranks hooks and networks and not all requests: with 5,000 of them, that
 * held the writer of SQLite for 76 ms.
 */
function* deleteLargest(room: Size, dialect: Dialect): Script<boolean> {
  const toShare = ({ requests, bytes }: Size) => Math.max(requests / room.requests, bytes / room.bytes)
  const hooks = yield* findHooks()
  const left = sumUp(hooks)
  const limit = Math.min(Math.max(left.requests - room.requests, leastChosen), mostChosen)
  const known = hooks.every(({ deletable }) => deletable === 0) ? 1 : 0
  if (known === 1) for (const hook of hooks) hook.deletable = hook.requests
  const chosen: number[] = []
  while (toShare(left) > 1 && chosen.length < limit) {
    const hook = findLargest(
      hooks.filter(({ deletable }) => deletable > 0),
      toShare,
    )
    if (hook === undefined) break
    hook.networks ??= yield* findNetworks(hook, { known, room, limit }, dialect)
    const network = findLargest(hook.networks, toShare)
    if (network === undefined) break
    network.oldest ??= yield* findOldest(hook, network, { known, limit })
    const request = network.oldest.shift()
    if (request === undefined) break
    for (const size of [left, hook, network]) {
      size.requests -= 1
      size.bytes -= request.bytes
    }
    hook.deletable -= 1
    chosen.push(request.seq)
  }
  return (yield* countChanged(deleteWhere(`seq IN (${dialect.list('$1')})`, dialect), JSON.stringify(chosen))) > 0
}

function findLargest<One extends Size>(all: readonly One[], toShare: (size: Size) => number): One | undefined {
  let [largest, share]: [One | undefined, number] = [undefined, 0]
  for (const one of all) {
    const own = toShare(one)
    if (own > share) [largest, share] = [one, own]
  }
  return largest
}

function sumUp(sizes: readonly Size[]): Size {
  return sizes.reduce((sum, { requests, bytes }) => ({ requests: sum.requests + requests, bytes: sum.bytes + bytes }), {
    requests: 0,
    bytes: 0,
  })
}

const sizes = 'count(*) AS requests, CAST(sum(bytes) AS bigint) AS bytes'
const toSize = (row: Row) => ({ requests: Number(row['requests']), bytes: Number(row['bytes']) })

/** `deletable`: the number of requests from networks that the hook does not know. */
function* findHooks(): Script<Hook[]> {
  const rows = yield* run(`SELECT label, ${sizes}, count(*) - sum(known) AS deletable FROM quarantine GROUP BY label`)
  return rows.map((row) => ({ ...toSize(row), label: column(row, 'label'), deletable: Number(row['deletable']) }))
}

type Candidates = { readonly known: number; readonly limit: number }

/** The largest networks of a hook. */
function* findNetworks(
  { label }: Hook,
  { known, room, limit }: Candidates & { readonly room: Size },
  { larger }: Dialect,
): Script<Network[]> {
  const sql = `SELECT network, ${sizes} FROM quarantine WHERE label = $1 AND known = $2 GROUP BY network
    ORDER BY ${larger}(count(*) / CAST($3 AS double precision), sum(bytes) / CAST($4 AS double precision)) DESC LIMIT $5`
  const rows = yield* run(sql, label, known, room.requests, room.bytes, limit)
  return rows.map((row) => ({ ...toSize(row), name: column(row, 'network') }))
}

function* findOldest({ label }: Hook, { name }: Network, { known, limit }: Candidates) {
  const sql = 'SELECT seq, bytes FROM quarantine WHERE label = $1 AND network = $2 AND known = $3 ORDER BY seq LIMIT $4'
  const rows = yield* run(sql, label, name, known, limit)
  return rows.map((row) => ({ seq: Number(row['seq']), bytes: Number(row['bytes']) }))
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
