// An update migrates a file that an older version wrote.
import { copyFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Database, openDatabase, type SqlValue } from '../../../../src/store/sqlite/driver.ts'
import { migrate } from '../../../../src/store/sqlite/migrations.ts'
import { createSqliteReader } from '../../../../src/store/sqlite/sqlite.ts'
import type { StoreReader } from '../../../../src/store/store.ts'
import { newDelivery, newJob, newWake, parked, planned, request } from '../../../contract/stage.ts'
import { newFolder, openStore, small } from './stage.ts'

/** The number of migrations in the last version in which any hook could set the meaning of the channel `last`. */
const anyHookSets = 8
/** The number of migrations of the last version that stored a wake as a separate job, with four indexes for people's lists. */
const wakesAreJobs = 12

test('a stored recipient that any hook could have set is forgotten once, and one that is set later is kept', () => {
  const db = openDatabase(':memory:', { readOnly: false, busyMs: 0 })
  migrate(db, 'x.db', anyHookSets)
  db.exec(`INSERT INTO sessions (agent_id, session_key, updated_at, recipient_channel, recipient_to)
    VALUES ('main', 'main', 1, 'telegram', '666')`)
  const read = () => db.get('SELECT updated_at, recipient_channel, recipient_to FROM sessions')
  migrate(db, 'x.db')
  expect(read()).toEqual({ updated_at: 1, recipient_channel: null, recipient_to: null })
  db.exec(`UPDATE sessions SET recipient_channel = 'slack', recipient_to = 'C1'`)
  migrate(db, 'x.db')
  expect(read()).toEqual({ updated_at: 1, recipient_channel: 'slack', recipient_to: 'C1' })
  db.close()
})

const insert = (db: Database, table: string, row: Readonly<Record<string, SqlValue>>) =>
  db.run(
    `INSERT INTO ${table} (${Object.keys(row).join(', ')}) VALUES (${Object.keys(row)
      .map(() => '?')
      .join(', ')})`,
    ...Object.values(row),
  )

/** Writes a file as a killed gateway left it before the rows became slim: rows of every kind, and a running job. */
function writeOld(file: string, deliveries = 60): void {
  const db = openDatabase(file, { readOnly: false, busyMs: 0 })
  db.exec('PRAGMA journal_mode = WAL')
  migrate(db, file, wakesAreJobs)
  db.exec('BEGIN')
  const states = ['accepted', 'skipped', 'parked', 'pending', 'dropped']
  const base = { generation: 'g1', answer_status: 200, answer_body: '{}', trace: '[]', log: '[]', hook: 'ci' }
  for (let seq = 1; seq <= deliveries; seq += 1) {
    const state = states[seq % states.length] ?? ''
    const waits = state === 'parked' || state === 'pending'
    insert(db, 'deliveries', {
      ...base,
      id: `delivery-${seq}`,
      received_at: 1_000 + seq,
      settled_at: waits ? null : 1_001 + seq,
      state,
      event: `e${seq}`,
      waits_for: waits ? 'broken.ts' : null,
      dedupe_key: seq % 7 === 0 ? `k${seq}` : null,
      body_hash: 'h',
      head: waits ? JSON.stringify(request().head) : null,
      body: waits ? request(`{"n":${seq}}`).body : null,
    })
  }
  const job = { created_at: 2_000, run_at: 2_000, gate: 0, attempts: 0, posts: '[]', steps: '[]', state: 'done' }
  const toPlan = (name: string) => JSON.stringify(planned(`hook:${name}`))
  const wake = newWake('old wake')
  insert(db, 'jobs', {
    ...job,
    id: 'job-wake',
    delivery_seq: 5,
    ended_at: 2_000,
    planned: JSON.stringify(wake.planned),
    steps: JSON.stringify(wake.steps),
  })
  insert(db, 'jobs', { ...job, id: 'job-done', delivery_seq: 10, ended_at: 2_001, planned: toPlan('done') })
  insert(db, 'jobs', {
    ...job,
    id: 'job-dead',
    delivery_seq: 15,
    state: 'dead',
    ended_at: 2_002,
    planned: toPlan('dead'),
    last_error: 'no',
  })
  const lane = { lane: 'lane', delivery_seq: 20 }
  insert(db, 'jobs', {
    ...job,
    ...lane,
    id: 'job-running',
    state: 'running',
    fence: 7,
    locked_until: 9_999,
    planned: toPlan('a'),
  })
  insert(db, 'jobs', { ...job, ...lane, id: 'job-second', state: 'queued', gate: 1, planned: toPlan('b') })
  insert(db, 'jobs', { ...job, ...lane, id: 'job-third', state: 'queued', gate: 1, planned: toPlan('c') })
  insert(db, 'jobs', {
    ...job,
    id: 'job-later',
    state: 'queued',
    gate: 2,
    run_at: 3_605_000,
    failing_since: 3,
    planned: toPlan('d'),
  })
  insert(db, 'jobs', {
    ...job,
    id: 'beat',
    lane: 'main',
    state: 'queued',
    stands_for: 'beat:main',
    planned: toPlan('e'),
  })
  const main = { agent_id: 'main', session_key: 'main' }
  insert(db, 'events', {
    ...main,
    at: 2_000,
    trusted: 0,
    wakes: 1,
    source: 'ci',
    delivery_id: 'delivery-5',
    text: 'old wake',
  })
  insert(db, 'events', { ...main, at: 2_001, trusted: 1, wakes: 0, source: 'ci', text: 'seen', consumed_at: 2_009 })
  insert(db, 'sessions', {
    ...main,
    updated_at: 2_001,
    recipient_channel: 'slack',
    recipient_to: 'C1',
    runner_state: '7',
  })
  insert(db, 'sessions', { agent_id: 'main', session_key: 'hook:done', updated_at: 2_005 })
  for (const role of ['user', 'assistant'])
    insert(db, 'messages', {
      agent_id: 'main',
      session_key: 'hook:done',
      at: 2_005,
      role,
      run_id: 'job-done',
      text: role,
    })
  insert(db, 'cursors', { name: 'mailbox', value: '17' })
  insert(db, 'rings', { seq: 10, mapping_id: 'm' })
  insert(db, 'repeats', { seq: 7, times: 3, last_at: 2_004 })
  insert(db, 'nodes', { first_seq: 1, id: 'gateway', version: '1', generation: 'g1', address: 'x', seen_at: 1 })
  db.exec('COMMIT')
  db.close()
}

const limit = 100_000

/** The records and counts that a reader shows. */
async function readAll(reader: StoreReader) {
  const deliveries = await reader.deliveries({ limit })
  const ids = await reader.idsFrom({ prefix: '', limit })
  const sessions = await reader.sessions({ limit })
  return {
    deliveries,
    ids,
    sessions,
    jobs: await Promise.all(ids.map(({ id }) => reader.job(id))),
    found: await Promise.all(ids.map(async ({ id }) => (await reader.delivery(id))?.deliveryId)),
    requests: await Promise.all(deliveries.map(({ deliveryId }) => reader.request(deliveryId))),
    searched: await reader.deliveries({ limit, text: 'e5', hook: 'ci' }),
    parked: await reader.deliveries({ limit: 3, state: 'parked', before: 'job-running' }),
    events: await reader.events({ limit }),
    waiting: await reader.waitingEvents({ agentId: 'main', sessionKey: 'main', limit }),
    states: await Promise.all(sessions.map((session) => reader.session(session))),
    messages: await Promise.all(sessions.map((session) => reader.messages({ ...session, limit }))),
    ofRun: await reader.messages({ agentId: 'main', sessionKey: 'hook:done', limit, runId: 'job-done' }),
    dead: await reader.deadJobs({ limit }),
    lanes: await reader.lanes({ limit }),
    counts: await reader.counts(),
    skipped: await reader.countInState('skipped'),
    waitedFor: await reader.waitedFor(),
    bytes: await reader.waitingBytes(),
    cursor: await reader.cursor('mailbox'),
    nodes: await reader.nodes(),
  }
}

async function readFile(file: string) {
  const reader = createSqliteReader({ file })
  try {
    return await readAll(reader)
  } finally {
    await reader.close()
  }
}

/** Brings the file to the schema of this version, and changes nothing else: no owner queues the running job again. */
function update(file: string): void {
  const db = openDatabase(file, { readOnly: false, busyMs: 1_000 })
  migrate(db, file)
  db.close()
}

describe('a file whose wakes are jobs', () => {
  test('a file whose wakes are jobs shows the same lists before its update and after it', async () => {
    const file = join(newFolder(), 'x.db')
    writeOld(file)
    const before = await readFile(file)
    expect(before).toMatchObject({
      counts: { deliveries: { accepted: 12 }, jobs: { queued: 4, running: 1, done: 2, dead: 1 } },
      skipped: 12,
      searched: { length: 11 },
      events: [{ text: 'old wake', deliveryId: 'delivery-5' }, { text: 'seen' }],
      lanes: [
        { lane: 'lane', jobs: 3, running: true },
        { lane: 'main', jobs: 1 },
      ],
    })
    update(file)
    expect(await readFile(file)).toEqual(before)
  })

  test('a file whose wakes are jobs works after its update: each job runs once, in the order of its lane, and old and new rows are listed together', async () => {
    const file = join(newFolder(), 'x.db')
    writeOld(file)
    const { bytes } = await readFile(file)
    const store = openStore(file, { clock: () => 5_000 })
    await store.ready()
    expect(await store.waitingBytes()).toBe(bytes)
    expect(
      await store.append(newDelivery({ at: 5_000, hook: 'ci', dedupe: { hook: 'ci', key: 'k7', bodyHash: 'h' } })),
    ).toMatchObject({
      kind: 'duplicate',
      first: { deliveryId: 'delivery-7' },
    })
    const claimed: string[] = []
    for (
      let jobs = await store.claim({ limit: 9, leaseMs: 1 });
      jobs.length > 0;
      jobs = await store.claim({ limit: 9, leaseMs: 1 })
    ) {
      claimed.push(...jobs.map(({ id }) => id))
      for (const job of jobs) expect(await store.report(job, { outcome: { kind: 'done' } })).toBe(true)
    }
    expect(claimed).toEqual(['job-running', 'beat', 'job-second', 'job-third'])
    expect(await store.requeue('job-dead')).toBe(true)
    expect(await store.settle('delivery-2', { ...parked(), state: 'accepted', jobs: [newWake('new wake')] })).toBe(true)
    const wake = newWake('newer')
    await store.append(newDelivery({ at: 5_000, hook: 'ci', event: 'e5new', jobs: [wake] }))
    expect((await store.deliveries({ limit: 2, text: 'e5' })).map(({ event }) => event)).toEqual(['e59', 'e5new'])
    expect(await store.events({ limit })).toMatchObject([
      {},
      {},
      { text: 'new wake', deliveryId: 'delivery-2' },
      { text: 'newer' },
    ])
    expect((await store.counts()).jobs).toMatchObject({ queued: 2, running: 0, done: 8, dead: 0 })
    expect(await store.sweep(-1)).toBeGreaterThan(50)
    expect(await store.deliveries({ limit, state: 'skipped' })).toEqual([])
  })

  test('a file whose wakes are jobs loses nothing if the gateway is killed during the update', async () => {
    const file = join(newFolder(), 'x.db')
    writeOld(file, 500)
    const before = await readFile(file)
    // a kill leaves the bytes that the disk has before the commit
    const killed = join(newFolder(), 'x.db')
    const copyFiles = () => {
      for (const end of ['', '-wal']) copyFileSync(`${file}${end}`, `${killed}${end}`)
    }
    const updating = openDatabase(file, { readOnly: false, busyMs: 1_000 })
    // otherwise nothing of the transaction would be on disk before its commit
    updating.exec('PRAGMA cache_size = 5')
    migrate(
      { ...updating, exec: (sql) => (sql === 'COMMIT' ? copyFiles() : updating.exec(sql)) },
      'x.db',
      wakesAreJobs + 1,
    )
    expect(statSync(`${killed}-wal`).size).toBeGreaterThan(10_000)
    updating.exec('ROLLBACK')
    updating.close()
    expect(await readFile(killed)).toEqual(before)
    update(killed)
    const db = openDatabase(killed, { readOnly: true, busyMs: 0 })
    expect(db.all('PRAGMA integrity_check')).toMatchObject([{ integrity_check: 'ok' }])
    db.close()
    expect(await readFile(killed)).toEqual(before)
  })
})

test('a file of the first schema can be read before its update, and its waiting bytes are counted when it is opened', async () => {
  const file = join(newFolder(), 'x.db')
  const old = openDatabase(file, { readOnly: false, busyMs: 0 })
  migrate(old, file, 1)
  insert(old, 'deliveries', {
    id: 'parked',
    received_at: 1,
    state: 'parked',
    hook: 'ci',
    generation: 'g1',
    answer_status: 200,
    answer_body: '',
    trace: '[]',
    log: '[]',
    head: '{}',
    body: new Uint8Array(9_000),
  })
  insert(old, 'jobs', {
    id: 'j',
    state: 'queued',
    gate: 0,
    created_at: 1,
    run_at: 1,
    steps: '[]',
    planned: JSON.stringify(newJob().planned),
  })
  old.close()
  const reader = createSqliteReader({ file })
  const bytes = await reader.waitingBytes()
  await reader.close()
  const store = openStore(file)
  await store.append(small())
  expect([bytes > 9_000, await store.waitingBytes()]).toEqual([true, bytes])
})
