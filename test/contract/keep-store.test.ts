// With UPDATE_STORES=1, keeps a store of this version for `older.ts`: a real gateway writes one of each kind, and is killed.
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { runCommand } from '../e2e/command.ts'
import { startLoopback } from '../e2e/fakes/loopback.ts'
import { makeFolder, post, startGateway } from '../e2e/gateway.ts'
import { databaseUrl, keptSchema, newSchema, withDatabase } from './postgres-stage.ts'

const run = promisify(execFile)
const folder = new URL('../fixtures/stores/', import.meta.url)
const large = { maxBuffer: 100_000_000 }

/** A turn ends by what its message says: `hold` waits for the end of its gateway, `fail` is tried again, `dead` is not. */
const runner = `#!/bin/sh
case "$(cat)" in
  *TASK?hold*) while kill -0 $PPID; do sleep 0.2; done; exit 1 ;;
  *TASK?fail*) exit 1 ;;
  *TASK?dead*) exit 2 ;;
esac
echo done
`

const quiet = { deliver: false }
const mapping = (id: string, more: object) => ({
  id,
  match: { path: id },
  messageTemplate: 'TASK({{text}})',
  sessionKey: `hook:${id}:{{text}}`,
  ...more,
})

const buildConfig = (dir: string, sink: string) => ({
  hooks: {
    mappings: [
      mapping('done', { ...quiet, retain: true }),
      mapping('hold', { ...quiet, sessionKey: 'hook:lane' }),
      ...['fail', 'dead', 'paused'].map((id) => mapping(id, quiet)),
      mapping('down', { deliver: true, channel: 'webhook', to: 'down' }),
      mapping('parked', { ...quiet, transform: { module: 'parked.ts' } }),
      mapping('skip', { transform: { module: 'skip.ts' } }),
      mapping('flow', { ...quiet, flow: { key: 'k{{group}}', total: 1 } }),
      mapping('delayed', { ...quiet, flow: { key: 'd{{text}}', delay: '20s' } }),
      mapping('broke', { ...quiet, budgets: ['small'] }),
      mapping('lastly', { ...quiet, flow: { key: 'x{{group}}', onNew: 'replace' } }),
    ],
  },
  runners: { mine: { kind: 'command', command: join(dir, 'run.sh'), args: [], output: 'text' } },
  agents: { defaults: { runner: 'mine' } },
  channels: {
    webhook: { endpoints: { down: { url: sink, secret: `whsec_${Buffer.alloc(32, 7).toString('base64')}` } } },
  },
  budgets: { small: { turns: 1, period: '1d' } },
})

/** Returns the folder of a gateway that was killed in the middle of its work. */
async function fill(store: object, readStates: (dir: string) => Promise<string[]>): Promise<string> {
  const dir = makeFolder()
  writeFileSync(join(dir, 'run.sh'), runner, { mode: 0o755 })
  const sink = await startLoopback(() => ({ status: 503 }))
  const files = {
    'hooks/transforms/parked.ts': `export default () => { throw new Error('broken') }`,
    'hooks/transforms/skip.ts': 'export default () => null',
  }
  const gateway = await startGateway({ dir, files, config: { ...buildConfig(dir, sink.url), store } })
  expect((await runCommand(['pause', 'mapping:paused'], { dir })).code).toBe(0)
  // the answer to what is skipped is empty
  const send = (hook: string, text: string) =>
    post(gateway, hook, { text, group: 1 }, { 'idempotency-key': text }).catch(() => undefined)
  for (const n of [0, 1, 2]) {
    await post(gateway, 'wake', { text: `wake-${n}`, mode: 'next-heartbeat' }, { 'idempotency-key': `wake-${n}` })
    for (const hook of ['done', 'hold']) await send(hook, `${hook}-${n}`)
  }
  for (const n of [0, 1])
    for (const hook of ['fail', 'dead', 'down', 'parked', 'skip', 'paused', 'broke', 'delayed'])
      await send(hook, `${hook}-${n}`)
  for (const hook of ['flow', 'lastly']) for (const text of ['hold-0', '1', '2']) await send(hook, `${hook}-${text}`)
  await post({ ...gateway, token: 'wrong' }, 'wake', { text: 'refused' })
  await expect
    .poll(async () => ({ tries: sink.received.length >= 2, states: (await readStates(dir)).toSorted() }))
    .toEqual({ tries: true, states: expect.arrayContaining(['dead', 'done', 'queued', 'running']) })
  await gateway.kill()
  return dir
}

const keep = (engine: string, version: number, dump: string) =>
  writeFileSync(new URL(`${engine}-${version}.sql.gz`, folder), gzipSync(dump, { level: 9 }))

test.skipIf(process.env['UPDATE_STORES'] === undefined)('a store of this version is kept, of each engine', async () => {
  const query = async (dir: string, sql: string) =>
    (await run('sqlite3', [join(dir, 'state/hookloom.db'), sql], large)).stdout
  const dir = await fill({}, async (each) => (await query(each, 'SELECT DISTINCT state FROM jobs')).trim().split('\n'))
  const version = Number(await query(dir, 'PRAGMA user_version'))
  expect(version).toBeGreaterThan(0)
  keep('sqlite', version, `${await query(dir, '.dump')}PRAGMA user_version = ${version};\n`)

  const { url, schema, drop } = await newSchema()
  const read = (sql: string) =>
    withDatabase(async (client) => (await client.query<Record<string, unknown>>(sql)).rows, url)
  await fill({ url }, async () => (await read('SELECT DISTINCT state FROM jobs')).map(({ state }) => String(state)))
  const [row] = await read('SELECT version FROM hookloom_schema')
  const { stdout } = await run('pg_dump', ['--no-owner', '--inserts', '-n', schema, databaseUrl], large)
  const isOfTables = (line: string) => !/^(?:SET |CREATE SCHEMA|SELECT pg_catalog\.set_config|\\|--|$)/.test(line)
  keep(
    'postgres',
    Number(row?.['version']),
    stdout.replaceAll(`${schema}.`, '').replaceAll(schema, keptSchema).split('\n').filter(isOfTables).join('\n'),
  )
  await drop()
})
