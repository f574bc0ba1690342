// Chooses the engine of a store by its place: SQLite for a file, Postgres for a URL. The code for Postgres is loaded only for a URL.
import type { Log } from '../base/log.ts'
import type { StorePlace } from '../model/places.ts'
import { copyRows, type CopySource, type CopyTarget } from './copy.ts'
import type { PostgresFacts } from './postgres/facts.ts'
import { createSqliteReader, createSqliteStore } from './sqlite/sqlite.ts'
import type { OpenedStore, StoreReader } from './store.ts'

type OpenOptions = {
  /** The maximum number of bytes that may wait in the store. It is read for each delivery. */
  readonly maxWaitingBytes: () => number
  readonly log: Log
}

export async function openStore(place: StorePlace, options: OpenOptions): Promise<OpenedStore> {
  if (place.kind === 'file') return createSqliteStore({ ...options, file: place.file, clock: Date.now })
  const { createPostgresStore } = await import('./postgres/postgres.ts')
  return createPostgresStore({ ...options, url: place.url })
}

/** Opens a store for reading, whether gateways run or not. It never migrates the store. */
export async function openReader(place: StorePlace): Promise<StoreReader> {
  if (place.kind === 'file') return createSqliteReader({ file: place.file })
  const { createPostgresReader } = await import('./postgres/postgres.ts')
  return createPostgresReader({ url: place.url })
}

/**
 * The facts that `hookloom doctor` shows about a database. Throws `store-unavailable`, with the reason and the next step, if it does not
 * answer.
 */
export async function readDatabaseFacts(url: string): Promise<PostgresFacts> {
  const { readPostgresFacts } = await import('./postgres/facts.ts')
  return readPostgresFacts(url)
}

/**
 * Copies a store into an empty store of any engine, all or nothing, and returns the number of rows of each table. Throws `store-locked`
 * if a gateway uses one of the stores, and `conflict` if the target is not empty.
 */
export async function copyStore(
  { from, to }: { from: StorePlace; to: StorePlace },
  report: (table: string, rows: number) => unknown,
): Promise<Readonly<Record<string, number>>> {
  const copy = (target: CopyTarget) => readAll(from, (source) => copyRows(source, target, report))
  if (to.kind === 'file') return (await import('./sqlite/copy.ts')).writeSqlite(to.file, copy)
  return (await import('./postgres/copy.ts')).writePostgres(to.url, copy)
}

async function readAll<Result>(place: StorePlace, run: (source: CopySource) => Promise<Result>): Promise<Result> {
  if (place.kind === 'file') return (await import('./sqlite/copy.ts')).readSqlite(place.file, run)
  return (await import('./postgres/copy.ts')).readPostgres(place.url, run)
}
