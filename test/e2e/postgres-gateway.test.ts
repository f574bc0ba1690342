// A gateway with a Postgres store: its start, its commands, and its answers while the database fails.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readPostgresFacts } from '../../src/store/postgres/facts.ts'
import { createProxy } from '../contract/postgres-proxy.ts'
import { databaseUrl, newSchema, whyNoPostgres, withDatabase } from '../contract/postgres-stage.ts'
import { runBuilt, runCommand } from './command.ts'
import { type Gateway, makeConfigDir, post, startGateway } from './gateway.ts'

const database = new URL(databaseUrl).pathname.slice(1)
const password = 'canary%40password'

/** Adds a password, which the server does not ask for. */
function addPassword(url: string): string {
  return url.replace(/^(\w+:\/\/[^:@/]+)(?::[^@/]*)?@/, `$1:${password}@`)
}

/** Schemas that are dropped when the file ends. */
const schemas: (() => Promise<void>)[] = []
async function newUrl(): Promise<{ url: string; schema: string }> {
  const { url, schema, drop } = await newSchema()
  schemas.push(drop)
  return { url: addPassword(url), schema }
}
afterAll(async () => void (await Promise.all(schemas.map((drop) => drop()))))

const config = { store: { url: '${DATABASE_URL}' } }

describe.skipIf(whyNoPostgres)('gateway on Postgres', () => {
  let gateway: Gateway
  let env: { DATABASE_URL: string }
  let shown: string

  beforeAll(async () => {
    const { url } = await newUrl()
    env = { DATABASE_URL: url }
    const { host, pathname } = new URL(url)
    shown = `${host}${pathname}`
    gateway = await startGateway({ config, env })
    await post(gateway, 'wake', { text: 'hello', mode: 'next-heartbeat' })
  })

  const commands = [
    ['list', '--json'],
    ['list', '--dead', '--json'],
    ['show', 'last', '--json'],
    ['events', '--json'],
    ['sessions', '--json'],
  ]
  const runAll = () => Promise.all(commands.map((args) => runCommand(args, { dir: gateway.dir, env })))

  test('the commands read the store while the gateway runs and after it stopped', async () => {
    const beside = await runAll()
    expect(beside.map(({ code }) => code)).toEqual(commands.map(() => 0))
    expect(beside[0]?.json()).toMatchObject([{ hook: 'wake', state: 'accepted' }])
    expect(beside[3]?.json()).toMatchObject([{ text: 'hello' }])
    const running = await runCommand(['doctor', '--json'], { dir: gateway.dir, env })
    expect(running.json()).toContainEqual({
      name: 'database',
      ok: true,
      detail: expect.stringMatching(new RegExp(`^Postgres \\d.* at ${shown}, [\\d.]+ ms`)),
    })
    expect(running.json()).toContainEqual(
      expect.objectContaining({
        name: 'store',
        ok: true,
        detail: expect.stringContaining(`postgres://${shown}: 0 parked`),
      }),
    )
    const outputs = [...beside, running].map(({ stdout, stderr }) => stdout + stderr)
    outputs.push(readFileSync(join(gateway.dir, 'state', 'gateway.json'), 'utf8'))
    expect(outputs.at(-1)).toContain(`"store":"postgres://${shown}"`)
    await gateway.stop()
    const after = await runAll()
    expect(after.map(({ stdout }) => stdout)).toEqual(beside.map(({ stdout }) => stdout))
    const check = await runCommand(['check'], { dir: gateway.dir, env })
    expect(check.stdout).toMatch(
      /several-gateways.*the workspaces of the agents are on the disk of each gateway: share/s,
    )
    outputs.push(gateway.output(), check.stdout, (await runCommand(['schema'], { dir: gateway.dir, env })).stdout)
    expect(outputs.filter((text) => /canary.{1,3}password/.test(text))).toEqual([])
  })

  test('a restarted gateway continues with the deliveries in the database', async () => {
    const again = await startGateway({ dir: gateway.dir, env })
    await post(again, 'wake', { text: 'again' })
    const { stdout } = await runCommand(['events'], { dir: gateway.dir, env })
    expect(stdout).toMatch(/hello[^]*again/)
    await again.stop()
  })

  test('the warning about an open transaction has the statement that ends it, and hookloom doctor warns about a job that is long overdue', async () => {
    const other = await startGateway({ dir: gateway.dir, env })
    await post(other, 'agent', { message: 'hello' })
    await other.printed(/"msg":"[^"]*(replied|done|run)/)
    await other.stop()
    const idle = new Client({ connectionString: env.DATABASE_URL, application_name: 'report' })
    await idle.connect()
    const { rows } = await idle.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    await idle.query(
      `UPDATE jobs SET state = 'queued', ended_at = NULL, created_at = run_at - 1, run_at = run_at - 300000 WHERE seq = (SELECT max(seq) FROM jobs)`,
    )
    await idle.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
    await idle.query('SELECT count(*) FROM jobs')
    const facts = await readPostgresFacts(env.DATABASE_URL, { oldSnapshotSeconds: 0 })
    const ofIdle = facts.warnings.filter((warning) => warning.includes(`pid ${rows[0]?.pid} `))
    expect(ofIdle).toEqual([
      expect.stringMatching(
        /^Vacuum is held back: .*\(report, idle in transaction\).*End it: SELECT pg_terminate_backend\(\d+\)$/,
      ),
    ])
    await idle.query('COMMIT')
    const after = await readPostgresFacts(env.DATABASE_URL, { oldSnapshotSeconds: 0 })
    expect(after.warnings.filter((warning) => warning.includes(`pid ${rows[0]?.pid} `))).toEqual([])
    await idle.end()
    const doctor = await runCommand(['doctor', '--json'], { dir: gateway.dir, env })
    expect(doctor.json()).toContainEqual(
      expect.objectContaining({
        name: 'store',
        ok: false,
        detail: expect.stringMatching(/A job has been due for 5 minutes\. Either no gateway runs/),
      }),
    )
  })

  test('a command fails if the variable of the store URL is not set, and the error names it', async () => {
    const { code, stderr } = await runCommand(['list'], { dir: gateway.dir })
    expect({ code, stderr }).toEqual({
      code: 78,
      stderr: expect.stringContaining('needs DATABASE_URL, which is not set'),
    })
  })

  test('a changed store.url takes effect at the next start, and the log says so', async () => {
    const { url } = await newUrl()
    const changing = await startGateway({ config: { store: { url } } })
    const file = join(changing.dir, 'hookloom.jsonc')
    const text = readFileSync(file, 'utf8')
    const other = url.replace(`/${database}`, '/other')
    expect(other).not.toBe(url)
    writeFileSync(file, text.replace(url, other))
    await changing.printed(/changes of .*store\.url may take effect only at the next start/)
    const { code, stderr } = await runCommand(['list'], { dir: changing.dir })
    expect({ code, stderr }).toEqual({
      code: 65,
      stderr: expect.stringMatching(new RegExp(`uses postgres:.*/${database}, and .*/other now\\. Restart`)),
    })
    await changing.stop()
    expect(changing.output() + stderr).not.toContain('canary')
  })
})

describe.skipIf(whyNoPostgres)('hookloom store copy', () => {
  test('hookloom store copy moves a stopped gateway from SQLite to Postgres and back, and shows no password', async () => {
    const { url } = await newUrl()
    const env = { DATABASE_URL: url }
    const gateway = await startGateway()
    const { dir } = gateway
    await post(gateway, 'wake', { text: 'hello' })
    const copy = (to: string) => runCommand(['store', 'copy', '--to', to], { dir, env })
    const early = await copy('${DATABASE_URL}')
    expect(early).toMatchObject({ code: 69, stderr: expect.stringMatching(/in use by another gateway/) })
    await gateway.stop()
    const { stdout: before } = await runCommand(['list', '--json'], { dir, env })

    const copied = await copy('${DATABASE_URL}')
    expect(copied).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /^deliveries {2}1\n[^]*Now set "store": \{ "url": "\$\{DATABASE_URL\}" \} in hookloom\.jsonc/,
      ),
    })
    const again = await startGateway({ dir, config, env })
    expect(removeNode((await runCommand(['list', '--json'], { dir, env })).stdout)).toBe(removeNode(before))
    const back = join(dir, 'state', 'back.db')
    const busy = await copy(back)
    expect(busy).toMatchObject({
      code: 69,
      stderr: expect.stringMatching(/A gateway uses the store in .*\. Stop every/),
    })
    await again.stop()
    const returned = await copy(back)
    expect(returned).toMatchObject({ code: 0, stdout: expect.stringContaining(`"store": { "file": "${back}" }`) })
    expect(await copy(url)).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('--to names the store of this configuration'),
    })
    expect(await copy(url.replace('postgres:', 'mysql:'))).toMatchObject({
      code: 64,
      stderr: expect.stringMatching(/^✗ --to must be a Postgres URL/),
    })
    expect(await copy('${NOTHING}')).toMatchObject({
      code: 64,
      stderr: expect.stringMatching(/--to needs NOTHING, which is not set/),
    })
    const outputs = [early, copied, busy, returned].map(({ stdout, stderr }) => stdout + stderr)
    expect(outputs.filter((text) => text.includes('canary'))).toEqual([])
  })
})

describe.skipIf(whyNoPostgres)('unusable databases', () => {
  test('an unreachable database does not prevent the start, and hooks answer 503 with Retry-After until it answers', async () => {
    const { url } = await newUrl()
    const door = await createProxy(url)
    await door.close()
    const env = { DATABASE_URL: door.url }
    const gateway = await startGateway({ config, env })
    const send = () =>
      fetch(`${gateway.url}/wake`, {
        method: 'POST',
        headers: { authorization: `Bearer ${gateway.token}`, 'content-type': 'application/json' },
        body: '{"text":"hello"}',
      })
    const refused = await send()
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5'])
    const refusal = await refused.text()
    expect(refusal).toContain('"store-unavailable"')
    expect(refusal).not.toMatch(/127\.0\.0\.1|test|ECONN/)
    expect((await fetch(`${gateway.adminUrl}/readyz`)).status).toBe(503)
    const doctor = await runCommand(['doctor', '--json'], { dir: gateway.dir, env })
    expect(doctor.json()).toContainEqual(
      expect.objectContaining({
        name: 'store',
        ok: false,
        detail: expect.stringMatching(
          new RegExp(
            `^Postgres at 127\\.0\\.0\\.1:\\d+/${database} cannot be used: nothing listens there\\. Start Postgres`,
          ),
        ),
      }),
    )
    await door.open()
    await gateway.printed(/The store can be used again/)
    expect((await send()).status).toBe(200)
    // the database fails while the gateway serves
    await door.close()
    expect((await send()).status).toBe(503)
    await door.open()
    await expect.poll(async () => (await send()).status).toBe(200)
    await gateway.stop()
    expect(gateway.output()).not.toMatch(/canary.{1,3}password/)
    const { stdout } = await runCommand(['events', '--json'], { dir: gateway.dir, env })
    expect(stdout.split('\n').filter((line) => line.includes('hello'))).toHaveLength(2)
    await door.close()
  })

  test('a database that a newer hookloom wrote prevents the start', async () => {
    const { url, schema } = await newUrl()
    await withDatabase(async (client) => {
      await client.query(`CREATE TABLE ${schema}.hookloom_schema (version integer NOT NULL)`)
      await client.query(`INSERT INTO ${schema}.hookloom_schema VALUES (999)`)
    })
    const dir = makeConfigDir({ config })
    const start = await runBuilt(['start'], { dir, env: { DATABASE_URL: url } })
    expect({ ...start, all: start.stdout + start.stderr }).toMatchObject({
      code: 78,
      all: expect.stringMatching(/newer hookloom \(schema 999; this one knows \d+\)/),
    })
    const list = await runCommand(['list'], { dir, env: { DATABASE_URL: url } })
    expect(list).toMatchObject({ code: 78, stderr: expect.stringContaining('newer hookloom') })
  })

  test('a default transaction isolation other than read committed prevents the start, and doctor reports it', async () => {
    const { url } = await newUrl()
    const off = url.replace('options=', 'options=-c%20default_transaction_isolation%3Dserializable%20')
    const dir = makeConfigDir({ config })
    const env = { DATABASE_URL: off }
    const start = await runBuilt(['start'], { dir, env })
    expect({ ...start, all: start.stdout + start.stderr }).toMatchObject({
      code: 78,
      all: expect.stringMatching(/In .*\/\w+, default_transaction_isolation is "serializable" .*Set it, for example/),
    })
    const doctor = await runCommand(['doctor', '--json'], { dir, env })
    expect(doctor.json()).toContainEqual(
      expect.objectContaining({
        name: 'database',
        ok: false,
        detail: expect.stringMatching(/\/\w+: default_transaction_isolation is "serializable"/),
      }),
    )
  })

  test('hookloom doctor names a database that does not exist, and accepts an empty one', async () => {
    const { url } = await newUrl()
    const dir = makeConfigDir({ config })
    const runDoctor = async (given: string) =>
      (await runCommand(['doctor', '--json'], { dir, env: { DATABASE_URL: given } })).json()
    expect(await runDoctor(url)).toContainEqual(
      expect.objectContaining({
        name: 'database',
        ok: true,
        detail: expect.stringContaining('no gateway has used it'),
      }),
    )
    expect(await runDoctor(url.replace(`/${database}`, '/nowhere'))).toContainEqual(
      expect.objectContaining({
        name: 'store',
        ok: false,
        detail: expect.stringMatching(/\/nowhere cannot be used: the database does not exist\. Create it/),
      }),
    )
    expect((await runCommand(['list'], { dir, env: { DATABASE_URL: url } })).code).toBe(0)
  })
})

/** A copy does not say which gateway received a delivery. */
function removeNode(list: string): string {
  return list.replaceAll(/"node":"[^"]*"/g, '"node":null')
}
