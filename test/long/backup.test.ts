// Runs the commands that the page about durability gives for the backup and restore of a Postgres store, with the real pg_dump and
// pg_restore.
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { openReader, openStore } from '../../src/store/open.ts'
import { silentLog } from '../../src/base/log.ts'
import { databaseUrl, whyNoPostgres, withDatabase } from '../contract/postgres-stage.ts'
import { newDelivery, newJob } from '../contract/stage.ts'
import { makeFolder } from '../e2e/gateway.ts'
import { readBlock } from '../pages.ts'

const page = 'src/store/README.md'
const isInstalled = ['pg_dump', 'pg_restore', 'psql'].every(
  (program) => spawnSync(program, ['--version']).error === undefined,
)

test.skipIf(whyNoPostgres ?? (isInstalled ? undefined : 'no programs of Postgres'))(
  'a dump of a Postgres store that is restored into an empty database has the same deliveries and runs',
  { timeout: 120_000 },
  async () => {
    const names = ['first', 'second'].map((name) => `hookloom_${name}_${randomBytes(4).toString('hex')}`)
    const [first = '', second = ''] = names.map((name) => {
      const url = new URL(databaseUrl)
      url.pathname = `/${name}`
      return url.href
    })
    onTestFinished(() =>
      withDatabase(async (client) => {
        for (const name of names) await client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
      }),
    )
    await withDatabase(async (client) => {
      for (const name of names) await client.query(`CREATE DATABASE ${name}`)
    })
    const store = await openStore(
      { kind: 'url', url: first },
      { maxWaitingBytes: () => Number.POSITIVE_INFINITY, log: silentLog },
    )
    onTestFinished(() => store.close())
    for (let count = 0; count < 20; count += 1) await store.append(newDelivery({ at: count, jobs: [newJob()] }))
    const cwd = makeFolder()
    const runShell = (mark: string, url: string) => {
      const { status, stdout, stderr } = spawnSync('sh', ['-c', readBlock(page, 'sh', mark)], {
        cwd,
        env: { ...process.env, DATABASE_URL: url },
        encoding: 'utf8',
      })
      expect([mark, status, status === 0 ? '' : stderr]).toEqual([mark, 0, ''])
      return stdout
    }
    runShell('pg_dump', first)
    runShell('pg_restore', second)
    const read = async (url: string) => {
      const reader = await openReader({ kind: 'url', url })
      const all = [await reader.deliveries({ limit: 100 }), await reader.counts()]
      await reader.close()
      return all
    }
    expect(await read(second)).toEqual(await read(first))
    expect(Number(runShell('psql', second).split('\n')[2])).toBeGreaterThan(1_000)
  },
)
