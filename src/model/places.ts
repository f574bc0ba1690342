// The files of a config directory.
import { join, resolve } from 'node:path'
import { describeDatabase } from '../base/postgres-url.ts'
import type { Config } from './config/config.ts'

/** The file with the address of a running gateway, for commands. It is removed when the gateway stops. */
export function toGatewayFile(dir: string): string {
  return join(dir, 'state', 'gateway.json')
}

/** The file with facts about the last valid configuration, for commands. */
export function toMemoryFile(dir: string): string {
  return join(dir, 'state', 'config.json')
}

type StoreSection = { readonly store: Pick<Config['store'], 'file' | 'url'> }

/** The place of the store. `file` is absolute. `url` may contain a password: show the text of `describeStorePlace` instead. */
export type StorePlace =
  | { readonly kind: 'file'; readonly file: string }
  | { readonly kind: 'url'; readonly url: string }

export function toStorePlace(dir: string, { store: { file = 'state/hookloom.db', url } }: StoreSection): StorePlace {
  return url === undefined ? { kind: 'file', file: resolve(dir, file) } : { kind: 'url', url }
}

/** The file, or the URL without its user, password and parameters. */
export function describeStorePlace(place: StorePlace): string {
  return place.kind === 'file' ? place.file : `postgres://${describeDatabase(place.url)}`
}

/** The store file, and the files that SQLite and the lock of the store keep next to it. The list is empty for a database. */
export function toStoreFiles(dir: string, config: Config): string[] {
  const place = toStorePlace(dir, config)
  if (place.kind === 'url') return []
  const { file } = place
  return ['', '-wal', '-shm', '-journal', '.lock', '.lock-journal', '.pid'].map((ending) => `${file}${ending}`)
}

/** The files of the saves that went live. */
export function toSavesFolder(dir: string): string {
  return join(dir, 'state', 'saves')
}

/** Secrets that senders sent in handshakes. */
export function toHandedSecretsFile(dir: string): string {
  return join(dir, 'state', 'handed-secrets.json')
}
