// Reads the store of a config directory, with or without a running gateway.
import { existsSync } from 'node:fs'
import { toStoreFile } from '../../model/places.ts'
import { createSqliteReader } from '../../store/sqlite/sqlite.ts'
import type { StoreReader } from '../../store/store.ts'
import type { Context } from '../terminal/context.ts'
import { recallStore } from '../../loader/config/recall.ts'
import { findRunning } from './running.ts'

/** The result of `read`; `empty` if there is no store yet. */
export async function readStore<T>(context: Context, empty: T, read: (reader: StoreReader) => Promise<T>): Promise<T> {
  const file = await findStoreFile(context)
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
async function findStoreFile(context: Context): Promise<string> {
  const known = recallStore(context)
  const running = findRunning(context.dir)?.store
  if (known !== undefined) return running ?? known
  // the schema of the configuration takes as long as all the rest of a command
  const { findParts } = await import('./gateway.ts')
  const parts = findParts(context)
  const file = running ?? toStoreFile(context.dir, parts)
  if (parts.problem?.code === 'config-missing' && !existsSync(file)) throw parts.problem
  return file
}
