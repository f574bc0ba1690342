// The cost of one request, measured without time: system calls, commits, and pages and bytes of the WAL. No figure depends on the speed of the machine.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compileChildren } from '../bench/child.ts'
import { whyNoCalls } from '../bench/cost.ts'
import { createCostProbe } from '../bench/probe-cost.ts'
import { readTransactions } from '../bench/wal.ts'
import type { Figures } from '../bench/probes.ts'
import { newDelivery, newWake } from '../contract/stage.ts'
import { startCluster, whyNoCluster } from '../e2e/fleet.ts'
import { createPostgresStore } from '../../src/store/postgres/postgres.ts'
import { createSqliteStore } from '../../src/store/sqlite/sqlite.ts'

const root = resolve(import.meta.dirname, '../..')
const built = join(root, 'dist/index.js')
const cache = join(root, 'node_modules/.cache')
const reason = whyNoCalls === undefined ? '' : ` (skipped: ${whyNoCalls})`

describe('the cost of one request', () => {
  let folder = ''
  let figures: Figures = {}
  beforeAll(async () => {
    if (!existsSync(built)) throw new Error(`${built} is missing. Run "npm run build" first.`)
    mkdirSync(cache, { recursive: true })
    folder = mkdtempSync(join(cache, 'hookloom-cost-'))
    await compileChildren(folder)
    figures = await createCostProbe({ folder, built: pathToFileURL(built).href })(0)
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  test.skipIf(whyNoCalls !== undefined)(`a lone wake makes at most 28 system calls${reason}`, () => {
    expect(figures['wake calls']).toBeLessThanOrEqual(28)
  })

  test('a lone wake is one commit of at most 6 pages', () => {
    expect(figures).toMatchObject({ 'wake commits': 1 })
    expect(figures['wake pages']).toBeLessThanOrEqual(6)
  })

  test('a signed delivery of 10 kB is one commit of at most 8 pages', () => {
    expect(figures).toMatchObject({ 'signed commits': 1 })
    expect(figures['signed pages']).toBeLessThanOrEqual(8)
  })

  test('a run of two steps with a reply is three commits, which write at most 60 kB in 18 pages', () => {
    expect(figures).toMatchObject({ 'run commits': 3 })
    expect(figures['run pages']).toBeLessThanOrEqual(18)
    expect(figures['run wal bytes']).toBeLessThanOrEqual(60_000)
  })
})

/** The number of bytes of all commits in the WAL. */
const readBytes = (folder: string) =>
  readTransactions(readFileSync(join(folder, 'hookloom.db-wal'))).reduce((sum, { bytes }) => sum + bytes, 0)

test('each of 16 wakes in a batch writes at most 2.2 kB of WAL', async () => {
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(join(cache, 'hookloom-cost-'))
  const store = createSqliteStore({ file: join(folder, 'hookloom.db'), clock: Date.now })
  const text = 'The nightly export of account 1 stops halfway. '.padEnd(135, 'x')
  const appendWake = () => store.append(newDelivery({ at: Date.now(), jobs: [newWake(text)] }))
  const appendBatch = () => Promise.all(Array.from({ length: 16 }, appendWake))
  const batches = 8
  try {
    // warms up, so that tables grow before the measurement
    for (let count = 0; count < 3; count += 1) await appendBatch()
    const before = readBytes(folder)
    for (let count = 0; count < batches; count += 1) await appendBatch()
    const written = readBytes(folder) - before
    expect(written).toBeGreaterThan(0)
    expect(written / batches / 16).toBeLessThanOrEqual(2_200)
  } finally {
    await store.close()
    rmSync(folder, { recursive: true, force: true })
  }
})

describe.skipIf(whyNoCluster !== undefined)(
  `the cost of one request on Postgres (${whyNoCluster ?? 'available'})`,
  () => {
    test('a lone wake writes at most 2,350 bytes of WAL', async () => {
      // a separate server, because a WAL contains the writes of all databases of its server
      const cluster = await startCluster()
      const store = createPostgresStore({ url: cluster.url })
      const text =
        'The nightly export of account 1 stops halfway: https://forge.example/acme/warehouse/issues/7. '.padEnd(
          135,
          'x',
        )
      const appendWakes = async (times: number) => {
        for (let count = 0; count < times; count += 1)
          await store.append(newDelivery({ at: Date.now(), jobs: [newWake(text)] }))
      }
      const readPosition = async (since = '0/0') =>
        (
          await cluster.query(
            `SELECT pg_current_wal_lsn()::text AS at, pg_current_wal_lsn() - '${since}'::pg_lsn AS bytes`,
          )
        )[0]
      try {
        // before the measurement, tables grow, and Postgres writes each page whole at its first change after a checkpoint
        await appendWakes(100)
        const before = await readPosition()
        await appendWakes(200)
        const after = await readPosition(String(before?.['at']))
        expect(Number(after?.['bytes']) / 200).toBeLessThanOrEqual(2_350)
      } finally {
        await store.close()
      }
    })
  },
)
