// A loss of power loses no delivery that was answered with 200. The system calls of a gateway under load are recorded once; then each of the seeded
// losses leaves another disk of them, which is opened as the gateway opens it.
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { openDatabase } from '../../src/store/sqlite/driver.ts'
import { makeFolder, mainFile, startGateway } from '../e2e/gateway.ts'
import { createDice, createLoad } from '../e2e/load.ts'
import { count } from '../counts.ts'
import { seed } from '../seed.ts'
import { type DiskEvent, losePower, readHistory, straceOptions } from './disk-history.ts'

const deliveries = 400
const parts = 2
const losses = 1_000
const hasStrace = spawnSync('strace', ['-V'], { stdio: 'ignore' }).status === 0

type Loss = { readonly lost: number; readonly damage: string | undefined; readonly answered: number }

/** Loses the power at `count` random events, and opens each disk. */
function openLosses(history: readonly DiskEvent[], folder: string, count: number): Loss[] {
  const to = makeFolder()
  return Array.from(losePower(history, { folder, count, pick: createDice(seed) }), ({ answered, write }) => {
    rmSync(to, { recursive: true, force: true })
    mkdirSync(to)
    write(to)
    return { ...openDisk(to, answered), answered: answered.size }
  })
}

function openDisk(dir: string, answered: ReadonlySet<string>): Omit<Loss, 'answered'> {
  try {
    const db = openDatabase(join(dir, 'hookloom.db'), { readOnly: false, busyMs: 0 })
    try {
      const damage = db
        .all('PRAGMA integrity_check')
        .flatMap((row) => Object.values(row))
        .join()
      if (damage !== 'ok') return { lost: 0, damage }
      const hasTable = db.all("SELECT name FROM sqlite_master WHERE name = 'deliveries'").length > 0
      const kept = new Set(hasTable ? db.all('SELECT id FROM deliveries').flatMap((row) => Object.values(row)) : [])
      return { lost: [...answered].filter((id) => !kept.has(id)).length, damage: undefined }
    } finally {
      db.close()
    }
  } catch (error) {
    return { lost: 0, damage: String(error) }
  }
}

const listFlushes = (history: readonly DiskEvent[]) =>
  history.filter((event) => event.kind === 'sync' && event.file.endsWith('.db'))

/** The history of a store that does not flush the file with this ending. */
function forgetFlushes(history: readonly DiskEvent[], ending: string): DiskEvent[] {
  return history.map((event) => (event.kind === 'sync' && event.file.endsWith(ending) ? { ...event, began: 0 } : event))
}

const sum = (found: readonly Loss[]) => ({
  losses: found.length,
  lost: found.filter(({ lost }) => lost > 0).length,
  damaged: found.flatMap(({ damage }) => damage ?? []).slice(0, 3),
})

describe.skipIf(!hasStrace)('losses of power (skipped without strace)', () => {
  const dir = makeFolder()
  const folder = join(dir, 'state')
  let history: readonly DiskEvent[] = []

  beforeAll(async () => {
    const calls = join(makeFolder(), 'calls')
    const gateway = await startGateway({
      dir,
      config: {},
      program: { node: 'strace', main: mainFile },
      nodeArgs: [...straceOptions(calls), process.execPath],
    })
    // in the pause after each part, the writer checkpoints a log of this length
    const load = createLoad({ connections: 8, pickBelow: createDice(seed), kinds: ['wake', 'agent'], padding: 12_000 })
    const isWanted = (file: string) => [dir, folder].includes(file) || /\/hookloom\.db(?:-wal|-journal)?$/.test(file)
    const readCalls = () => readHistory(readFileSync(calls, 'utf8').split('\n'), isWanted)
    for (let part = 1; part <= parts; part += 1) {
      const before = listFlushes(readCalls()).length
      load.open(gateway, deliveries / parts)
      await vi.waitUntil(() => load.acknowledged.length === (part * deliveries) / parts, { timeout: 120_000 })
      await vi.waitUntil(() => listFlushes(readCalls()).length > before, { timeout: 120_000, interval: 1_000 })
    }
    await load.finish()
    const { pid } = JSON.parse(readFileSync(join(folder, 'gateway.json'), 'utf8'))
    process.kill(pid, 'SIGKILL')
    await gateway.kill()
    history = readCalls()
  }, 300_000)

  test('the history has each answer, and a whole checkpoint between them', () => {
    expect(history.filter(({ kind }) => kind === 'answer')).toHaveLength(deliveries)
    // the first one is of the new file
    expect(listFlushes(history).length).toBeGreaterThan(parts)
  })

  test(`${losses} losses lose no answered delivery, and damage no store`, { timeout: 600_000 }, (context) => {
    const found = openLosses(history, folder, losses)
    expect({ seed, ...sum(found) }).toEqual({ seed, losses, lost: 0, damaged: [] })
    count(context, { acknowledged: deliveries, lost: 0, 'losses of power': losses })
    expect(new Set(found.map(({ answered }) => answered)).size).toBeGreaterThan(50)
  })

  test(
    'a store that does not flush its file in a checkpoint is damaged, or loses deliveries, on the same disks',
    { timeout: 600_000 },
    () => {
      const unflushed = forgetFlushes(history, '.db')
      const { lost, damaged } = sum(openLosses(unflushed, folder, 50))
      expect(lost + damaged.length).toBeGreaterThan(0)
    },
  )

  test('a store that does not flush its log loses deliveries on the same disks', { timeout: 600_000 }, () => {
    const unflushed = forgetFlushes(history, '-wal')
    expect(sum(openLosses(unflushed, folder, 50)).lost).toBeGreaterThan(5)
  })
})
