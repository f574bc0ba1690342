// Where things stand in a config directory.
import { join, resolve } from 'node:path'
import type { Config } from './config.ts'

/** Where a running gateway says how it is reached: read by commands, removed at the stop. */
export function toGatewayFile(dir: string): string {
  return join(dir, 'state', 'gateway.json')
}

export function toStoreFile(dir: string, config: { readonly store: Pick<Config['store'], 'file'> }): string {
  return resolve(dir, config.store.file)
}

/** The same, and what SQLite and the lock of the store keep beside it. */
export function toStoreFiles(dir: string, config: Config): string[] {
  const file = toStoreFile(dir, config)
  return ['', '-wal', '-shm', '-journal', '.lock', '.lock-journal', '.pid'].map((ending) => `${file}${ending}`)
}

/** Secrets that senders handed over. */
export function toHandedFile(dir: string): string {
  return join(dir, 'state', 'handed-secrets.json')
}
