// Reads the store of a gateway after a test: while it runs, after it stopped, and after a kill.
import { join } from 'node:path'
import { expect, vi } from 'vitest'
import type { SystemEvent } from '../../src/model/job.ts'
import { openDatabase } from '../../src/store/sqlite/driver.ts'
import { createSqliteReader } from '../../src/store/sqlite/sqlite.ts'
import type { DeliveryRecord } from '../../src/store/records.ts'
import type { StoreReader } from '../../src/store/store.ts'
import type { Sent } from './load.ts'

const all = { limit: 1_000_000 }
const toFile = (dir: string) => join(dir, 'state/hookloom.db')

/** The damage that SQLite finds in the file. */
export function findDamage(dir: string): unknown[] {
  const db = openDatabase(toFile(dir), { readOnly: true, busyMs: 2_000 })
  try {
    const damage = db.all('PRAGMA integrity_check').flatMap((row) => Object.values(row))
    return [...damage.filter((line) => line !== 'ok'), ...db.all('PRAGMA foreign_key_check')]
  } finally {
    db.close()
  }
}

/** Resolves when no job waits or runs. */
export async function drain(dir: string): Promise<void> {
  const reader = createSqliteReader({ file: toFile(dir) })
  try {
    await vi.waitUntil(
      async () => {
        const { queued, running } = (await reader.counts()).jobs
        return queued + running === 0
      },
      { timeout: 60_000, interval: 100 },
    )
  } finally {
    await reader.close()
  }
}

/** Expects that each acknowledged delivery exists once, with each of its effects once, and that nothing else exists. */
export async function expectEachOnce(dir: string, acknowledged: readonly Sent[]): Promise<void> {
  const reader = createSqliteReader({ file: toFile(dir) })
  try {
    await expectEachOnceIn(reader, acknowledged)
  } finally {
    await reader.close()
  }
}

async function expectEachOnceIn(reader: StoreReader, acknowledged: readonly Sent[]): Promise<void> {
  const records = await reader.deliveries(all)
  const byId = new Map(records.map((record) => [record.deliveryId, record]))
  const lost = acknowledged.filter(({ deliveryId }) => !byId.has(deliveryId))
  expect(lost).toEqual([])
  expect(records).toHaveLength(acknowledged.length)
  expect(new Set(acknowledged.map(({ deliveryId }) => deliveryId)).size).toBe(acknowledged.length)

  // an alert belongs to no delivery
  const events = (await reader.events(all)).filter(({ deliveryId }) => deliveryId !== undefined)
  const eventsOf = new Map<string, SystemEvent[]>()
  for (const event of events) {
    const { deliveryId = '' } = event
    eventsOf.set(deliveryId, [...(eventsOf.get(deliveryId) ?? []), event])
  }
  const wrong: object[] = []
  for (const { kind, text, deliveryId } of acknowledged) {
    const told = eventsOf.get(deliveryId) ?? []
    const found = {
      ...toEffects(byId.get(deliveryId)),
      told: told.length,
      named: told.every((event) => event.text.includes(text)),
    }
    const turns = kind === 'wake' ? [] : await readTranscript(byId.get(deliveryId), reader)
    const expected = {
      state: 'accepted',
      jobs: [{ state: 'done', steps: kind === 'wake' ? ['event', 'wake'] : ['run', 'summary', 'wake'] }],
      told: 1,
      named: true,
    }
    const isOnce = JSON.stringify(found) === JSON.stringify(expected)
    if (!isOnce || turns.join() !== (kind === 'wake' ? '' : 'user,assistant')) wrong.push({ kind, text, found, turns })
  }
  expect(wrong).toEqual([])
  expect(events).toHaveLength(acknowledged.length)
}

function toEffects(record: DeliveryRecord | undefined) {
  return {
    state: record?.state,
    jobs: (record?.jobs ?? []).map(({ state, steps }) => ({ state, steps: steps.map(({ name }) => name) })),
  }
}

/** The transcript of a run, by role. A run that was performed twice has four lines. */
async function readTranscript(record: DeliveryRecord | undefined, reader: StoreReader) {
  const [job] = record?.jobs ?? []
  if (job === undefined) return []
  const { agentId, sessionKey } = job.planned
  return (await reader.messages({ agentId, sessionKey, limit: 10, runId: job.id })).map(({ role }) => role)
}
