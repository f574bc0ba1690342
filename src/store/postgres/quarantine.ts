// The sealed requests: ../quarantine.ts.
import {
  limitSealed,
  type QuarantineBounds,
  quarantineColumns,
  type SealedRequest,
  toQuarantineValues,
} from '../quarantine.ts'
import { dialect, runScript } from './flow.ts'
import type { Query } from './pool.ts'

const types = ['text', 'bigint', 'text', 'text', 'text', 'smallint', 'bigint', 'text', 'text', 'bytea']
const insert = `INSERT INTO quarantine (${quarantineColumns.join(', ')})
  SELECT * FROM unnest(${types.map((type, index) => `$${index + 1}::${type}[]`).join(', ')}) ON CONFLICT (id) DO NOTHING`

export async function quarantine(
  query: Query,
  { requests, bounds, now }: { requests: readonly SealedRequest[]; bounds: QuarantineBounds; now: string },
): Promise<void> {
  const rows = requests.map(toQuarantineValues)
  if (rows.length > 0) await query(insert, ...types.map((_, index) => rows.map((values) => values[index] ?? null)))
  await runScript(query, limitSealed(bounds, dialect), now)
}
