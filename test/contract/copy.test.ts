// A copy of a store shows the same records to a reader, and gives a gateway the same work.
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import type { StorePlace } from '../../src/model/places.ts'
import { copiedTables } from '../../src/store/copy.ts'
import { copyStore, openReader, openStore } from '../../src/store/open.ts'
import { openDatabase } from '../../src/store/sqlite/driver.ts'
import { sumColumns } from '../../src/store/sqlite/sums.ts'
import { Problem } from '../../src/core/model/problem.ts'
import { silentLog } from '../../src/base/log.ts'
import type { KeptRequest, NewDelivery } from '../../src/store/records.ts'
import type { OpenedStore, Store, StoreReader } from '../../src/store/store.ts'
import { makeFolder } from '../e2e/gateway.ts'
import { databaseUrl, newSchema, whyNoPostgres, withDatabase } from './postgres-stage.ts'
import { newDelivery as newDeliveryAt, newEvent, newJob, newWake, planned, request } from './stage.ts'

const databaseName = new URL(databaseUrl).pathname.slice(1)
const drops: (() => Promise<void>)[] = []
afterAll(async () => void (await Promise.all(drops.map((drop) => drop()))))

async function newDatabase(): Promise<StorePlace & { schema: string }> {
  const { url, schema, drop } = await newSchema()
  drops.push(drop)
  return { kind: 'url', url, schema }
}

function newFile(): StorePlace & { kind: 'file' } {
  return { kind: 'file', file: join(makeFolder(), 'state', 'x.db') }
}

async function withStore<Result>(place: StorePlace, work: (store: OpenedStore) => Promise<Result>): Promise<Result> {
  const store = await openStore(place, { maxWaitingBytes: () => Number.POSITIVE_INFINITY, log: silentLog })
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}

const newDelivery = (over: Partial<NewDelivery> = {}) => newDeliveryAt({ at: Date.now(), ...over })
const beat = { kind: 'heartbeat', agentId: 'main', sessionKey: 'main', reason: 'interval' } as const

const limit = 1_000
const daily = { name: 'daily', startsAt: 7 }

/** The engines return bytes of different classes, so the bytes become text. */
function toPlainRequest(kept: KeptRequest | undefined) {
  return kept && { head: { ...kept.head }, body: Buffer.from(kept.body).toString('hex') }
}

/** The records of a store, as a reader shows them. */
async function readEverything(place: StorePlace) {
  const reader: StoreReader = await openReader(place)
  try {
    const deliveries = await reader.deliveries({ limit })
    const sessions = await reader.sessions({ limit })
    const named = sessions.map(({ agentId, sessionKey }) => ({ agentId, sessionKey }))
    const ids = await reader.idsFrom({ prefix: '', limit })
    const all = await Promise.all(ids.map(({ id }) => reader.job(id)))
    return {
      deliveries,
      sessions,
      ids,
      jobs: all,
      requests: (await Promise.all(deliveries.map(({ deliveryId }) => reader.request(deliveryId)))).map(toPlainRequest),
      kept: (await reader.keptDeliveries({ limit })).map((kept) => ({
        ...kept,
        request: toPlainRequest(kept.request),
      })),
      events: await reader.events({ limit }),
      states: await Promise.all(named.map((name) => reader.session(name))),
      waiting: await Promise.all(named.map((name) => reader.waitingEvents({ ...name, limit }))),
      messages: await Promise.all(named.map((name) => reader.messages({ ...name, limit }))),
      dead: await reader.deadJobs({ limit }),
      lanes: await reader.lanes({ limit }),
      counts: await reader.counts(),
      cursor: await reader.cursor('mailbox'),
      quarantined: await reader.quarantinedRequests({ limit }),
      sealed: Buffer.from((await reader.sealedContent('refused')) ?? []).toString('hex'),
      parked: await reader.countParkedFor('broken.ts'),
      holds: await reader.holds(),
      accounts: await reader.accounts([daily]),
      audit: await reader.auditLog({ limit }),
    }
  } finally {
    await reader.close()
  }
}

/** Fills a store with rows of almost every table. */
async function storeEachKind(place: StorePlace): Promise<void> {
  await withStore(place, async (store) => {
    await store.join({ id: 'gateway', version: '1', generation: 'g1', address: 'http://127.0.0.1:8790/hooks' })
    await store.appendAll([newDelivery()], { name: 'mailbox', from: undefined, to: '17' })
    const sealed = {
      hookLabel: 'ci',
      network: '192.0.2.0/24',
      isKnown: true,
      keyId: 'k',
      sealed: new Uint8Array([0, 255]),
    }
    await store.quarantine([{ requestId: 'refused', receivedAt: 7, hook: 'ci', refusal: '{}', ...sealed }], {
      maxRequests: 9,
      maxBytes: 9_000,
      olderThan: 0,
    })
    await store.append(
      newDelivery({
        id: 'parked',
        hook: 'ci',
        state: 'parked',
        waitsFor: 'broken.ts',
        jobs: [],
        request: request('{"a":"\u{1f600}"}'),
      }),
    )
    await store.append(newDelivery({ id: 'pending', hook: 'ci', state: 'pending', jobs: [], request: request('{}') }))
    await store.append(
      newDelivery({ id: 'kept', hook: 'ci', mappingId: 'm', ringSize: 2, request: request('[1]'), jobs: [] }),
    )
    await store.append(
      newDelivery({ id: 'large', hook: 'ci', mappingId: 'm', ringSize: 2, request: 'too large', jobs: [] }),
    )
    await store.append(
      newDelivery({ id: 'keyed', hook: 'ci', jobs: [], dedupe: { hook: 'ci', key: 'k1', bodyHash: 'h' } }),
    )
    for (const name of ['one', 'two']) await store.append(newDelivery({ id: `wake-${name}`, jobs: [newWake(name)] }))
    await store.noteRepeats([{ deliveryId: 'keyed', times: 2, lastAt: 1_700_000_000_000, bodyDiffered: true }])
    await store.hold({ label: 'agent:none', kind: 'pause', reason: 'x', author: 'ada', forMs: undefined })
    await store.raiseBudget(daily, { nanos: 1, tokens: 2, turns: 3 })
    await store.audit({ by: { kind: 'token', name: 'ci' }, act: 'retry', outcome: 'done' })
    const names = ['done', 'dead', 'later', 'first', 'second', 'alone']
    for (const name of names) {
      const lane =
        name === 'first' || name === 'second' || name === 'later' ? 'lane' : name === 'alone' ? undefined : name
      const job = newJob({
        id: `job-${name}`,
        lane,
        planned: planned(`hook:${name}`),
        events: name === 'done' ? [newEvent({ text: 'seen' }), newEvent({ text: 'unseen', wakes: true })] : [],
      })
      await store.append(newDelivery({ id: `of-${name}`, jobs: [job] }))
    }
    await store.addTask({
      id: 'beat',
      planned: beat,
      lane: 'main',
      standsFor: 'beat:main',
    })
    const claimed = await store.claim({ limit: 50, leaseMs: 60_000 })
    const report = async (id: string, what: Parameters<Store['report']>[1]) => {
      const job = claimed.find((one) => one.id === id)
      if (job === undefined) throw new Error(`${id} was not claimed`)
      expect(await store.report(job, what)).toBe(true)
    }
    const events = (await store.waitingEvents({ agentId: 'main', sessionKey: 'main', limit: 1 })).events
    await report('job-done', {
      steps: [{ name: 'run', state: 'done', at: 1, result: 'yes' }],
      messages: [
        { role: 'user', text: 'question' },
        { role: 'assistant', text: 'answer' },
      ],
      consumed: events,
      runnerState: { thread: 7 },
      recipient: { channel: 'telegram', to: '42' },
    })
    await report('job-done', { outcome: { kind: 'done' } })
    await report('job-dead', { outcome: { kind: 'dead', error: 'no such recipient' } })
    await report('job-later', { outcome: { kind: 'retry', afterMs: 3_600_000, error: 'busy' } })
    for (const { id, fence } of claimed) await store.report({ id, fence }, { outcome: { kind: 'release' } })
  })
}

describe.skipIf(whyNoPostgres)(
  `a copy${whyNoPostgres === undefined ? '' : ` (skipped: ${whyNoPostgres})`}`,
  { timeout: 120_000 },
  () => {
    test('a copy from SQLite to Postgres and back has every row of the first store, in the same order', async () => {
      const [first, second, third, fourth] = [newFile(), await newDatabase(), newFile(), await newDatabase()]
      await storeEachKind(first)
      const seen: string[] = []
      const counted = await copyStore({ from: first, to: second }, (table, rows) => seen.push(`${table} ${rows}`))
      expect(seen).toEqual(Object.entries(counted).map(([table, rows]) => `${table} ${rows}`))
      expect(counted).toMatchObject({ deliveries: 14, rings: 2, jobs: 9, events: 4, messages: 2, cursors: 1 })
      const original = await readEverything(first)
      expect(original.deliveries).toHaveLength(14)
      expect(await readEverything(second)).toEqual(original)
      expect(await copyStore({ from: second, to: third }, () => {})).toEqual(counted)
      // SQLite does not store which of several gateways took a delivery
      const omitNodes = ({ deliveries, kept, ...rest }: typeof original) => ({
        ...rest,
        deliveries: deliveries.map((delivery) => ({ ...delivery, node: undefined })),
        kept: kept.map((delivery) => ({ ...delivery, node: undefined })),
      })
      expect(original.deliveries.map(({ node }) => node)).toContain('gateway')
      expect(await readEverything(third)).toEqual(omitNodes(original))
      expect(await copyStore({ from: second, to: fourth }, () => {})).toEqual(counted)
      expect(await readEverything(fourth)).toEqual(original)
      expect(readdirSync(dirname(third.file)).filter((name) => name.endsWith('.copy'))).toEqual([])
    })

    test.each(['SQLite', 'Postgres'])(
      'a copied store in %s continues where the first store stopped',
      async (engine) => {
        const [from, to] = engine === 'SQLite' ? [await newDatabase(), newFile()] : [newFile(), await newDatabase()]
        await storeEachKind(from)
        await copyStore({ from, to }, () => {})
        const next = (place: StorePlace) =>
          withStore(place, async (store) => {
            const bytes = await store.waitingBytes()
            const appended = await store.append(
              newDelivery({ id: 'again', hook: 'ci', jobs: [], dedupe: { hook: 'ci', key: 'k1', bodyHash: 'h' } }),
            )
            const isTaskAdded = await store.addTask({
              id: 'beat2',
              planned: beat,
              lane: 'main',
              standsFor: 'beat:main',
            })
            await store.append(newDelivery({ id: 'last', jobs: [newJob({ id: 'job-last', lane: 'lane' })] }))
            const claimed = await store.claim({ limit: 50, leaseMs: 60_000 })
            const dueInMs = (await store.nextDueInMs()) ?? -1
            const order = (await store.deliveries({ limit })).map(({ deliveryId }) => deliveryId).slice(1)
            const moved = await store.appendAll([], { name: 'mailbox', from: '17', to: '18' })
            return {
              bytes,
              appended,
              isTaskAdded,
              claimed: claimed.map(({ id }) => id),
              isLater: dueInMs > 3_000_000,
              order,
              moved,
            }
          })
        const expected = await next(from)
        expect(expected).toMatchObject({
          appended: { kind: 'duplicate' },
          isTaskAdded: false,
          isLater: true,
          moved: [],
        })
        // the job behind the retry waits for it; the job without a lane does not
        expect(expected.claimed).toEqual(['job-alone', 'beat'])
        expect(await next(to)).toEqual(expected)
      },
    )

    test('a copy into a store that is not empty is refused, and changes nothing', async () => {
      const [file, database] = [newFile(), await newDatabase()]
      await storeEachKind(file)
      await withStore(database, (store) => store.append(newDelivery({ id: 'mine' })))
      await expect(copyStore({ from: file, to: database }, () => {})).rejects.toMatchObject({
        code: 'conflict',
        message: expect.stringContaining(`/${databaseName} is not empty: deliveries has 1 rows.`),
      })
      expect((await readEverything(database)).ids).toEqual([{ id: 'mine', deliveryId: 'mine' }])
      const other = newFile()
      await withStore(other, (store) => store.ready())
      await expect(copyStore({ from: file, to: other }, () => {})).rejects.toMatchObject({
        code: 'conflict',
        message: expect.stringContaining('exists already'),
      })
      expect((await readEverything(other)).ids).toEqual([])
    })

    test('a copy of a store that a gateway uses is refused, in both engines', async () => {
      const [file, database] = [newFile(), await newDatabase()]
      await withStore(file, async (store) => {
        await store.ready()
        await expect(copyStore({ from: file, to: database }, () => {})).rejects.toMatchObject({ code: 'store-locked' })
      })
      await withStore(database, async (store) => {
        await store.ready()
        const target = newFile()
        await withDatabase((client) =>
          client.query(
            `INSERT INTO ${database.schema}.leases VALUES ('retention', 1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + 60000)`,
          ),
        )
        await expect(copyStore({ from: database, to: target }, () => {})).rejects.toMatchObject({
          code: 'store-locked',
          message: expect.stringMatching(new RegExp(`^A gateway uses the store in .*/${databaseName}\\. Stop`)),
        })
        expect(existsSync(target.file)).toBe(false)
        await withDatabase((client) => client.query(`UPDATE ${database.schema}.leases SET until = 1`))
        expect(await copyStore({ from: database, to: target }, () => {})).toMatchObject({ deliveries: 0 })
      })
    })

    test('a copy is discarded if a gateway wrote to the source during the copy, and those writes stay in the source', async () => {
      const [from, to] = [await newDatabase(), newFile()]
      await storeEachKind(from)
      await withStore(from, async (store) => {
        await store.ready()
        let writing: Promise<unknown> | undefined
        const write = () => void (writing ??= store.append(newDelivery({ id: 'late', jobs: [] })))
        const waitsForLock = async () => {
          const sql = `SELECT 1 FROM pg_locks WHERE NOT granted AND relation = '${from.schema}.deliveries'::regclass`
          while ((await withDatabase((client) => client.query(sql))).rowCount === 0);
        }
        const copying = copyStore({ from, to }, async (table) => {
          if (table === 'deliveries') write()
          if (table === 'deliveries') await waitsForLock()
        })
        await expect(copying).rejects.toMatchObject({ code: 'store-locked' })
        await writing
        expect(existsSync(to.file)).toBe(false)
        expect(await store.delivery('late')).toBeDefined()
      })
    })

    test('a copy into a file next to the WAL of an older file is refused, because SQLite would apply that WAL', async () => {
      const [from, to] = [newFile(), newFile()]
      await storeEachKind(from)
      mkdirSync(dirname(to.file))
      writeFileSync(`${to.file}-wal`, 'old')
      await expect(copyStore({ from, to }, () => {})).rejects.toMatchObject({
        code: 'conflict',
        message: expect.stringContaining('x.db-wal is there, and belongs to an older store'),
      })
    })

    test('a copy that fails leaves nothing in the target, and the next copy works', async () => {
      const [from, to] = [newFile(), await newDatabase()]
      await storeEachKind(from)
      const stop = () => {
        throw new Problem('store-unavailable', 'the disk failed')
      }
      await expect(copyStore({ from, to }, stop)).rejects.toThrow('the disk failed')
      expect((await readEverything(to)).ids).toEqual([])
      const target = newFile()
      await expect(copyStore({ from, to: target }, stop)).rejects.toThrow('the disk failed')
      expect(readdirSync(dirname(target.file))).toEqual([])
      expect(await copyStore({ from, to: target }, () => {})).toMatchObject({ deliveries: 14 })
      expect(await copyStore({ from, to }, () => {})).toMatchObject({ deliveries: 14 })
    })

    test('a copy includes every table and column of both engines, except those that the test lists', async () => {
      const [file, database] = [newFile(), await newDatabase()]
      for (const place of [file, database]) await withStore(place, (store) => store.ready())
      const db = openDatabase(file.file, { readOnly: true, busyMs: 0 })
      onTestFinished(() => db.close())
      const ofSqlite = db.all(`SELECT name FROM sqlite_schema WHERE type = 'table'`).map(({ name }) => String(name))
      const { rows } = await withDatabase((client) =>
        client.query<{ tablename: string }>('SELECT tablename FROM pg_tables WHERE schemaname = $1', [database.schema]),
      )
      const copied = new Set(copiedTables.map(({ name }) => name))
      const listOthers = (names: string[]) => names.filter((name) => !copied.has(name)).toSorted()
      // not copied: the catalog and the keys of flows follow from other rows, and the next owner fills the other tables anew
      expect(listOthers(ofSqlite)).toEqual([
        'catalog',
        'causes',
        'event_times',
        'failed_runs',
        'flow_keys',
        'flow_lines',
        'jobs_of',
        'listed',
        'nodes',
        'reservations',
        'run_messages',
        'transcripts',
        'wake_ids',
      ])
      // the rows of requests and job_parts are copied with those of deliveries and jobs
      expect(listOthers(rows.map(({ tablename }) => tablename))).toEqual([
        'failed_runs',
        'flow_keys',
        'flow_lines',
        'hookloom_schema',
        'job_parts',
        'leases',
        'lockouts',
        'nodes',
        'requests',
        'reservations',
        'task_names',
      ])
      // all columns are copied too, except these
      const { rows: columns } = await withDatabase((client) =>
        client.query<{ table_name: string; column_name: string }>(
          'SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = $1',
          [database.schema],
        ),
      )
      const uncopied = copiedTables.flatMap(({ name, columns: known }) => {
        const inSqlite = db.all(`PRAGMA table_info(${name})`).map((row) => String(row['name']))
        const inPostgres = columns.filter((row) => row.table_name === name).map((row) => row.column_name)
        return (
          [...new Set([...inSqlite, ...inPostgres])]
            // a copy computes the checksums of its rows
            .filter((column) => !(column in known) && !(column in (sumColumns[name] ?? {})))
            .map((column) => `${name}.${column}`)
        )
      })
      expect(uncopied.toSorted()).toEqual([
        'deliveries.bytes',
        // the plan of a delivery with one job is copied as that job
        'deliveries.plan',
        'deliveries.wake_event',
        'deliveries.wake_id',
        'deliveries.wake_steps',
        'events.delivery_seq',
        'jobs.agent_id',
        'jobs.bytes',
        'jobs.gate',
        'jobs.session_key',
      ])
    })
  },
)
