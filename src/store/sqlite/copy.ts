// A SQLite file as the source and as the target of a copy.
import { existsSync, linkSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { Problem } from '../../core/model/problem.ts'
import type { CopiedTable, CopySource, CopyTarget } from '../copy.ts'
import { completeCatalog, firstSeq } from './catalog.ts'
import { type Database, openDatabase, type SqlValue, classifyError } from './driver.ts'
import { ensurePrivate, describeFile, findRealFile, makeFolder, pageBytes, syncFolder } from './files.ts'
import { selectJob, selectWake, wakeOffset } from './jobs.ts'
import { type StoreLock, takeLock } from './lock.ts'
import { applyMigrations, migrate } from './migrations.ts'
import { eventColumns, eventTables } from './sessions.ts'
import { readCopied, sumColumns } from './sums.ts'

/**
 * Throws `store-locked` while a gateway uses the file, and `config-missing` if there is no file. The file is read in a transaction that brings it to the
 * schema of this version, and that is rolled back: an older hookloom can still use the file.
 */
export async function readSqlite<Result>(file: string, run: (source: CopySource) => Promise<Result>): Promise<Result> {
  if (!existsSync(file))
    throw new Problem('config-missing', `There is no store at ${file}, so there is nothing to copy.`)
  const lock = takeLock(findRealFile(file))
  const db = openUnder(lock, file)
  try {
    db.exec('BEGIN IMMEDIATE')
    applyMigrations(db, describeFile(file))
    completeCatalog(db)
    return await run({
      read: async ({ name, key, columns }, after, limit) => {
        const sql = selectPage({ name, key, columns })
        try {
          const place = after ?? key.map((column) => (columns[column] === 'text' ? '' : firstSeq))
          return db.all(sql, limit, ...place).map((row) => readCopied(name, row))
        } catch (error) {
          if (error instanceof Problem) throw error
          const what = classifyError(error)?.what ?? 'SQLite refuses it'
          throw new Problem('store-unavailable', `${name} in ${file} cannot be read: ${what}. Run "hookloom doctor".`, {
            cause: error,
          })
        }
      },
      count: async ({ name }) => countRows(db, name) + (name === 'jobs' ? countRows(db, 'wake_ids') : 0),
    })
  } finally {
    if (db.inTransaction) db.exec('ROLLBACK')
    db.close()
    lock.release()
  }
}

function openUnder(lock: StoreLock, file: string): Database {
  try {
    return openDatabase(file, { readOnly: false, busyMs: 2_000 })
  } catch (error) {
    lock.release()
    throw error
  }
}

/** The first `?1` rows of a table whose keys follow the key in `?2` and the next parameters. */
function selectPage({ name, key, columns }: CopiedTable): string {
  const names = [...Object.keys(columns), ...Object.keys(sumColumns[name] ?? {})]
  const place = key.join(', ')
  const from = `WHERE (${place}) > (${key.map((_, index) => `?${index + 2}`).join(', ')}) ORDER BY ${place} LIMIT ?1`
  // only SQLite has wakes, and the texts of their events, in the rows of deliveries
  if (name === 'events') return `SELECT ${names.join(', ')} FROM (SELECT ${eventColumns} FROM ${eventTables}) ${from}`
  if (name !== 'jobs') return `SELECT ${names.map(toColumnSql).join(', ')} FROM ${name} ${from}`
  return `SELECT * FROM (SELECT ${names.join(', ')} FROM (${selectJob}) ${from})
    UNION ALL SELECT * FROM (SELECT ${names.join(', ')} FROM (${selectWake}
      WHERE wake_id IS NOT NULL AND seq > ?2 + ${wakeOffset} ORDER BY deliveries.seq LIMIT ?1)) ORDER BY seq LIMIT ?1`
}

/** In a file, the gateway that took a delivery follows from the seq of the delivery. A copy into a file does not keep the gateway. */
function toColumnSql(column: string): string {
  if (column !== 'node') return column
  return '(SELECT n.id FROM nodes n WHERE n.first_seq <= deliveries.seq ORDER BY n.first_seq DESC, n.place DESC LIMIT 1) AS node'
}

/** Throws `conflict` if the file exists. The copy has another name until it is complete. */
export async function writeSqlite<Result>(file: string, run: (target: CopyTarget) => Promise<Result>): Promise<Result> {
  const exists = () =>
    new Problem('conflict', `${file} exists already. Give --to the name of a file that does not exist.`)
  if (existsSync(file)) throw exists()
  // SQLite would replay these files into the copy
  const [stale] = ['-wal', '-shm', '-journal'].map((ending) => `${file}${ending}`).filter((rest) => existsSync(rest))
  if (stale !== undefined) {
    throw new Problem(
      'conflict',
      `${stale} is there, and belongs to an older store. Delete it, or give --to another name.`,
    )
  }
  makeFolder(dirname(file))
  const draft = `${file}.copy`
  rmSync(draft, { force: true })
  ensurePrivate(draft)
  const db = openDatabase(draft, { readOnly: false, busyMs: 2_000 })
  try {
    db.exec(`PRAGMA page_size = ${pageBytes}; PRAGMA journal_mode = MEMORY; PRAGMA synchronous = FULL`)
    migrate(db, describeFile(file))
    db.exec('BEGIN IMMEDIATE')
    const result = await run({
      write: async ({ name, columns }, rows) => {
        const names = Object.keys(columns).filter((column) => column !== 'node')
        // every gate is closed until all jobs are copied
        const [gate, closed] = name === 'jobs' ? [', gate', ', 1'] : ['', '']
        const summed = Object.entries(sumColumns[name] ?? {})
        const all = [...names, ...summed.map(([column]) => column)]
        const sql = `INSERT INTO ${name} (${all.join(', ')}${gate}) VALUES (${all.map(() => '?').join(', ')}${closed})`
        for (const row of rows) {
          const values = names.map((column) => toUnsortedValue(column, row[column] ?? null))
          db.run(sql, ...values, ...summed.map(([, sum]) => sum(row) ?? null))
        }
      },
      count: async ({ name }) => countRows(db, name),
    })
    openGates(db)
    completeCatalog(db)
    db.exec('COMMIT')
    db.close()
    linkSync(draft, file)
    syncFolder(dirname(file))
    return result
  } catch (error) {
    throw error instanceof Error && 'code' in error && error.code === 'EEXIST' ? exists() : error
  } finally {
    closeQuietly(db)
    rmSync(draft, { force: true })
  }
}

function closeQuietly(db: Database): void {
  try {
    db.close()
  } catch {
    // after a complete copy, the connection is closed already
  }
}

/** Jobs with a flow have no key in the copy (`flow` is 0): the first claim sorts them. */
function toUnsortedValue(column: string, value: SqlValue): SqlValue {
  return column === 'flow' && value !== null ? 0 : value
}

/** Only the first unfinished job of a lane can be claimed, and none in a lane with a running job. */
function openGates(db: Database): void {
  db.run(
    `UPDATE jobs SET gate = CASE WHEN state = 'queued' AND flow IS NOT NULL THEN 3 WHEN state <> 'queued' OR run_at <= ? OR run_at = created_at THEN 0 ELSE 2 END
      WHERE lane IS NULL OR ended_at IS NOT NULL OR state = 'running'
        OR (seq IN (SELECT min(seq) FROM jobs WHERE lane IS NOT NULL AND ended_at IS NULL GROUP BY lane)
          AND lane NOT IN (SELECT lane FROM jobs WHERE lane IS NOT NULL AND ended_at IS NULL AND state = 'running'))`,
    Date.now(),
  )
}

function countRows(db: Database, table: string): number {
  return Number(db.get(`SELECT count(*) AS count FROM ${table}`)?.['count'])
}
