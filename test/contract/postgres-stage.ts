// Gives each store under test an empty schema in the database of HOOKLOOM_TEST_POSTGRES. Without a database, gives the reason why tests are
// skipped.
import { randomBytes } from 'node:crypto'
import { Client } from 'pg'
import { createPostgresStore } from '../../src/store/postgres/postgres.ts'
import type { Clock, Store } from '../../src/store/store.ts'
import { onFileEnd } from '../file-end.ts'

export const databaseUrl = process.env['HOOKLOOM_TEST_POSTGRES'] ?? 'postgres://root@127.0.0.1:5432/test'

/** The name of the schema in a kept dump, where a function names it. */
export const keptSchema = 'older_store'

export async function withDatabase<Result>(
  work: (client: Client) => Promise<Result>,
  at: string = databaseUrl,
): Promise<Result> {
  const client = new Client({ connectionString: at, connectionTimeoutMillis: 2_000 })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** Why tests on Postgres are skipped. Undefined if they can run. Throws if HOOKLOOM_TEST_POSTGRES is set and there is no database. */
export const whyNoPostgres: string | undefined = await withDatabase(async () => undefined).catch((error: unknown) => {
  if (process.env['HOOKLOOM_TEST_POSTGRES'] !== undefined) throw error
  return `no Postgres at ${new URL(databaseUrl).host}: set HOOKLOOM_TEST_POSTGRES to the URL of a database`
})

/** Creates an empty schema. */
export async function newSchema(): Promise<{ schema: string; url: string; drop: () => Promise<void> }> {
  const schema = `hookloom_${randomBytes(6).toString('hex')}`
  await withDatabase((client) => client.query(`CREATE SCHEMA ${schema}`))
  const drop = () => withDatabase(async (client) => void (await client.query(`DROP SCHEMA ${schema} CASCADE`)))
  const separator = databaseUrl.includes('?') ? '&' : '?'
  const url = `${databaseUrl}${separator}options=${encodeURIComponent(`-c search_path=${schema}`)}`
  return { schema, url, drop }
}

/** Empty schemas whose stores are closed. To empty a schema takes a tenth of the time that it takes to create one. */
const free: Awaited<ReturnType<typeof newSchema>>[] = []

/** Opens stores on the same empty schema. When all of them are closed, the schema can be used again, until the end of the test file. */
export async function openStores(count: number, clock: Clock): Promise<Store[]> {
  return (await openSchema(count, clock)).stores
}

/** Like `openStores`, and also returns the URL of the schema. */
export async function openSchema(count: number, clock: Clock): Promise<{ stores: Store[]; url: string }> {
  const used = free.pop() ?? (await createFree())
  let open = count
  const stores = Array.from({ length: count }, () => {
    const store = createPostgresStore({ url: used.url, now: () => `${clock()}::bigint` })
    return {
      ...store,
      close: async () => {
        await store.close()
        open -= 1
        if (open > 0) return
        await emptySchema(used.schema)
        free.push(used)
      },
    }
  })
  return { stores, url: used.url }
}

/** One store that passes its calls to these stores in turn. */
export function takeTurns(stores: readonly Store[]): Store {
  const [first] = stores
  if (first === undefined) throw new Error('no store was opened')
  let calls = 0
  const close = () => Promise.all(stores.map((store) => store.close()))
  const callInTurn =
    (name: keyof Store) =>
    (...given: unknown[]) => {
      calls += 1
      const store = stores[calls % stores.length] ?? first
      return Reflect.apply(store[name], store, given)
    }
  const names = Object.keys(first) as (keyof Store)[] // as: the keys of a store
  // as: the object has every call of a store
  return Object.fromEntries(
    names.map((name) => [name, name === 'close' ? close : callInTurn(name)]),
  ) as unknown as Store
}

async function createFree() {
  onFileEnd(dropFree)
  return newSchema()
}

async function dropFree(): Promise<void> {
  await Promise.all(free.splice(0).map(({ drop }) => drop()))
}

export async function emptySchema(schema: string): Promise<void> {
  await withDatabase(async (client) => {
    const { rows } = await client.query<{ name: string }>(
      `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
        WHERE schemaname = $1 AND tablename <> 'hookloom_schema'`,
      [schema],
    )
    // not TRUNCATE, which creates a new file for each table and so is slower
    const deletes = rows.map(({ name }) => `DELETE FROM ${name}`).join('; ')
    await client.query(`BEGIN; ${deletes}; COMMIT`)
  })
}
