// Finds the store of a configuration that a gateway has found valid. Commands that only read the store call it, so it loads no schema.
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { isJsonObject, tryParseJson } from '../../base/json.ts'
import { toMemoryFile } from '../../model/places.ts'
import { type Env, maxSecretBytes, readRegularFile } from './env.ts'
import { configFile, envFile, readConfigText } from './text.ts'

/**
 * The path of the store file of the configuration on disk. The configuration is not checked, because a gateway has found it valid. Undefined if any
 * part of it has changed since then, if no gateway has run, or if the store is a database.
 */
export function recallStore({ dir, env }: { dir: string; env: Env }): string | undefined {
  try {
    const known = tryParseJson(readFileSync(toMemoryFile(dir), 'utf8'))
    const text = readConfigText(dir, configFile)
    if (!isJsonObject(known) || text === undefined) return undefined
    const fingerprint = computeFingerprint({ dir, text, envText: readConfigText(dir, envFile), env })
    const store = known['store']
    return fingerprint !== undefined && known['fingerprint'] === fingerprint && typeof store === 'string'
      ? store
      : undefined
  } catch {
    return undefined
  }
}

/**
 * A hash of all that decides whether a configuration is valid, and where its store is: its directory, its text, `.env`, and the variables and
 * files that the text names, even in comments. Undefined if an escape in the text may hide a name.
 */
export function computeFingerprint(read: {
  dir: string
  text: string
  envText: string | undefined
  env: Env
}): string | undefined {
  const { dir, text, envText, env } = read
  if (text.includes('\\u')) return undefined
  const named = new Set(text.match(/\$\{[^}]*\}/g))
  const values = [...named].map((form) => {
    const name = form.slice(2, -1)
    return name.startsWith('file:')
      ? hashFile(name.slice('file:'.length))
      : Object.hasOwn(env, name)
        ? (env[name] ?? null)
        : null
  })
  return hash('sha256', JSON.stringify([resolve(dir), text, envText ?? null, values]), 'hex')
}

function hashFile(path: string): string | null {
  try {
    return hash('sha256', readRegularFile(path, maxSecretBytes), 'hex')
  } catch {
    return null
  }
}
