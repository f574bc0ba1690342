// Two gateways on one Postgres, each behind a failing network. Failures of the database or the network cost answers, never deliveries.
import { randomUUID } from 'node:crypto'
import { Agent } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { createPostgresStore } from '../../src/store/postgres/postgres.ts'
import { createProxy } from '../contract/postgres-proxy.ts'
import { newSchema, whyNoPostgres, withDatabase } from '../contract/postgres-stage.ts'
import { createHistory } from '../history/history.ts'
import { hookToken } from './gateway.ts'
import { startInside } from './inside.ts'
import { postOnce } from './load.ts'

let closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.toReversed()) await close()
  closing = []
})

async function openDatabase(settings = '') {
  const { schema, drop, ...own } = await newSchema()
  const url = own.url.replace('options=', `options=${encodeURIComponent(settings)}`)
  closing.push(drop)
  const start = async () => {
    const proxy = await createProxy(url)
    const gateway = await startInside({ store: createPostgresStore({ url: proxy.url }), config: {} })
    closing.push(gateway.stop)
    return { ...gateway, proxy }
  }
  const queryDatabase = (sql: string) =>
    withDatabase(async (client) => {
      await client.query(`SET search_path TO ${schema}`)
      return (await client.query<Record<string, unknown>>(sql)).rows
    })
  return { start, queryDatabase }
}

async function send(gateway: { url: string }, key: string = randomUUID()) {
  const startedAt = performance.now()
  const response = await fetch(`${gateway.url}/wake`, {
    method: 'POST',
    headers: { authorization: `Bearer ${hookToken}`, 'content-type': 'application/json', 'idempotency-key': key },
    body: JSON.stringify({ text: 'hello' }),
  })
  const { deliveryId } = (await response.json()) as { deliveryId?: string }
  return { key, status: response.status, deliveryId, tookMs: performance.now() - startedAt }
}

const wait = (ms: number) => new Promise((done) => setTimeout(done, ms))

describe.skipIf(whyNoPostgres)('two gateways, one without its database', () => {
  test('both gateways answer 200 again after one of them lost the answers of its database, and each delivery is stored once', async () => {
    const { start, queryDatabase } = await openDatabase()
    const one = await start()
    const two = await start()
    expect([(await send(one)).status, (await send(two)).status]).toEqual([200, 200])
    const sent: ReturnType<typeof send>[] = []
    one.proxy.loseAnswers(true)
    for (const endAt = performance.now() + 5_000; performance.now() < endAt; await wait(50)) sent.push(send(one))
    expect((await send(two)).status).toBe(200)
    one.proxy.loseAnswers(false)
    await expect.poll(async () => (await send(one)).status).toBe(200)
    // this many concurrent requests use all connections
    const many = await Promise.all(Array.from({ length: 32 }, () => send(one)))
    expect(many.map(({ status }) => status)).toEqual(many.map(() => 200))
    const answers = await Promise.all(sent)
    expect(Math.max(...answers.map(({ tookMs }) => tookMs))).toBeLessThan(60_000)
    expect(answers.filter(({ status }) => status === 503).length).toBeGreaterThan(10)
    // a repeated request is one delivery, whether its commit or only its answer was lost
    for (const { key } of answers.slice(0, 20)) expect((await send(two, key)).status).toBe(200)
    const twice = await queryDatabase('SELECT dedupe_key FROM deliveries GROUP BY 1 HAVING count(*) > 1')
    expect(twice).toEqual([])
    const stored = new Set((await queryDatabase('SELECT id FROM deliveries')).map(({ id }) => id))
    expect(answers.filter(({ status, deliveryId }) => status === 200 && !stored.has(deliveryId))).toEqual([])
  })

  test('a request whose commit is done and whose answer is cut off is one delivery with one run, whoever gets its repetition', async () => {
    const { start, queryDatabase } = await openDatabase()
    const gateways = [await start(), await start()] as const
    const history = createHistory('lost-commits')
    const agent = new Agent()
    const sendOnce = async (key: string, to: number) => {
      const end = history.invoke(key)
      const options = { token: hookToken, key, body: JSON.stringify({ message: key, deliver: false }) }
      const url = gateways[to % 2 === 0 ? 0 : 1].url
      const answer = await postOnce(agent, `${url}/agent`, options).catch(() => undefined)
      end(answer)
      return answer?.status
    }
    for (let n = 0; n < 20; n += 1) {
      const key = `lost-commit-${n}.`
      const isCut = gateways[0].proxy.loseCommitOf(key)
      const first = await sendOnce(key, 0)
      await isCut
      expect(first).toBe(503)
      await expect.poll(() => sendOnce(key, n)).toBe(200)
      expect(await sendOnce(key, n + 1)).toBe(200)
    }
    agent.destroy()
    for (const { key } of await queryDatabase(
      `SELECT substr(dedupe_key, 5) AS key FROM deliveries JOIN jobs ON jobs.delivery_seq = deliveries.seq`,
    ))
      history.effect(String(key), 'table')
    for (const { id } of await queryDatabase('SELECT id FROM deliveries')) history.listed(String(id))
    expect(history.judge()).toMatchObject({ acknowledged: 20, unknown: expect.any(Number), effects: 20, repeated: 0 })
  })

  test('a gateway stops within a minute while answers of the database are lost', async () => {
    const { start } = await openDatabase()
    const one = await start()
    await send(one)
    one.proxy.loseAnswers(true)
    const sent = [send(one), send(one)]
    await wait(500)
    const startedAt = performance.now()
    await one.stop()
    expect(performance.now() - startedAt).toBeLessThan(60_000)
    await Promise.allSettled(sent)
  })

  test('a gateway that lost its database answers 503, usually within a second, and answers 200 again when the database is back', async () => {
    const { start } = await openDatabase()
    const one = await start()
    const two = await start()
    await send(one)
    await one.proxy.close()
    await expect.poll(async () => (await send(one)).status).toBe(503)
    await wait(1_000)
    const refused: Awaited<ReturnType<typeof send>>[] = []
    for (let count = 0; count < 30; count += 1) refused.push(await send(one))
    expect(refused.filter(({ status }) => status !== 503)).toEqual([])
    const times = refused.map(({ tookMs }) => tookMs).toSorted((a, b) => a - b)
    expect(times[15]).toBeLessThan(1_000)
    expect((await send(two)).status).toBe(200)
    await one.proxy.open()
    await expect.poll(async () => (await send(one)).status).toBe(200)
  })

  test('the gateway opens at most one connection a second to a database that does not answer', async () => {
    const { start } = await openDatabase()
    const one = await start()
    await send(one)
    one.proxy.loseAnswers(true)
    const first = await Promise.all(Array.from({ length: 200 }, () => send(one)))
    expect(first.filter(({ status }) => status !== 503)).toEqual([])
    expect(Math.max(...first.map(({ tookMs }) => tookMs))).toBeLessThan(60_000)
    const before = one.proxy.countConnections()
    const startedAt = performance.now()
    for (let count = 0; count < 60; count += 1) expect((await send(one)).status).toBe(503)
    await wait(2_000)
    const seconds = (performance.now() - startedAt) / 1_000
    expect(one.proxy.countConnections() - before).toBeLessThanOrEqual(seconds + 1)
    one.proxy.loseAnswers(false)
    await expect.poll(async () => (await send(one)).status).toBe(200)
  })
})

describe.skipIf(whyNoPostgres)('user with synchronous_commit off', () => {
  test('each transaction that writes turns synchronous_commit on', async () => {
    const { start, queryDatabase } = await openDatabase('-c synchronous_commit=off ')
    const one = await start()
    const two = await start()
    await queryDatabase(`CREATE TABLE commits (name text, setting text);
      CREATE FUNCTION note_commit() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO commits VALUES (TG_TABLE_NAME, current_setting('synchronous_commit')); RETURN NULL; END $$;
      DO $$ DECLARE each text; BEGIN
        FOR each IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename <> 'commits' LOOP
          EXECUTE format('CREATE CONSTRAINT TRIGGER noted AFTER INSERT OR UPDATE OR DELETE ON %I
            DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note_commit()', each);
        END LOOP; END $$`)
    for (const gateway of [one, two]) expect((await send(gateway)).status).toBe(200)
    // the writes include the heartbeat that the wakes requested, and the leases
    const listNames = async () => (await queryDatabase('SELECT DISTINCT name FROM commits')).map(({ name }) => name)
    await expect.poll(listNames).toEqual(expect.arrayContaining(['deliveries', 'jobs', 'leases']))
    expect(await queryDatabase('SELECT DISTINCT setting FROM commits')).toEqual([{ setting: 'on' }])
  })
})
