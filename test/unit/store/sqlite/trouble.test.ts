// A store that cannot write refuses calls, reports the reason, and recovers by itself.
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { silentLog } from '../../../../src/base/log.ts'
import { toOperationFailure } from '../../../../src/store/sqlite/batch.ts'
import { readSqlite } from '../../../../src/store/sqlite/copy.ts'
import { openDatabase } from '../../../../src/store/sqlite/driver.ts'
import { spawnWriter } from '../../../../src/store/sqlite/queue.ts'
import { createSqliteReader } from '../../../../src/store/sqlite/sqlite.ts'
import { rowDamagedReason } from '../../../../src/store/rules.ts'
import { damageRow, flowJob, newPair } from '../../../contract/flow.ts'
import { newDelivery, newJob, parked, request } from '../../../contract/stage.ts'
import { createSpawn, newFolder, openStore, small } from './stage.ts'

describe('trouble with the file of a store', () => {
  test('a full disk makes the store refuse appends, until there is room again', async () => {
    const { spawn } = createSpawn(100)
    const store = openStore(join(newFolder(), 'x.db'), { spawn })
    const newBig = () => newDelivery({ at: Date.now(), ...parked({ request: request('x'.repeat(40_000)) }) })
    const stored: string[] = []
    const fill = async () => {
      for (;;) {
        const delivery = newBig()
        await store.append(delivery)
        stored.push(delivery.id)
      }
    }
    await expect(fill()).rejects.toMatchObject({
      code: 'store-unavailable',
      message: 'The store cannot write: the disk is full.',
      retryAfterSeconds: 5,
    })
    expect((await store.counts()).deliveries.parked).toBe(stored.length)
    for (const id of stored) await store.drop(id)
    expect(await store.append(newBig())).toEqual({ kind: 'stored' })
    expect(await store.health()).toMatchObject({ trouble: undefined })
  })

  test('a store whose folder cannot be created starts without an exception, refuses writes, and works when the folder exists', async () => {
    const inTheWay = join(newFolder(), 'state')
    writeFileSync(inTheWay, 'a file where the folder should be')
    const told: string[] = []
    const log = (_: object, message: string) => void told.push(message)
    const store = openStore(join(inTheWay, 'x.db'), { log: { debug: log, info: log, warn: log, error: log } })
    await store.ready()
    await expect(store.append(small())).rejects.toMatchObject({ code: 'store-unavailable', retryAfterSeconds: 5 })
    expect(await store.health()).toMatchObject({ trouble: 'The store cannot write: its file cannot be opened.' })
    expect(await store.findAnswer({ hook: 'github', key: 'k' })).toBeUndefined()
    rmSync(inTheWay)
    mkdirSync(inTheWay)
    // the health check notices that the failure is over, without another call
    expect(await store.health()).toMatchObject({ trouble: undefined, facts: { synchronous: 2 } })
    const delivery = small()
    expect(await store.append(delivery)).toEqual({ kind: 'stored' })
    expect(await store.delivery(delivery.id)).toBeDefined()
    expect(told).toEqual(['The store cannot write: its file cannot be opened.', 'The store can write again.'])
  })

  test('a store file that was deleted while open is created again, so that no commit goes to the deleted file', async () => {
    const folder = join(newFolder(), 'state')
    const file = join(folder, 'x.db')
    const store = openStore(file)
    await store.append(small())
    rmSync(folder, { recursive: true })
    const delivery = small()
    await store.append(delivery)
    const reader = createSqliteReader({ file })
    expect(await reader.deliveries({ limit: 9 })).toMatchObject([{ deliveryId: delivery.id }])
    await reader.close()
    expect(await store.deliveries({ limit: 9 })).toMatchObject([{ deliveryId: delivery.id }])
  })

  test('a gateway joins again after the store file was deleted while open', async () => {
    const folder = newFolder()
    const store = openStore(join(folder, 'x.db'))
    const node = { id: 'host-1', version: '1.2.3', generation: 'g1', address: 'http://127.0.0.1:8790/hooks' }
    await store.join(node)
    for (const name of readdirSync(folder)) rmSync(join(folder, name))
    await store.append(small())
    expect(await store.nodes()).toEqual([])
    await store.join(node)
    expect(await store.nodes()).toMatchObject([node])
  })

  test('the loss of the store file is logged', async () => {
    const folder = newFolder()
    const told: string[] = []
    const note = (_: object, message: string) => void told.push(message)
    const store = openStore(join(folder, 'x.db'), { log: { ...silentLog, error: note } })
    await store.append(small())
    for (const name of readdirSync(folder)) rmSync(join(folder, name))
    await store.append(small())
    await store.append(small())
    expect(told).toEqual([expect.stringMatching(/^The file of the store was deleted or replaced/)])
  })

  test('a store file that can be opened but not written is reported at the start, before a delivery is refused', async () => {
    const file = join(newFolder(), 'x.db')
    mkdirSync(`${file}.probe`)
    const store = openStore(file)
    await store.ready()
    expect(await store.health()).toMatchObject({ trouble: expect.stringMatching(/^The store cannot write/) })
    rmSync(`${file}.probe`, { recursive: true })
    expect(await store.health()).toMatchObject({ trouble: undefined })
  })

  test('damage in the middle of a store file is reported as damage, whichever statement finds it', async () => {
    const file = join(newFolder(), 'x.db')
    const first = openStore(file)
    for (let n = 0; n < 50; n += 1) await first.append(newDelivery({ at: 1, jobs: [newJob()] }))
    await first.close()
    const bytes = readFileSync(file)
    // every second page loses its header, except next to the schema
    for (let at = 4096; at < bytes.length; at += 4096)
      if (!isSchema(bytes.subarray(at, at + 4096))) bytes.fill(0xff, at, at + 8)
    writeFileSync(file, bytes)
    const damaged = { code: 'store-unavailable', message: expect.stringMatching(/its file is damaged\.$/) }
    const store = openStore(file)
    await expect(store.deliveries({ limit: 9 })).rejects.toMatchObject(damaged)
    await expect(store.claim({ limit: 9, leaseMs: 1_000 })).rejects.toMatchObject(damaged)
    expect(await store.health()).toMatchObject({ trouble: 'The store cannot write: its file is damaged.' })
  })

  test('damage within a row of the store is reported without quoting the row', async () => {
    const file = join(newFolder(), 'x.db')
    const store = openStore(file)
    await store.append(small())
    const db = openDatabase(file, { readOnly: false, busyMs: 0 })
    db.exec(`UPDATE deliveries SET log = '["a secret'`)
    db.close()
    const failed = await store.deliveries({ limit: 9 }).catch((error: unknown) => error)
    expect(failed).toMatchObject({
      code: 'store-unavailable',
      message: 'The store cannot be read: one of its rows is damaged.',
    })
    expect(inspect(failed)).not.toContain('secret')
  })

  test('a statement that fails is not reported as a file that cannot be opened', () => {
    const db = openDatabase(':memory:', { readOnly: false, busyMs: 0 })
    const fail = () => {
      try {
        return db.exec('SELECT * FROM nothing')
      } catch (error) {
        return toOperationFailure(error)
      }
    }
    expect(fail()).toMatchObject({ detail: 'The store cannot write: SQLite refuses a statement.' })
    db.close()
  })

  test('if the file of a store cannot be opened to copy it, its lock is released', async () => {
    const file = join(newFolder(), 'x.db')
    mkdirSync(file)
    await expect(readSqlite(file, async () => undefined)).rejects.toThrow('unable to open database file')
    rmSync(file, { recursive: true })
    const store = openStore(file)
    await store.append(small())
    await store.close()
    expect(await readSqlite(file, (source) => source.count({ name: 'deliveries', key: ['seq'], columns: {} }))).toBe(1)
  })

  test.each<[what: string, table: string, column: string, hasFlow?: boolean]>([
    ['a damaged plan', 'jobs', 'planned'],
    ['a flow and a damaged plan', 'jobs', 'planned', true],
    ['damaged labels', 'jobs', 'labels'],
    ['a flow and damaged labels', 'jobs', 'labels', true],
    ['a flow and damaged settings of it', 'job_flow', 'settings', true],
  ])('a job with %s ends, and the other jobs are claimed', async (_, table, column, hasFlow) => {
    const file = join(newFolder(), 'x.db')
    const store = openStore(file)
    await store.append(newDelivery({ at: 1, jobs: newPair(hasFlow) }))
    const db = openDatabase(file, { readOnly: false, busyMs: 0 })
    db.exec(damageRow(table, column))
    await store.hold({ label: 'session:a', kind: 'pause', reason: 'x', author: 'ada', forMs: undefined })
    expect(await store.claim({ limit: 9, leaseMs: 1000 })).toMatchObject([{ id: 'good' }])
    expect((await store.counts()).jobs).toMatchObject({ dead: 1, running: 1 })
    expect(db.get(`SELECT last_error FROM jobs WHERE id = 'bad'`)).toEqual({ last_error: rowDamagedReason })
    db.close()
  })

  test('a claim that fails while it sorts new jobs of flows returns the jobs that it has leased', async () => {
    let posts = Infinity
    const spawn: typeof spawnWriter = (options) => {
      const worker = spawnWriter(options)
      const post = worker.postMessage.bind(worker)
      worker.postMessage = (message: unknown) => {
        posts -= 1
        if (posts < 0) throw new Error('no memory')
        post(message)
      }
      return worker
    }
    const store = openStore(join(newFolder(), 'x.db'), { spawn, directBelowMs: 0 })
    await store.append(newDelivery({ at: 1, jobs: [newJob({ id: 'plain' })] }))
    const jobs = Array.from({ length: 101 }, (_, index) => flowJob({ key: `k${index}` }))
    await store.append(newDelivery({ at: 1, jobs }))
    posts = 1
    expect((await store.claim({ limit: 9, leaseMs: 1_000 })).map(({ id }) => id)).toEqual(['plain'])
    await expect(store.claim({ limit: 9, leaseMs: 1_000 })).rejects.toMatchObject({ code: 'store-unavailable' })
    posts = Infinity
  })

  test('the error for a file that is not a database says that', async () => {
    const file = join(newFolder(), 'x.db')
    writeFileSync(
      file,
      'not a database, but longer than the header of one would have to be, and then some. '.repeat(20),
    )
    const store = openStore(file)
    await expect(store.append(small())).rejects.toMatchObject({ message: /is not a database/ })
  })

  test('a store file of a newer hookloom is refused at the start, and by a reader, and not written', async () => {
    const file = join(newFolder(), 'x.db')
    const db = openDatabase(file, { readOnly: false, busyMs: 0 })
    db.exec('PRAGMA journal_mode = WAL; PRAGMA user_version = 99')
    db.close()
    const bytes = readFileSync(file)
    const newer = {
      code: 'config-invalid',
      message: expect.stringMatching(/x\.db was written by a newer hookloom \(schema 99;/),
    }
    await expect(openStore(file).ready()).rejects.toMatchObject(newer)
    await expect(createSqliteReader({ file }).deliveries({ limit: 1 })).rejects.toMatchObject(newer)
    expect(readFileSync(file).equals(bytes)).toBe(true)
  })
})

describe('the owner of a store file', () => {
  test('a store file has one owner: a second store is refused, with the file name and process id of the owner, until the first is closed', async () => {
    const file = join(newFolder(), 'state', 'x.db')
    const [first, second] = [openStore(file), openStore(file)]
    await first.ready()
    await expect(second.ready()).rejects.toMatchObject({
      code: 'store-locked',
      message: `state/x.db is in use by another gateway (pid ${process.pid}). Stop it, or give this one another store.file.`,
    })
    await expect(second.append(small())).rejects.toMatchObject({ code: 'store-locked' })
    expect(await first.append(small())).toEqual({ kind: 'stored' })
    await first.close()
    await second.ready()
    expect(await second.append(small())).toEqual({ kind: 'stored' })
  })

  test.skipIf(process.platform === 'win32').each([
    ['a link to the file', 'data/x.db', 'link.db', 'link.db'],
    ['a link to its folder', 'data', 'state', 'state/x.db'],
  ])('a store file has one owner, although another store opens it through %s', async (_, target, link, other) => {
    for (const isMissing of [true, false]) {
      const folder = newFolder()
      mkdirSync(join(folder, 'data'))
      symlinkSync(target, join(folder, link))
      const file = join(folder, 'data/x.db')
      if (!isMissing) await openStore(file).close()
      const [first, second] = [openStore(join(folder, other)), openStore(file)]
      await first.append(small())
      await expect(second.ready()).rejects.toMatchObject({ code: 'store-locked' })
      await expect(readSqlite(join(folder, other), async () => undefined)).rejects.toMatchObject({
        code: 'store-locked',
      })
      await first.close()
      await second.ready()
      expect((await second.counts()).deliveries.accepted).toBe(1)
    }
  })

  test.skipIf(process.platform === 'win32')(
    'only the user of the gateway can read the store files, even in a folder open to others',
    async () => {
      const folder = newFolder()
      chmodSync(folder, 0o755)
      const store = openStore(join(folder, 'x.db'))
      await store.append(small())
      await store.deliveries({ limit: 1 })
      const files = readdirSync(folder).toSorted()
      expect(files).toEqual(['x.db', 'x.db-shm', 'x.db-wal', 'x.db.lock', 'x.db.pid'])
      const open = files.filter((name) => (statSync(join(folder, name)).mode & 0o077) !== 0)
      expect(open).toEqual([])
    },
  )

  test('the owner of one store file does not lock another file', async () => {
    const folder = newFolder()
    await openStore(join(folder, 'a.db')).ready()
    await expect(openStore(join(folder, 'b.db')).ready()).resolves.toBeUndefined()
  })
})

describe('a reader of a store', () => {
  test('a reader reads the store while a gateway runs, and after it stopped', async () => {
    const file = join(newFolder(), 'x.db')
    const store = openStore(file)
    await store.ready()
    const reader = createSqliteReader({ file })
    expect(await reader.deliveries({ limit: 9 })).toEqual([])
    const delivery = small()
    await store.append(delivery)
    expect(await reader.deliveries({ limit: 9 })).toMatchObject([{ deliveryId: delivery.id }])
    await store.close()
    expect(await reader.delivery(delivery.id)).toBeDefined()
    await reader.close()
  })

  test('a reader without a store names the missing file', async () => {
    const file = join(newFolder(), 'none.db')
    await expect(createSqliteReader({ file }).counts()).rejects.toMatchObject({
      code: 'config-missing',
      message: expect.stringContaining(file),
    })
  })

  test('a read that has ended does not prevent the WAL from being reset', async () => {
    const file = join(newFolder(), 'x.db')
    const store = openStore(file)
    const delivery = small()
    await store.append(delivery)
    await store.delivery(delivery.id)
    await store.findAnswer({ hook: 'github', key: 'k' })
    const db = openDatabase(file, { readOnly: false, busyMs: 0 })
    expect(db.get('PRAGMA wal_checkpoint(RESTART)')).toMatchObject({ busy: 0 })
    db.close()
  })
})

const isSchema = (page: Buffer) => page.includes('CREATE ')
