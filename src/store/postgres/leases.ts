// Named leases, the gateways, and the clients that are locked out, as rows. Leases are not advisory locks, because a pooler may
// give the connection that has the lock to another gateway.
import type { FailuresQuery, Lease, NodeInfo } from '../owners.ts'
import type { Query } from './pool.ts'
import { newFence } from './flow.ts'

type LeaseTerms = { readonly leaseMs: number; readonly now: string }

export async function lease(
  query: Query,
  { names, leaseMs, now }: LeaseTerms & { names: readonly string[] },
): Promise<Lease[]> {
  const rows = await query(
    `INSERT INTO leases (name, fence, until) SELECT name, ${newFence}, ${now} + $2::bigint
        FROM (SELECT DISTINCT name COLLATE "C" AS name FROM unnest($1::text[]) AS wanted (name)) w ORDER BY name
      ON CONFLICT (name) DO UPDATE SET fence = excluded.fence, until = excluded.until WHERE leases.until <= ${now}
      RETURNING name, fence`,
    names,
    leaseMs,
  )
  return rows.map(({ name, fence }) => ({ name: String(name), fence: Number(fence) }))
}

const held =
  'unnest($1::text[], $2::bigint[]) AS held (name, fence) WHERE leases.name = held.name AND leases.fence = held.fence'

const toParams = (leases: readonly Lease[]) =>
  [leases.map(({ name }) => name), leases.map(({ fence }) => fence)] as const

export async function extendLeases(
  query: Query,
  { leases, leaseMs, now }: LeaseTerms & { leases: readonly Lease[] },
): Promise<string[]> {
  const sql = `UPDATE leases SET until = ${now} + $3::bigint FROM ${held} RETURNING leases.name`
  return (await query(sql, ...toParams(leases), leaseMs)).map(({ name }) => String(name))
}

export async function endLeases(query: Query, leases: readonly Lease[]): Promise<void> {
  await query(`DELETE FROM leases USING ${held}`, ...toParams(leases))
}

export async function join(query: Query, node: NodeInfo, now: string): Promise<void> {
  await query(
    `INSERT INTO nodes (id, version, generation, address, seen_at) VALUES ($1, $2, $3, $4, ${now})
      ON CONFLICT (id) DO UPDATE SET version = excluded.version, generation = excluded.generation,
        address = excluded.address, seen_at = excluded.seen_at`,
    node.id,
    node.version,
    node.generation,
    node.address,
  )
}

/** The rows are locked in the order of the clients, so that two gateways do not wait for each other in a circle. */
const noteFailuresSql = (now: string) => `
  INSERT INTO lockouts AS l (scope, client, count, since, locked_until)
    SELECT $1, client, count, ${now}, CASE WHEN count >= $4::int THEN ${now} + $6::bigint ELSE 0 END
      FROM unnest($2::text[], $3::int[]) AS failed (client, count) ORDER BY client COLLATE "C"
  ON CONFLICT (scope, client) DO UPDATE SET
    count = CASE WHEN l.since > ${now} - $5::bigint AND l.locked_until = 0 THEN l.count ELSE 0 END + excluded.count,
    since = CASE WHEN l.since > ${now} - $5::bigint AND l.locked_until = 0 THEN l.since ELSE ${now} END,
    locked_until = CASE
      WHEN CASE WHEN l.since > ${now} - $5::bigint AND l.locked_until = 0 THEN l.count ELSE 0 END + excluded.count >= $4::int
      THEN ${now} + $6::bigint ELSE 0 END
    WHERE l.locked_until <= ${now}`

export async function noteFailures(query: Query, given: FailuresQuery, now: string): Promise<void> {
  const { scope, clients, failures, windowMs, lockMs } = given
  const names = clients.map(({ client }) => client)
  const counts = clients.map(({ count }) => count)
  await query(noteFailuresSql(now), scope, names, counts, failures, windowMs, lockMs)
  // expired failures and locks are deleted here: an attacker must not fill the table
  await query(
    `DELETE FROM lockouts WHERE (scope, client) IN (SELECT scope, client FROM lockouts
      WHERE scope = $1 AND locked_until <= ${now} AND since <= ${now} - $2::bigint LIMIT 2000 FOR UPDATE SKIP LOCKED)`,
    scope,
    windowMs,
  )
}

export async function lockouts(query: Query, scope: string, now: string): Promise<{ client: string; forMs: number }[]> {
  const sql = `SELECT client, locked_until - ${now} AS for_ms FROM lockouts WHERE scope = $1 AND locked_until > ${now} LIMIT 10000`
  return (await query(sql, scope)).map(({ client, for_ms: forMs }) => ({
    client: String(client),
    forMs: Number(forMs),
  }))
}
