// Facts about a database that an operator should know before they cause trouble, for `hookloom doctor`. Read-only, even where no gateway
// has run yet.
import { describeDatabase } from '../../base/postgres-url.ts'
import { Problem } from '../../core/model/problem.ts'
import { createDatabaseConnections } from './connection.ts'
import { checkVersion } from './migrations.ts'
import type { Query } from './pool.ts'
import { readSettings } from './settings.ts'

export type PostgresFacts = {
  /** `host:port/database` */
  readonly shown: string
  readonly version: string
  /** The median time of `SELECT 1`. */
  readonly latencyMs: number
  /** Why this program cannot use the tables; `config-missing` if there are none yet. */
  readonly schema: Problem | undefined
  /** Settings that would lose deliveries, or prevent writing. */
  readonly faults: readonly string[]
  /** Whether the server notices a page that its disk changed. */
  readonly hasChecksums: boolean
  /** Conditions that slow the database down in the long run. */
  readonly warnings: readonly string[]
}

/**
 * The snapshots in use: vacuum keeps each row version that the oldest one may see. Without pg_read_all_stats, only those of the user's own
 * connections are visible.
 */
const selectSnapshots = `SELECT * FROM (
    SELECT 'the connection with pid ' || pid || ' (' || coalesce(nullif(application_name, ''), 'without a name') || ', ' || state || ')' AS holder,
      'SELECT pg_terminate_backend(' || pid || ')' AS ending, extract(epoch FROM clock_timestamp() - xact_start)::integer AS seconds
    FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
      AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
    UNION ALL
    SELECT 'the prepared transaction ' || quote_literal(gid), 'ROLLBACK PREPARED ' || quote_literal(gid),
      extract(epoch FROM clock_timestamp() - prepared)::integer FROM pg_prepared_xacts WHERE database = current_database()) held
  WHERE seconds >= $1 ORDER BY seconds DESC LIMIT 3`

/** Throws `store-unavailable` if the database does not answer; the message says why, and what to do. */
export async function readPostgresFacts(url: string, { oldSnapshotSeconds = 300 } = {}): Promise<PostgresFacts> {
  const shown = describeDatabase(url)
  const { transaction, close } = createDatabaseConnections({ url, prepare: 'nothing', maxConnections: 1 })
  try {
    return await transaction(async ({ query }) => {
      const { version, isReadOnly, faults } = await readSettings(query)
      const snapshots = await query(selectSnapshots, oldSnapshotSeconds)
      const [settings] = await query(`SELECT current_setting('data_checksums') AS checksums`)
      return {
        shown,
        version,
        latencyMs: await measure(query),
        hasChecksums: settings?.['checksums'] === 'on',
        schema: await checkVersion(query, shown).then(
          () => undefined,
          (error: unknown) => {
            if (error instanceof Problem) return error
            throw error
          },
        ),
        faults: [
          ...(isReadOnly
            ? ['It cannot be written: it is a standby, or read-only. Correct store.url to name the primary.']
            : []),
          ...faults,
        ],
        warnings: snapshots.map(
          ({ holder, ending, seconds }) =>
            `Vacuum is held back: ${holder} has had a transaction open for ${Math.floor(Number(seconds) / 60)} minutes, so deleted rows stay and claims become slow. End it: ${ending}`,
        ),
      }
    })
  } finally {
    await close()
  }
}

async function measure(query: Query): Promise<number> {
  const times: number[] = []
  for (let round = 0; round < 5; round += 1) {
    const startedAt = performance.now()
    await query('SELECT 1')
    times.push(performance.now() - startedAt)
  }
  return Math.round((times.toSorted((one, other) => one - other)[2] ?? 0) * 10) / 10
}
