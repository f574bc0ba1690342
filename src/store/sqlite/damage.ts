// Compares the checksums of rows for `doctor`: first of those that an agent will be told or that will be sent, then of the newest ones.
import type { Database } from './driver.ts'
import { selectJob } from './jobs.ts'
import { withCurrentTables } from './older.ts'
import { eventColumns, eventTables } from './sessions.ts'
import { readSchemaVersion } from './migrations.ts'
import { factsSql, isRowIntact } from './sums.ts'

export type SumCheck = {
  readonly compared: number
  /** Some of the rows that are damaged: the table, and the id of a delivery or a run. */
  readonly damaged: readonly string[]
}

/** The most rows of each kind. With all of them, a store of any size adds about three tenths of a second. */
const most = 1_000
const rowsAtOnce = 50
const maxNamed = 5

const newest = (what: string) => `SELECT * FROM (SELECT seq FROM ${what} ORDER BY seq DESC LIMIT ${most})`

/** Each table with the rows to compare, and how these are read. `?1`: a JSON array of their seqs. */
const tables = [
  {
    name: 'deliveries',
    places: [`deliveries WHERE state IN ('pending', 'parked')`, 'deliveries WHERE head IS NOT NULL', 'deliveries'],
    select: `SELECT ${factsSql}, head, body, request_sum FROM deliveries WHERE seq IN (SELECT value FROM json_each(?1))`,
  },
  {
    name: 'jobs',
    places: ['jobs WHERE ended_at IS NULL', `jobs WHERE state = 'dead'`, 'jobs'],
    select: `${selectJob} WHERE j.seq IN (SELECT value FROM json_each(?1))`,
  },
  {
    name: 'events',
    places: ['events WHERE consumed_at IS NULL', 'events'],
    select: `SELECT ${eventColumns} FROM ${eventTables} WHERE e.seq IN (SELECT value FROM json_each(?1))`,
  },
  {
    name: 'messages',
    places: ['messages'],
    select: 'SELECT * FROM messages WHERE seq IN (SELECT value FROM json_each(?1))',
  },
]
const selectSessions = `SELECT * FROM sessions ORDER BY updated_at DESC LIMIT ${most}`

/** `file`: its name in messages. Throws SQLite's error, or `config-invalid` if a newer hookloom wrote the file. */
export function compareSums(db: Database, file: string): SumCheck {
  const version = readSchemaVersion(db, file)
  if (version === 0) return { compared: 0, damaged: [] }
  const current = withCurrentTables(db, version)
  const damaged: string[] = []
  let compared = 0
  const compare = (table: string, rows: ReturnType<Database['all']>) => {
    for (const row of rows) {
      compared += 1
      if (!isRowIntact(table, row)) damaged.push(`${table} ${String(row['id'] ?? row['seq'] ?? row['session_key'])}`)
    }
  }
  for (const { name, places, select } of tables) {
    const seqs = new Set(current.all(places.map(newest).join(' UNION ')).map(({ seq }) => seq))
    const left = [...seqs]
    while (left.length > 0) compare(name, current.all(select, JSON.stringify(left.splice(0, rowsAtOnce))))
  }
  compare('sessions', current.all(selectSessions))
  return { compared, damaged: damaged.slice(0, maxNamed) }
}
