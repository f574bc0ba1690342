// The engine of a place: SQLite for a file, Postgres for a URL. What Postgres needs is loaded only for a URL.
import type { Log } from '../model/log.ts'
import type { StorePlace } from '../model/places.ts'
import { createSqliteReader, createSqliteStore } from './sqlite/sqlite.ts'
import type { OpenedStore, StoreReader } from './store.ts'

export type OpenOptions = {
  /** The most bytes that may wait, read for each delivery. */
  readonly maxWaitingBytes: () => number
  readonly log: Log
}

export async function openStore(place: StorePlace, options: OpenOptions): Promise<OpenedStore> {
  if (place.kind === 'file') return createSqliteStore({ ...options, file: place.file, clock: Date.now })
  const { createPostgresStore } = await import('./postgres/postgres.ts')
  return createPostgresStore({ ...options, url: place.url })
}

/** For a process that only reads, while gateways run or not. Migrates nothing. */
export async function openReader(place: StorePlace): Promise<StoreReader> {
  if (place.kind === 'file') return createSqliteReader({ file: place.file })
  const { createPostgresReader } = await import('./postgres/postgres.ts')
  return createPostgresReader({ url: place.url })
}
