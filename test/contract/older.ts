// Stores that real gateways of every older schema wrote and were killed over: `fixtures/stores/<engine>-<schema>.sql.gz`, each the dump of one, with
// the tables as that version made them. Runs were done, running, in line in a lane, dead, waiting for another attempt or with a post that was
// refused; deliveries were parked and skipped; later versions also had pauses, flows, budgets, and refused requests.
import { readdirSync, readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { newId } from '../../src/base/id.ts'
import type { Row } from '../../src/store/rows.ts'
import type { Clock, OpenedStore, StoreReader } from '../../src/store/store.ts'
import { accepted, newDelivery, newJob, planned } from './stage.ts'

export type OlderStage = {
  /** Rows of the tables, read without the code of the store. */
  rows(sql: string): Promise<Row[]>
  /** The number of migrations. */
  version(): Promise<number>
  /** The tables and indexes, read without the code of the store. */
  schema(): Promise<unknown>
  open(clock: Clock): OpenedStore
  /** A reader that does not update the schema. Undefined: the engine refuses to read an older one. */
  read: (() => StoreReader) | undefined
}

const folder = new URL('../fixtures/stores/', import.meta.url)
const limit = 10_000
/** In milliseconds: more than any retry, quiet period, lease or budget period. */
const later = 48 * 3_600_000

/** `open`: creates a store from a dump. Without a dump, the store is empty. */
export function olderStores(engine: string, open: (dump?: string) => Promise<OlderStage>, skipped?: string): void {
  const files = readdirSync(folder).filter((name) => name.startsWith(engine))
  describe.skipIf(skipped !== undefined)(
    `${engine}: stores of older versions${skipped ? ` (skipped: ${skipped})` : ''}`,
    () => {
      test('there is a store of the newest schema, for the versions after it', async () => {
        const stage = await open()
        await stage.open(Date.now).ready()
        const versions = files.map((name) => Number(/\d+/.exec(name)?.[0]))
        expect(versions, 'Run keep-store.test.ts with UPDATE_STORES=1.').toContain(await stage.version())
      })

      test.for(files)('%s shows what it has before and after its update', async (name) => {
        const stage = await open(readDump(name))
        const before = await readTables(stage)
        expect(before.deliveries.length).toBeGreaterThan(15)
        expect(new Set(before.jobs.map(({ state }) => state))).toEqual(
          expect.objectContaining(new Set(['done', 'running', 'queued', 'dead'])),
        )
        const reader = stage.read?.()
        if (reader !== undefined) {
          expect(await readStates(reader, before)).toEqual(before)
          await reader.close()
        }
        const store = stage.open(() => before.newest)
        await store.ready()
        // the owner of a file queues what a killed one ran; on Postgres, the lease has to end first
        const { jobs, ...others } = await readStates(store, before)
        expect(others).toMatchObject({ deliveries: before.deliveries, events: before.events })
        for (const [index, { id, state }] of before.jobs.entries()) {
          // a newer request of its flow may have replaced it while it ran
          const states = state === 'running' ? ['running', 'queued', 'superseded'] : [state]
          expect({ id: jobs[index]?.id, state: jobs[index]?.state }).toEqual({ id, state: expect.toBeOneOf(states) })
        }
      })

      test.for(files)('%s has the tables of a new store after its update, and its work is done once', async (name) => {
        const stage = await open(readDump(name))
        const before = await readTables(stage)
        const at = before.newest + later
        const store = stage.open(() => at)
        await store.ready()
        const fresh = await open()
        await fresh.open(() => at).ready()
        expect(await stage.schema()).toEqual(await fresh.schema())

        for (const { label, kind } of await store.holds()) expect(await store.unhold({ label, kind })).toBe(true)
        for (const { id } of before.jobs.filter(({ state }) => state === 'dead'))
          expect(await store.requeue(String(id))).toBe(true)
        const parked = await store.openDeliveries({ limit })
        expect(parked.map(({ deliveryId }) => deliveryId)).toEqual(
          before.deliveries.flatMap(({ id, state }) => (state === 'parked' ? [id] : [])),
        )
        const added = new Map<string, string>()
        for (const { deliveryId, request } of parked) {
          expect(new TextDecoder().decode(request?.body)).toContain('parked-')
          added.set(deliveryId, newId())
          const jobs = [newJob({ id: added.get(deliveryId) ?? '', planned: planned(`hook:${deliveryId}`) })]
          expect(await store.settle(deliveryId, accepted({ jobs }))).toBe(true)
        }
        const performed = await performAll(store)
        const waiting = before.jobs.filter(({ state }) => state !== 'done').map(({ id }) => String(id))
        const ended = await Promise.all(waiting.map(async (id) => (await store.job(id))?.state))
        // of the runs of a flow, the newest one replaces those before it
        const started = waiting.filter((_, index) => ended[index] === 'done')
        expect(ended.filter((state) => state !== 'done' && state !== 'superseded')).toEqual([])
        expect(performed.toSorted()).toEqual([...started, ...added.values()].toSorted())
        const inLane = started.filter((id) => before.lanes.get(id)?.endsWith('hook:lane'))
        expect(inLane.length).toBe(3)
        expect(performed.filter((id) => inLane.includes(id))).toEqual(inLane)
        for (const { id, hook, key } of before.keys) {
          const again = newDelivery({ at, hook, dedupe: { hook, key, bodyHash: 'h' } })
          expect(await store.append(again)).toMatchObject({ kind: 'duplicate', first: { deliveryId: id } })
        }
        const { jobs } = await store.counts()
        expect(jobs).toMatchObject({ queued: 0, running: 0, dead: 0 })
      })
    },
  )
}

const readDump = (name: string) => gunzipSync(readFileSync(new URL(name, folder))).toString()

/** What the tables have, in the order of arrival. Wakes of later versions have no job. */
async function readTables({ rows }: OlderStage) {
  const deliveries = await rows('SELECT id, state FROM deliveries ORDER BY seq')
  const jobs = await rows('SELECT id, state, lane FROM jobs ORDER BY seq')
  const events = await rows('SELECT text FROM events ORDER BY seq')
  const keys = await rows('SELECT id, hook, dedupe_key FROM deliveries WHERE dedupe_key IS NOT NULL ORDER BY seq')
  const [newest] = await rows('SELECT max(created_at) AS at FROM jobs')
  return {
    deliveries,
    jobs: jobs.map(({ id, state }) => ({ id, state })),
    lanes: new Map(jobs.map(({ id, lane }) => [String(id), String(lane)])),
    events: events.length,
    keys: keys.map((row) => ({ id: row['id'], hook: String(row['hook']), key: String(row['dedupe_key']) })),
    newest: Number(newest?.['at']),
  }
}

/** The same, as a reader shows it. */
async function readStates(reader: StoreReader, before: Awaited<ReturnType<typeof readTables>>) {
  const deliveries = await reader.deliveries({ limit })
  const jobs = await Promise.all(before.jobs.map(({ id }) => reader.job(String(id))))
  const found = await Promise.all(deliveries.map(({ deliveryId }) => reader.delivery(deliveryId)))
  expect(found.map((record) => record?.deliveryId)).toEqual(deliveries.map(({ deliveryId }) => deliveryId))
  return {
    ...before,
    deliveries: deliveries.map(({ deliveryId, state }) => ({ id: deliveryId, state })),
    jobs: jobs.map((job) => ({ id: job?.id, state: job?.state })),
    events: (await reader.events({ limit })).length,
  }
}

/** Performs all that may start. Returns the ids in the order of their starts. */
async function performAll(store: OpenedStore): Promise<string[]> {
  const performed: string[] = []
  for (;;) {
    const jobs = await store.claim({ limit: 9, leaseMs: 60_000 })
    if (jobs.length === 0) return performed
    for (const job of jobs) {
      performed.push(job.id)
      expect(await store.report(job, { outcome: { kind: 'done' } })).toBe(true)
    }
  }
}
