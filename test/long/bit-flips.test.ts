// A bit of the database that changes on the disk changes nothing silently that an agent is told, that is sent, or that a sender is answered.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { beforeAll, describe, expect, test } from 'vitest'
import { createSqliteStore } from '../../src/store/sqlite/sqlite.ts'
import { makeFolder } from '../e2e/gateway.ts'
import { createDice } from '../e2e/load.ts'
import { count } from '../counts.ts'
import { seed } from '../seed.ts'
import { askDoctor, fillStore, findDifference, readStore, type Seen } from './flipped-store.ts'

setFlagsFromString('--expose-gc')
// as: the flag creates this function; without it, closed files keep their descriptors
const collect = runInNewContext('gc') as () => void

/** The files of a store: of one that was closed, or of one whose gateway was killed. */
type Disk = { readonly [ending: string]: Buffer }
const endings = ['', '-wal', '-shm']

function readDisk(file: string): Disk {
  return Object.fromEntries(
    endings.filter((ending) => existsSync(file + ending)).map((ending) => [ending, readFileSync(file + ending)]),
  )
}

function writeDisk(file: string, disk: Disk): void {
  for (const ending of endings) rmSync(file + ending, { force: true })
  for (const [ending, bytes] of Object.entries(disk)) writeFileSync(file + ending, bytes)
}

const flip = (disk: Disk, ending: string, bit: number): Disk => {
  const bytes = Buffer.from(disk[ending] ?? [])
  bytes.writeUInt8(bytes.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
  return { ...disk, [ending]: bytes }
}

const flips = 700
const logFlips = 200
const cuts = 100

const readSize = (disk: Disk, ending: string) => disk[ending]?.length ?? 0

type Outcome = 'same' | 'told when read' | 'told by doctor' | 'silent in lists' | 'silent'

async function judge(
  disk: Disk,
  stored: { ids: readonly string[]; seen: Seen },
): Promise<{ outcome: Outcome; what: string }> {
  const file = join(makeFolder(), 'store.db')
  writeDisk(file, disk)
  const doctor = askDoctor(file)
  writeDisk(file, disk)
  const seen = await readStore(file, stored.ids)
  rmSync(file)
  const [used, shown] = [findDifference(stored.seen.used, seen.used), findDifference(stored.seen.shown, seen.shown)]
  const what = used ?? shown ?? ''
  if (used === undefined && shown === undefined) return { outcome: 'same', what }
  if (seen.told.length > 0) return { outcome: 'told when read', what }
  if (doctor !== undefined) return { outcome: 'told by doctor', what }
  return { outcome: used === undefined ? 'silent in lists' : 'silent', what }
}

describe('bits that change on the disk', () => {
  const disks: { closed: Disk; killed: Disk } = { closed: {}, killed: {} }
  let stored: { ids: readonly string[]; seen: Seen }

  beforeAll(async () => {
    const file = join(makeFolder(), 'store.db')
    const store = createSqliteStore({ file, clock: Date.now })
    await fillStore(store)
    const ids = (await store.deliveries({ limit: 1_000 })).map(({ deliveryId }) => deliveryId)
    disks.killed = readDisk(file)
    await store.close()
    disks.closed = readDisk(file)
    const copy = join(makeFolder(), 'store.db')
    writeDisk(copy, disks.closed)
    stored = { ids, seen: await readStore(copy, ids) }
    if (stored.seen.told.length > 0) throw new Error(`An intact store tells of damage: ${stored.seen.told.join()}`)
  }, 120_000)

  async function judgeAll(cases: number, pick: (roll: (limit: number) => number) => Disk) {
    const roll = createDice(seed)
    const found: Record<string, number> = {}
    const silent: string[] = []
    for (let n = 0; n < cases; n += 1) {
      const { outcome, what } = await judge(pick(roll), stored)
      found[outcome] = (found[outcome] ?? 0) + 1
      if (outcome === 'silent') silent.push(`${n} ${what}`)
      if (n % 20 === 0) collect()
    }
    return { found, silent }
  }

  test(
    `${flips} flips in the database: at most one in a hundred is silent, in the state of a row, except in lists`,
    { timeout: 300_000 },
    async (context) => {
      const bits = 8 * readSize(disks.closed, '')
      const { found, silent } = await judgeAll(flips, (roll) => flip(disks.closed, '', roll(bits)))
      // the state of a row has no checksum, because it would be written with each change: that an event was consumed, or a delivery is over
      expect(silent.length, `HOOKLOOM_SEED=${seed}: ${silent.join()}`).toBeLessThanOrEqual(flips / 100)
      expect(found['told when read']).toBeGreaterThan(flips / 20)
      count(context, found)
    },
  )

  test(`${logFlips} flips in the log of a killed gateway: none is silent`, { timeout: 300_000 }, async (context) => {
    const bits = 8 * readSize(disks.killed, '-wal')
    const { found, silent } = await judgeAll(logFlips, (roll) => flip(disks.killed, '-wal', roll(bits)))
    expect({ seed, silent, lists: found['silent in lists'] }).toEqual({ seed, silent: [] })
    count(context, found)
  })

  test(`${cuts} truncations of the database and of the log: none is silent`, { timeout: 300_000 }, async (context) => {
    const kinds = [
      [disks.closed, ''],
      [disks.killed, '-wal'],
    ] as const
    const { found, silent } = await judgeAll(cuts, (roll) => {
      const [disk, ending] = kinds[roll(2)] ?? kinds[0]
      return {
        ...disk,
        [ending]: Buffer.from((disk[ending] ?? Buffer.alloc(0)).subarray(0, roll(readSize(disk, ending)))),
      }
    })
    expect({ seed, silent, lists: found['silent in lists'] }).toEqual({ seed, silent: [] })
    count(context, found)
  })
})
