// A Postgres database as the source and as the target of a copy: one transaction, under a lock that keeps gateways from writing.
import { describeDatabase } from '../../base/postgres-url.ts'
import { Problem } from '../../core/model/problem.ts'
import { type ColumnType, type CopiedTable, copiedTables, type CopySource, type CopyTarget } from '../copy.ts'
import type { Row } from '../rows.ts'
import { createDatabaseConnections } from './connection.ts'
import type { Param, Query } from './pool.ts'

const types: Readonly<Record<ColumnType, string>> = { integer: 'bigint', text: 'text', bytes: 'bytea' }
const lockMs = 3_000
/** Long enough to count a table of a large store, which takes minutes. */
const answerMs = 600_000

/** The SQL sources of the tables that are split in Postgres: requests, and the wide parts of jobs, are in separate tables. */
const sources: Readonly<Record<string, string>> = {
  deliveries: 'deliveries t LEFT JOIN requests ON delivery_seq = t.seq',
  jobs: 'jobs t JOIN job_parts ON job_seq = t.seq',
}

/** Tables whose `seq` is that of a delivery. */
const seqsOfDeliveries: ReadonlySet<string> = new Set(['rings', 'repeats'])

/** Throws `store-locked` while a gateway uses the database, and `config-missing` if none has used it. */
export function readPostgres<Result>(url: string, run: (source: CopySource) => Promise<Result>): Promise<Result> {
  return withLock({ url, prepare: 'check', mode: 'SHARE' }, async (query) =>
    run({
      read: ({ name, key, columns }, after, limit) => {
        const place = key.map((column) => `t.${column}`).join(', ')
        const from =
          after === undefined ? '' : `WHERE (${place}) > (${key.map((_, index) => `$${index + 2}`).join(', ')})`
        const own = sources[name] ?? `${name} t`
        return query(
          `SELECT ${Object.keys(columns).map(toColumnSql).join(', ')} FROM ${own} ${from} ORDER BY ${place} LIMIT $1`,
          limit,
          // as: keys are texts and numbers
          ...((after ?? []) as Param[]),
        )
      },
      count: ({ name }) => countRows(query, name),
    }),
  )
}

/** In Postgres, the body of a request that was too large to keep is empty, not NULL. */
function toColumnSql(column: string): string {
  return column === 'body' ? `CASE WHEN head <> '' THEN body END AS body` : column
}

/** Throws `store-locked` while a gateway uses the database, and `conflict` if a table that is copied has any row. */
export function writePostgres<Result>(url: string, run: (target: CopyTarget) => Promise<Result>): Promise<Result> {
  return withLock({ url, prepare: 'migrate', mode: 'SHARE ROW EXCLUSIVE' }, async (query) => {
    for (const { name } of copiedTables) {
      const count = await countRows(query, name)
      if (count === 0) continue
      const next = 'Name an empty database or schema.'
      throw new Problem(
        'conflict',
        `The store in ${describeDatabase(url)} is not empty: ${name} has ${count} rows. ${next}`,
      )
    }
    const result = await run({
      write: (table, rows) => write(query, table, rows),
      count: ({ name }) => countRows(query, name),
    })
    for (const { name } of copiedTables.filter(
      (table) => !seqsOfDeliveries.has(table.name) && 'seq' in table.columns,
    )) {
      await query(
        `SELECT setval(pg_get_serial_sequence($1, 'seq'), greatest(1, max(seq)), max(seq) IS NOT NULL) FROM ${name}`,
        name,
      )
    }
    return result
  })
}

type Locked = {
  readonly url: string
  readonly prepare: 'migrate' | 'check'
  readonly mode: 'SHARE' | 'SHARE ROW EXCLUSIVE'
}

async function withLock<Result>(
  { url, prepare, mode }: Locked,
  run: (query: Query) => Promise<Result>,
): Promise<Result> {
  const { open, transaction, close } = createDatabaseConnections({ url, prepare, answerMs, maxConnections: 1 })
  try {
    await open()
    return await transaction(async ({ query }) => {
      const isRunning = new Problem(
        'store-locked',
        `A gateway uses the store in ${describeDatabase(url)}. Stop every gateway that uses it first. One that was killed counts for 20 seconds more.`,
      )
      await query(`SET LOCAL lock_timeout = ${lockMs}`)
      await query(
        `LOCK TABLE ${[...copiedTables.map(({ name }) => name), 'requests', 'job_parts'].join(', ')} IN ${mode} MODE`,
      ).catch((error: unknown) => {
        throw error instanceof Error && 'code' in error && error.code === '55P03' ? isRunning : error
      })
      if (await isUsed(query)) throw isRunning
      const result = await run(query)
      // a gateway may have started in the meantime, or been paused for longer than its lease: its later writes are not in the copy
      if (await isUsed(query)) throw isRunning
      return result
    })
  } finally {
    await close()
  }
}

/** A running gateway always has a named lease, and releases its leases when it stops. Another writer waits for the lock of the copy. */
async function isUsed(query: Query): Promise<boolean> {
  const now = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint'
  const locked = copiedTables.map(({ name }) => `'${name}'::regclass`).join(', ')
  const rows = await query(
    `SELECT 1 AS one FROM leases WHERE until > ${now}
      UNION ALL SELECT 1 FROM pg_locks WHERE NOT granted AND mode = 'RowExclusiveLock' AND relation IN (${locked}) LIMIT 1`,
  )
  return rows.length > 0
}

async function write(query: Query, { name, columns }: CopiedTable, rows: readonly Row[]): Promise<void> {
  if (name === 'deliveries') return writeDeliveries(query, columns, rows)
  if (name === 'jobs') return writeJobs(query, columns, rows)
  await insert(query, { into: name, columns, rows })
}

async function writeDeliveries(query: Query, columns: CopiedTable['columns'], rows: readonly Row[]): Promise<void> {
  const waits = ({ state }: Row) => state === 'pending' || state === 'parked'
  await insert(query, {
    into: 'deliveries',
    columns: { ...without(columns, ['head', 'body']), bytes: 'integer' },
    rows: rows.map((row) => ({ ...row, bytes: waits(row) ? measureRequestBytes(row) : 0 })),
  })
  await insert(query, {
    into: 'requests',
    columns: { delivery_seq: 'integer', head: 'text', body: 'bytes' },
    rows: rows
      .filter((row) => row['head'] !== null)
      .map((row) => ({
        delivery_seq: row['seq'] ?? null,
        head: row['head'] ?? null,
        body: row['body'] ?? new Uint8Array(),
      })),
  })
}

async function writeJobs(query: Query, columns: CopiedTable['columns'], rows: readonly Row[]): Promise<void> {
  await insert(query, {
    into: 'jobs',
    columns: {
      ...without(columns, ['steps', 'posts', 'planned']),
      agent_id: 'text',
      session_key: 'text',
      bytes: 'integer',
      gate: 'integer',
    },
    rows: rows.map((row) => ({
      ...row,
      ...toSessionColumns(row),
      ...toUnsortedColumns(row),
      bytes: Buffer.byteLength(String(row['planned'])),
    })),
  })
  await insert(query, {
    into: 'job_parts',
    columns: { job_seq: 'integer', steps: 'text', posts: 'text', planned: 'text', step_names: 'text' },
    rows: rows.map((row) => ({ ...row, job_seq: row['seq'] ?? null, step_names: toStepNames(row) })),
  })
}

function without(columns: CopiedTable['columns'], names: readonly string[]): CopiedTable['columns'] {
  return Object.fromEntries(Object.entries(columns).filter(([name]) => !names.includes(name)))
}

/** Jobs with a flow have no key in the copy (`flow` is 0): the first claim sorts them. */
function toUnsortedColumns({ flow = null, state }: Row): Row {
  return flow === null ? { gate: 0 } : { flow: 0, gate: state === 'queued' ? 3 : 0 }
}

function toSessionColumns({ planned }: Row): Row {
  // as: only the stores write it
  const { agentId, sessionKey } = JSON.parse(String(planned)) as {
    readonly agentId: string
    readonly sessionKey: string
  }
  return { agent_id: agentId, session_key: sessionKey }
}

function toStepNames({ steps }: Row): string {
  // as: only the stores write it
  return (JSON.parse(String(steps)) as readonly { readonly name: string }[]).map(({ name }) => name).join(',')
}

function measureRequestBytes({ head, body }: Row): number {
  return Buffer.byteLength(String(head ?? '')) + (body instanceof Uint8Array ? body.byteLength : 0)
}

type Insert = { readonly into: string; readonly columns: CopiedTable['columns']; readonly rows: readonly Row[] }

async function insert(query: Query, { into, columns, rows }: Insert): Promise<void> {
  if (rows.length === 0) return
  const names = Object.keys(columns)
  const values = names.map((name) => (name === 'step_names' ? `string_to_array(${name}, ',')` : name))
  const arrays = Object.values(columns).map((type, index) => `$${index + 1}::${types[type]}[]`)
  await query(
    `INSERT INTO ${into} (${names.join(', ')}) OVERRIDING SYSTEM VALUE SELECT ${values.join(', ')}
      FROM unnest(${arrays.join(', ')}) AS input (${names.join(', ')})`,
    ...names.map((name) => rows.map((row) => row[name] ?? null)),
  ).catch((error: unknown) => {
    // the message of Postgres would quote the row
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    if (!/^2[23]/.test(code)) throw error
    const where = `between ${rows[0]?.[names[0] ?? '']} and ${rows.at(-1)?.[names[0] ?? '']}`
    throw new Problem(
      'store-unavailable',
      `Postgres refuses a row of ${into} whose ${names[0]} is ${where} (SQLSTATE ${code}). Nothing was copied.`,
    )
  })
}

async function countRows(query: Query, table: string): Promise<number> {
  return Number((await query(`SELECT count(*) AS count FROM ${table}`))[0]?.['count'])
}
