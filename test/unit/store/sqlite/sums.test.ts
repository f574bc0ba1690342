// A row whose text was changed by something else than the store is never run or sent, and says so; the other rows go on.
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { checkIntegrity } from '../../../../src/cli/checks/store.ts'
import { readSqlite } from '../../../../src/store/sqlite/copy.ts'
import { openDatabase } from '../../../../src/store/sqlite/driver.ts'
import { damagedText } from '../../../../src/store/sqlite/sums.ts'
import { findWalDamage, saveDamagedWal } from '../../../../src/store/sqlite/wal-damage.ts'
import { copiedTables } from '../../../../src/store/copy.ts'
import { rowDamagedReason } from '../../../../src/store/rules.ts'
import type { NewDelivery } from '../../../../src/store/records.ts'
import { accepted, keyed, newDelivery, newEvent, newJob, newWake, parked } from '../../../contract/stage.ts'
import { newFolder, openStore, small } from './stage.ts'

/** A store with a delivery, and a change of its file that no one is told of. */
async function openDamaged(damage: string, ...deliveries: Partial<NewDelivery>[]) {
  const file = join(newFolder(), 'x.db')
  const store = openStore(file)
  for (const each of deliveries) await store.append(newDelivery({ at: 1, ...each }))
  const db = openDatabase(file, { readOnly: false, busyMs: 0 })
  db.exec(damage)
  db.close()
  return { file, store }
}

const session = { agentId: 'main', sessionKey: 'main', limit: 9 }

describe('rows that do not have their checksum', () => {
  test('a parked request is not returned, and those after it are', async () => {
    const damage = `UPDATE deliveries SET body = CAST('{"a":2}' AS BLOB) WHERE id = 'bad'`
    const { file, store } = await openDamaged(damage, { id: 'bad', ...parked() }, { id: 'good', ...parked() })
    const open = await store.openDeliveries({ limit: 9 })
    expect(open.map(({ deliveryId, request }) => [deliveryId, request !== undefined])).toEqual([
      ['bad', false],
      ['good', true],
    ])
    await expect(store.request('bad')).rejects.toMatchObject({ code: 'row-damaged' })
    expect(checkIntegrity(file, undefined)).toMatchObject({
      ok: false,
      detail: expect.stringContaining('deliveries bad'),
    })
  })

  test.each([
    ['a plan', `UPDATE jobs SET planned = replace(planned, 'Review', 'Revert') WHERE id = 'bad'`],
    ['the plan of the only run of a delivery', `UPDATE deliveries SET plan = replace(plan, 'Review', 'Revert')`],
    ['a recorded step', `UPDATE jobs SET steps = '[{"name":"run","state":"done","at":2}]' WHERE id = 'bad'`],
  ])('a run with %s that was changed is dead, and the next one of its lane runs', async (_, damage) => {
    const jobs = ['bad', 'good'].map((id) => newJob({ id, lane: 'lane' }))
    const isOnly = damage.includes('deliveries')
    const { store } = await openDamaged(damage, ...(isOnly ? [{ jobs: jobs.slice(0, 1) }] : [{ jobs }]))
    const claimed = [
      ...(await store.claim({ limit: 9, leaseMs: 1_000 })),
      ...(await store.claim({ limit: 9, leaseMs: 1_000 })),
    ]
    expect(claimed.map(({ id }) => id)).toEqual(isOnly ? [] : ['good'])
    expect(await store.job('bad')).toMatchObject({ state: 'dead', lastError: rowDamagedReason })
  })

  test('a run is claimed again with the steps and posts that it recorded', async () => {
    const { store } = await openDamaged('SELECT 1', { jobs: [newJob({ id: 'a' })] })
    for (const name of ['run', 'event'] as const) {
      const [job] = await store.claim({ limit: 1, leaseMs: 1_000 })
      if (job === undefined) throw new Error('it is queued')
      await store.report(job, { steps: [{ name, state: 'done', at: 1, result: 'é' }], outcome: { kind: 'release' } })
    }
    const [job] = await store.claim({ limit: 1, leaseMs: 1_000 })
    expect(job?.steps.map(({ name }) => name)).toEqual(['run', 'event'])
  })

  test('the text of an event is replaced, is not trusted, and is consumed once', async () => {
    const damage = `UPDATE events SET text = 'all is well'; UPDATE deliveries SET plan = replace(plan, 'fire', 'fine')`
    const jobs = [newJob({ events: [newEvent({ text: 'all is lost', trusted: true })] })]
    const { store } = await openDamaged(damage, { jobs }, { jobs: [newWake('fire')] })
    const { events } = await store.waitingEvents(session)
    expect(events.map(({ text, trusted }) => [text, trusted])).toEqual([
      [damagedText, false],
      [damagedText, false],
    ])
  })

  test('a duplicate does not get an answer that is not the first one', async () => {
    const damage = `UPDATE deliveries SET answer_status = 500`
    const { store } = await openDamaged(damage, { ...keyed('k'), ...accepted() })
    await expect(store.findAnswer({ hook: 'github', key: 'k' })).rejects.toMatchObject({ code: 'row-damaged' })
  })

  test('rows that are older than their checksums are read, and a copy of a damaged one is refused', async () => {
    const old = 'UPDATE deliveries SET sum = NULL, request_sum = NULL, hook = substr(hook, 1)'
    const { store } = await openDamaged(old, parked())
    expect((await store.openDeliveries({ limit: 9 }))[0]?.request).toBeDefined()
    const { file, store: other } = await openDamaged(`UPDATE deliveries SET hook = 'x'`, parked())
    await other.close()
    const [deliveries] = copiedTables
    if (deliveries === undefined) throw new Error('it is the first table')
    const copied = readSqlite(file, async (source) => source.read(deliveries, undefined, 9))
    await expect(copied).rejects.toMatchObject({ code: 'row-damaged' })
  })
})

describe('the log of a gateway that was killed', () => {
  async function killStore() {
    const [file, copy] = [join(newFolder(), 'x.db'), join(newFolder(), 'x.db')]
    const store = openStore(file)
    for (let n = 0; n < 5; n += 1) await store.append(small())
    for (const ending of ['', '-wal', '-shm']) copyFileSync(file + ending, copy + ending)
    return copy
  }
  const cut = (file: string, bytes: number) => writeFileSync(file, readFileSync(file).subarray(0, bytes))

  test('an intact log has no damage, with its index and without', async () => {
    const file = await killStore()
    expect(findWalDamage(file)).toBeUndefined()
    cut(`${file}-shm`, 0)
    expect(findWalDamage(file)).toBeUndefined()
  })

  test.each([0, 20, 40, 3_000])('a change at byte %d is found, and the log is copied', async (place) => {
    const file = await killStore()
    const bytes = readFileSync(`${file}-wal`)
    bytes.writeUInt8(bytes.readUInt8(place) ^ 1, place)
    writeFileSync(`${file}-wal`, bytes)
    cut(`${file}-shm`, 0)
    expect(findWalDamage(file)).toContain('damaged')
    expect(saveDamagedWal(file, 7)).toContain('x.db-wal.damaged-7')
    expect(readFileSync(`${file}-wal.damaged-7`).equals(bytes)).toBe(true)
  })

  test('a log that lacks its last commits is found by its index', async () => {
    const file = await killStore()
    cut(`${file}-wal`, 32)
    expect(findWalDamage(file)).toContain('only the first 0')
  })

  test('of a log that the system does not read, SQLite says what is wrong', async () => {
    const file = await killStore()
    rmSync(`${file}-wal`)
    mkdirSync(`${file}-wal`)
    expect(findWalDamage(file)).toBeUndefined()
  })

  test('a change behind the first four megabytes is found', async () => {
    const file = await killStore()
    const bytes = readFileSync(`${file}-wal`)
    const [frameBytes, frames] = [bytes.readUInt32BE(8) + 24, 2_500]
    const commit = bytes.subarray(bytes.length - frameBytes)
    // SQLite reads up to the first frame without its checksum; later commits show that there were more
    writeFileSync(`${file}-wal`, Buffer.concat([bytes, ...Array.from({ length: frames }, () => commit)]))
    const written = (bytes.length - 32) / frameBytes + frames - 1
    expect(findWalDamage(file)).toContain(`of at least ${written} pages of commits`)
  })
})
