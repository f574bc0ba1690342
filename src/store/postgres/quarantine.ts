// The sealed requests: ../quarantine.ts.
import {
  type QuarantineBounds,
  type QuarantinedRequest,
  type QuarantineQuery,
  quarantineColumns,
  type SealedRequest,
  selectBeyond,
} from '../quarantine.ts'
import { toQuarantinedRequest, toQuarantineValues } from '../rows.ts'
import type { Query } from './pool.ts'

export const quarantineSchema = `
CREATE TABLE quarantine (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  received_at bigint NOT NULL,
  bytes bigint NOT NULL,
  known smallint NOT NULL,
  id text COLLATE "C" NOT NULL UNIQUE,
  hook text COLLATE "C" NOT NULL,
  label text COLLATE "C" NOT NULL,
  network text COLLATE "C" NOT NULL,
  key_id text NOT NULL,
  refusal text NOT NULL,
  sealed bytea NOT NULL
);
`

const types = ['text', 'bigint', 'text', 'text', 'text', 'smallint', 'bigint', 'text', 'text', 'bytea']
const insert = `INSERT INTO quarantine (${quarantineColumns.join(', ')})
  SELECT * FROM unnest(${types.map((type, index) => `$${index + 1}::${type}[]`).join(', ')}) ON CONFLICT (id) DO NOTHING`

/** Rows are locked in a fixed order, so that two gateways do not wait for each other in a circle. */
const deleteAll = (condition: string) => `DELETE FROM quarantine WHERE seq IN
  (SELECT seq FROM quarantine WHERE ${condition} ORDER BY seq FOR UPDATE SKIP LOCKED) RETURNING seq`
const deleteOld = deleteAll('received_at < $1')
const deleteBeyond = deleteAll(
  `seq IN (${selectBeyond({ larger: 'greatest', rows: '$1::bigint', bytes: '$2::bigint' })})`,
)

export async function quarantine(
  query: Query,
  { requests, bounds }: { requests: readonly SealedRequest[]; bounds: QuarantineBounds },
): Promise<void> {
  const rows = requests.map(toQuarantineValues)
  if (rows.length > 0) await query(insert, ...types.map((_, index) => rows.map((values) => values[index] ?? null)))
  await query(deleteOld, bounds.olderThan)
  const [size] = await query('SELECT count(*) AS requests, coalesce(sum(bytes), 0)::bigint AS bytes FROM quarantine')
  if (Number(size?.['requests']) <= bounds.maxRequests && Number(size?.['bytes']) <= bounds.maxBytes) return
  await query(deleteBeyond, bounds.maxRequests, bounds.maxBytes)
}

export async function noteRefusals(
  query: Query,
  refusals: readonly Pick<QuarantinedRequest, 'requestId' | 'refusal'>[],
): Promise<void> {
  await query(
    `UPDATE quarantine q SET refusal = given.refusal FROM unnest($1::text[], $2::text[]) AS given (id, refusal) WHERE q.id = given.id`,
    refusals.map(({ requestId }) => requestId),
    refusals.map(({ refusal }) => refusal),
  )
}

export async function deleteSealed(query: Query, requestIds: readonly string[]): Promise<number> {
  return (await query(deleteAll('id = ANY ($1::text[])'), requestIds)).length
}

const shown = 'SELECT seq, id, received_at, hook, refusal, key_id FROM quarantine'
const filters = '($2::text IS NULL OR hook = $2) AND received_at >= $3'
const selectNewest = `${shown} WHERE ${filters} ORDER BY seq DESC LIMIT $1`
const selectOne = `${shown} WHERE ${filters} AND id = $4 LIMIT $1`
const selectAfter = `${shown} WHERE ${filters} AND seq > $4 ORDER BY seq LIMIT $1`

export async function findQuarantined(query: Query, given: QuarantineQuery): Promise<QuarantinedRequest[]> {
  const { limit, after, requestId, hook, since = 0 } = given
  if (requestId !== undefined) return (await query(selectOne, limit, hook, since, requestId)).map(toQuarantinedRequest)
  const rows =
    after === undefined
      ? (await query(selectNewest, limit, hook, since)).toReversed()
      : await query(selectAfter, limit, hook, since, after)
  return rows.map(toQuarantinedRequest)
}

export async function findSealed(query: Query, requestId: string): Promise<Uint8Array | undefined> {
  const [row] = await query('SELECT sealed FROM quarantine WHERE id = $1', requestId)
  return row?.['sealed'] instanceof Uint8Array ? row['sealed'] : undefined
}
