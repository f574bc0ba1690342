// Reads the store of a config directory, with or without a running gateway.
import { existsSync } from 'node:fs'
import { toStoreFile } from '../../model/places.ts'
import { createSqliteReader } from '../../store/sqlite/sqlite.ts'
import type { StoreReader } from '../../store/store.ts'
import type { Context } from '../terminal/context.ts'
import { findParts, findRunning } from './gateway.ts'

/** The result of `read`; `empty` if there is no store yet. */
export async function readStore<T>(context: Context, empty: T, read: (reader: StoreReader) => Promise<T>): Promise<T> {
  const file = findStoreFile(context)
  if (!existsSync(file)) return empty
  const reader = createSqliteReader({ file })
  try {
    return await read(reader)
  } finally {
    await reader.close()
  }
}

/**
 * The store of the running gateway, else that of the configuration. Throws `config-missing` if there is neither a configuration
 * nor a store.
 */
function findStoreFile(context: Context): string {
  const parts = findParts(context)
  const file = findRunning(context.dir)?.store ?? toStoreFile(context.dir, parts)
  if (parts.problem?.code === 'config-missing' && !existsSync(file)) throw parts.problem
  return file
}
