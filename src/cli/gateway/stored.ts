// Reads the store of a config directory, beside a running gateway or without one.
import { existsSync } from 'node:fs'
import { toStoreFile } from '../../model/places.ts'
import { loadConfig } from '../../loader/config.ts'
import { createSqliteReader } from '../../store/sqlite/sqlite.ts'
import type { StoreReader } from '../../store/store.ts'
import type { Context } from '../terminal/context.ts'

/** What `read` makes of the store; `empty` where no gateway has made one yet. */
export async function readStore<T>(
  { dir, env }: Context,
  empty: T,
  read: (reader: StoreReader) => Promise<T>,
): Promise<T> {
  const file = toStoreFile(dir, loadConfig({ dir, env }).config)
  if (!existsSync(file)) return empty
  const reader = createSqliteReader({ file })
  try {
    return await read(reader)
  } finally {
    await reader.close()
  }
}
