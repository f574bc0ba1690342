// The files of a config directory.
import { join, resolve } from 'node:path'
import type { Config } from './config.ts'

/** The address of a running gateway, for commands. It is removed at the stop. */
export function toGatewayFile(dir: string): string {
  return join(dir, 'state', 'gateway.json')
}

/** What the last gateway found valid, for commands. */
export function toMemoryFile(dir: string): string {
  return join(dir, 'state', 'config.json')
}

export function toStoreFile(dir: string, config: { readonly store: Pick<Config['store'], 'file'> }): string {
  return resolve(dir, config.store.file)
}

/** The store file, and the files that SQLite and the lock of the store keep next to it. */
export function toStoreFiles(dir: string, config: Config): string[] {
  const file = toStoreFile(dir, config)
  return ['', '-wal', '-shm', '-journal', '.lock', '.lock-journal', '.pid'].map((ending) => `${file}${ending}`)
}

/** Secrets that senders gave in handshakes. */
export function toHandedFile(dir: string): string {
  return join(dir, 'state', 'handed-secrets.json')
}
