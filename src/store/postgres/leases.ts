// Named leases and the gateways, as rows. Not advisory locks: a pooler may give those to another client.
import type { Lease, NodeInfo } from '../owners.ts'
import type { Query } from './connection.ts'
import { newFence } from './jobs.ts'

type Given = { readonly leaseMs: number; readonly now: string }

export async function lease(
  query: Query,
  { names, leaseMs, now }: Given & { names: readonly string[] },
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
  { leases, leaseMs, now }: Given & { leases: readonly Lease[] },
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
