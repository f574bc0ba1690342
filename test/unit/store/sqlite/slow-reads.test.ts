// The slow reads of a large file run in a thread of their own.
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createReadConnection } from '../../../../src/store/sqlite/connection.ts'
import { createReads } from '../../../../src/store/sqlite/reads.ts'
import { createSlowReads } from '../../../../src/store/sqlite/slow-reads.ts'
import { createSqliteStore } from '../../../../src/store/sqlite/sqlite.ts'
import { newDelivery, request } from '../../../contract/stage.ts'

const folder = mkdtempSync(join(tmpdir(), 'hookloom-slow-'))

async function fill(name: string, hook: string): Promise<string> {
  const file = join(folder, name)
  const store = createSqliteStore({ file, clock: () => 1_000 })
  await store.append(newDelivery({ at: 1_000, hook }))
  await store.close()
  return file
}

function open(file: string, aboveBytes: number) {
  const connection = createReadConnection(file)
  const reads = createReads(connection, () => 1_000)
  const here = vi.spyOn(reads, 'deliveries')
  const slow = createSlowReads({ file, clock: () => 1_000, reads, aboveBytes })
  onTestFinished(async () => {
    await slow.close()
    connection.close()
  })
  const readHooks = async () => (await slow.calls.deliveries({ limit: 9 })).map(({ hook }) => hook)
  return { slow, here, readHooks }
}

test('only a file that is large enough is read in the thread', async () => {
  const file = await fill('sizes.db', 'one')
  const small = open(file, 1_000_000_000)
  expect(await small.readHooks()).toEqual(['one'])
  expect(small.here).toHaveBeenCalledOnce()
  const large = open(file, 1)
  expect(await large.readHooks()).toEqual(['one'])
  expect(large.here).not.toHaveBeenCalled()
})

test('calls at the same time each get their own answer', async () => {
  const { slow } = open(await fill('answers.db', 'one'), 0)
  const [counts, deliveries, none] = await Promise.all([
    slow.calls.counts(),
    slow.calls.deliveries({ limit: 9 }),
    slow.calls.deliveries({ limit: 9, hook: 'other' }),
  ])
  expect([counts.deliveries.accepted, deliveries.length, none.length]).toEqual([1, 1, 0])
})

test('after a reset, the thread reads the file that took the place of the other', async () => {
  const file = await fill('first.db', 'one')
  const { slow, readHooks } = open(file, 0)
  expect(await readHooks()).toEqual(['one'])
  const other = await fill('second.db', 'two')
  rmSync(file)
  copyFileSync(other, file)
  slow.reset()
  expect(await readHooks()).toEqual(['two'])
})

test('a file that cannot be read is a problem of the store, and a closed store says so', async () => {
  const file = join(folder, 'none.db')
  writeFileSync(file, 'this is no database, and it is longer than the header of one. '.repeat(20))
  const { slow, readHooks } = open(file, 0)
  await expect(readHooks()).rejects.toMatchObject({
    code: 'store-unavailable',
    message: expect.stringContaining('cannot be read'),
  })
  await slow.close()
  await expect(readHooks()).rejects.toMatchObject({ message: 'The store is closed.' })
})

test('a kept request that its ring deletes after it was found is left out', async () => {
  const file = join(folder, 'ring.db')
  const store = createSqliteStore({ file, clock: () => 1_000 })
  const connection = createReadConnection(file)
  const reads = createReads(connection, () => 1_000)
  const append = () => store.append(newDelivery({ at: 1_000, ringSize: 1, request: request('{}') }))
  await append()
  const found = await reads.keptSeqs({ limit: 9 })
  expect(await reads.keptAt(found)).toHaveLength(1)
  await append()
  expect(await reads.keptAt(found)).toEqual([])
  connection.close()
  await store.close()
})
