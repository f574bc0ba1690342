import { onTestFinished } from 'vitest'
import { createPostgresStore } from '../../src/store/postgres/postgres.ts'
import { olderStores } from './older.ts'
import { keptSchema, newSchema, whyNoPostgres, withDatabase } from './postgres-stage.ts'

const described = [
  `SELECT table_name, column_name, data_type, is_nullable, column_default, is_identity FROM information_schema.columns
    WHERE table_schema = current_schema ORDER BY table_name, ordinal_position`,
  `SELECT replace(indexdef, current_schema || '.', '') AS text FROM pg_indexes WHERE schemaname = current_schema ORDER BY 1`,
  `SELECT conrelid::regclass::text AS name, pg_get_constraintdef(oid) AS text FROM pg_constraint
    WHERE connamespace = current_schema::regnamespace ORDER BY 1, 2`,
  `SELECT proname, prosrc FROM pg_proc WHERE pronamespace = current_schema::regnamespace ORDER BY 1`,
  `SELECT relname, reloptions FROM pg_class WHERE relnamespace = current_schema::regnamespace ORDER BY 1`,
]

olderStores(
  'postgres',
  async (dump = '') => {
    const { url, schema, drop } = await newSchema()
    const rows = (sql: string) =>
      withDatabase(async (client) => (await client.query<Record<string, string>>(sql)).rows, url)
    await rows(dump.replaceAll(keptSchema, schema))
    const closes: (() => Promise<void>)[] = []
    onTestFinished(async () => {
      for (const close of closes) await close()
      await drop()
    })
    return {
      rows,
      version: async () => Number((await rows('SELECT version FROM hookloom_schema'))[0]?.['version']),
      schema: () => Promise.all(described.map(rows)),
      open(clock) {
        const store = createPostgresStore({ url, now: () => `${clock()}::bigint` })
        closes.push(() => store.close())
        return store
      },
      read: undefined,
    }
  },
  whyNoPostgres,
)
