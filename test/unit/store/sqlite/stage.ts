// Folders and stores for the tests of SQLite on disk. They are removed after each test.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { onTestFinished } from 'vitest'
import { spawnWriter } from '../../../../src/store/sqlite/queue.ts'
import { createSqliteStore, type SqliteOptions } from '../../../../src/store/sqlite/sqlite.ts'
import type { OpenedStore } from '../../../../src/store/store.ts'
import { newDelivery } from '../../../contract/stage.ts'

export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'hookloom-sqlite-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export function openStore(file: string, options: Partial<SqliteOptions> = {}): OpenedStore {
  const store = createSqliteStore({ file, clock: Date.now, ...options })
  onTestFinished(() => store.close())
  return store
}

/** Starts writer threads, with a limit on the pages of the file if one is given, and records them. */
export function createSpawn(maxPages?: number) {
  const spawned: Worker[] = []
  const spawn: typeof spawnWriter = (options) => {
    const worker = spawnWriter(maxPages === undefined ? options : { ...options, maxPages })
    spawned.push(worker)
    return worker
  }
  return { spawn, spawned }
}

export const small = () => newDelivery({ at: Date.now() })
