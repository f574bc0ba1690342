// The engines of stores. The code for Postgres is loaded only for a URL.
import { defineStore, type StoreDefinition } from './definition.ts'
import { createSqliteReader, createSqliteStore } from './sqlite/sqlite.ts'

/** The embedded engine: a file with one owner. */
const sqlite = defineStore({
  takes: 'file',
  open: ({ file }, options) => createSqliteStore({ ...options, file }),
  openReader: createSqliteReader,
  readAll: async ({ file }, run) => (await import('./sqlite/copy.ts')).readSqlite(file, run),
  fill: async ({ file }, run) => (await import('./sqlite/copy.ts')).writeSqlite(file, run),
})

/** The engine for several gateways on one store. */
const postgres = defineStore({
  takes: 'url',
  async open({ url }, { maxWaitingBytes, log }) {
    const { createPostgresStore } = await import('./postgres/postgres.ts')
    return createPostgresStore({ url, maxWaitingBytes, log })
  },
  openReader: async ({ url }) => (await import('./postgres/postgres.ts')).createPostgresReader({ url }),
  readAll: async ({ url }, run) => (await import('./postgres/copy.ts')).readPostgres(url, run),
  fill: async ({ url }, run) => (await import('./postgres/copy.ts')).writePostgres(url, run),
})

export const engines: readonly StoreDefinition[] = [sqlite, postgres]
