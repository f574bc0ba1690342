// A lone operation is committed on the main thread while the disk is fast, and every other operation by the writer thread.
import { renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openDatabase } from '../../../../src/store/sqlite/driver.ts'
import { spawnWriter } from '../../../../src/store/sqlite/queue.ts'
import { createSqliteReader, type SqliteOptions } from '../../../../src/store/sqlite/sqlite.ts'
import { keyed, newDelivery } from '../../../contract/stage.ts'
import { newFolder, openStore, small } from './stage.ts'

/** A store, and the number of batches that its writer thread got. */
async function openCounted(options: Partial<SqliteOptions> = {}, file = join(newFolder(), 'x.db')) {
  let batches = 0
  const store = openStore(file, {
    ...options,
    spawn: (given) => {
      const worker = spawnWriter(given)
      const post = worker.postMessage.bind(worker)
      worker.postMessage = (message: unknown, transfers?: unknown) => {
        batches += 1
        post(message, transfers as readonly ArrayBuffer[])
      }
      return worker
    },
  })
  await store.append(small())
  return { store, file, countBatches: () => batches }
}

/** Appends until one is committed on the main thread: a noisy machine may have a slow commit in between. */
async function untilDirect({ store, countBatches }: Awaited<ReturnType<typeof openCounted>>): Promise<void> {
  for (let before = countBatches() - 1; before < countBatches();) {
    before = countBatches()
    await store.append(small())
  }
}

describe('a lone operation', () => {
  test('a lone operation is committed on the main thread: another connection reads it', async () => {
    const counted = await openCounted()
    await untilDirect(counted)
    const reader = createSqliteReader({ file: counted.file })
    expect(await reader.deliveries({ limit: 9 })).toEqual(await counted.store.deliveries({ limit: 9 }))
    const { deliveries } = await reader.counts()
    expect(deliveries.accepted).toBe(Number((await counted.store.health()).facts['commits']))
    await reader.close()
  })

  test('a lone operation is committed by the writer thread on a slow disk', async () => {
    const { store, countBatches } = await openCounted({ commitDelayMs: 3 })
    for (let n = 0; n < 20; n += 1) await store.append(small())
    expect(countBatches()).toBe(21)
  })

  test('a lone operation sometimes goes to the writer thread, because only that thread checkpoints', async () => {
    const { store, countBatches } = await openCounted()
    for (let n = 0; n < 600; n += 1) await store.append(small())
    expect(countBatches()).toBeGreaterThan(2)
  })

  test('a lone operation waits in the writer thread while another connection has the lock, and is stored once', async () => {
    const counted = await openCounted()
    await untilDirect(counted)
    const other = openDatabase(counted.file, { readOnly: false, busyMs: 0 })
    other.exec('BEGIN IMMEDIATE')
    const before = (await counted.store.counts()).deliveries.accepted
    const appended = counted.store.append(newDelivery({ at: 1, ...keyed('k') }))
    setTimeout(() => {
      other.exec('COMMIT')
      other.close()
    }, 50)
    expect(await appended).toEqual({ kind: 'stored' })
    expect((await counted.store.counts()).deliveries.accepted).toBe(before + 1)
    expect(await counted.store.health()).toMatchObject({ trouble: undefined })
  })

  test('a lone operation is stored in the file that replaced the file of the store', async () => {
    const counted = await openCounted()
    await untilDirect(counted)
    const other = await openCounted()
    await other.store.close()
    for (const end of ['-wal', '-shm']) rmSync(`${counted.file}${end}`, { force: true })
    renameSync(other.file, counted.file)
    const delivery = small()
    await counted.store.append(delivery)
    const reader = createSqliteReader({ file: counted.file })
    expect(await reader.delivery(delivery.id)).toMatchObject({ deliveryId: delivery.id })
    await reader.close()
  })
})

describe('operations that wait together', () => {
  test('operations that wait together are one batch of the writer thread', async () => {
    const counted = await openCounted()
    await untilDirect(counted)
    const before = counted.countBatches()
    await Promise.all([counted.store.append(small()), counted.store.append(small()), counted.store.append(small())])
    expect(counted.countBatches()).toBe(before + 1)
  })
})
