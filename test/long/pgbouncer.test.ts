// The contract through a pgBouncer in transaction mode, with fewer connections to the server than the stores have. Each transaction may use
// another connection, so the state of a session is lost.
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createDatabaseConnections } from '../../src/store/postgres/connection.ts'
import { planOnce } from '../../src/store/postgres/naming.ts'
import { createPostgresStore } from '../../src/store/postgres/postgres.ts'
import type { Clock, Store } from '../../src/store/store.ts'
import { freePort, makeFolder } from '../e2e/gateway.ts'
import { onFileEnd } from '../file-end.ts'
import { emptySchema, newSchema, takeTurns, whyNoPostgres } from '../contract/postgres-stage.ts'
import { storeContract } from '../contract/store.ts'

const isInstalled = spawnSync('pgbouncer', ['--version']).error === undefined
const whySkipped = whyNoPostgres ?? (isInstalled ? undefined : 'pgbouncer is not installed')

let bouncer: Promise<{ url: string; schema: string }> | undefined

storeContract(
  'Postgres of two gateways behind pgBouncer',
  async (clock) => {
    const { url, schema } = await (bouncer ??= startBouncer())
    await emptySchema(schema)
    return takeTurns([openStore(url, clock), openStore(url, clock)])
  },
  whySkipped,
)

test.skipIf(whySkipped)('no statement gets a name behind pgBouncer', async () => {
  const { url } = await (bouncer ??= startBouncer())
  const { query, close } = createDatabaseConnections({ url })
  onTestFinished(close)
  const names: unknown[] = []
  for (let calls = 0; calls < 5; calls += 1) {
    expect(await query(`${planOnce} SELECT $1::integer AS one`, 1)).toEqual([{ one: 1 }])
    names.push(...(await query('SELECT name FROM pg_prepared_statements')))
  }
  expect(names).toEqual([])
})

function openStore(url: string, clock: Clock): Store {
  return createPostgresStore({ url, now: () => `${clock()}::bigint` })
}

/** Starts a pgBouncer that has two connections to a new schema. */
async function startBouncer(): Promise<{ url: string; schema: string }> {
  const { url, schema, drop } = await newSchema()
  onFileEnd(drop)
  const { hostname, port: serverPort, pathname, username, password } = new URL(url)
  const folder = makeFolder()
  // pgBouncer does not run as root, so another user must be able to read the folder
  chmodSync(folder, 0o755)
  const port = await freePort()
  const login = `user=${username}${password === '' ? '' : ` password=${decodeURIComponent(password)}`}`
  const file = join(folder, 'pgbouncer.ini')
  writeFileSync(
    file,
    `[databases]
hooks = host=${hostname} port=${serverPort || 5432} dbname=${pathname.slice(1)} ${login} connect_query='SET search_path TO ${schema}'
[pgbouncer]
pool_mode = transaction
default_pool_size = 2
auth_type = any
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
`,
  )
  const child = spawn('pgbouncer', [...(process.getuid?.() === 0 ? ['-u', 'nobody'] : []), file], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let printed = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (printed += text))
  onFileEnd(() => child.kill('SIGKILL'))
  const ended = new Promise<never>((_, failed) =>
    child.once('exit', (code) => failed(new Error(`pgbouncer ended with ${code}: ${printed}`))),
  )
  ended.catch(() => undefined)
  while (!(await Promise.race([isOpen(port), ended])));
  return { url: `postgres://any@127.0.0.1:${port}/hooks`, schema }
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => done(true)).once('error', () => done(false))
    socket.once('connect', () => socket.destroy())
  })
}
