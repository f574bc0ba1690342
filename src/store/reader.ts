import { Problem } from '../model/problem.ts'
import { createReadConnection } from './connection.ts'
import { createReads } from './reads.ts'
import type { StoreReader } from './store.ts'

/**
 * Reads a store's file beside a running gateway, or without one. Its calls throw `config-missing` while there is no file,
 * `config-invalid` when a newer hookloom wrote it, `store-unavailable` when it cannot be read.
 */
export function createSqliteReader({ file }: { file: string }): StoreReader {
  const connection = createReadConnection(file, () => {
    throw new Problem('config-missing', `There is no store at ${file}. Start the gateway once, or check store.file.`)
  })
  return createReads(connection, Date.now)
}
