// Writes down the path of the SQLite store of a valid configuration, so that commands that only read the store need not check the configuration
// again.
import { toMemoryFile, toStorePlace } from '../../model/places.ts'
import type { LoadedConfig } from './config.ts'
import { writeStateFile } from '../../base/files.ts'
import type { Env } from './env.ts'
import { computeFingerprint } from './recall.ts'

/**
 * Returns a function that writes the path of the store, and a hash of what was read for the configuration. For a database, it writes nothing, because
 * the URL is a secret.
 */
export function createConfigMemory({ dir, env }: { dir: string; env: Env }): (loaded: LoadedConfig) => void {
  let storedFingerprint: string | undefined
  return ({ config, text, envText }) => {
    const fingerprint = computeFingerprint({ dir, text, envText, env })
    if (fingerprint === undefined || fingerprint === storedFingerprint) return
    const place = toStorePlace(dir, config)
    if (place.kind === 'url') return
    storedFingerprint = fingerprint
    const known = { fingerprint, store: place.file }
    // without the file, the commands check the configuration themselves
    void writeStateFile(toMemoryFile(dir), `${JSON.stringify(known)}\n`).catch(() => undefined)
  }
}
