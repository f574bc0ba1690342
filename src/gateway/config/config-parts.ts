// The few keys that commands need while a gateway runs. They are read even if other keys of the configuration are invalid.
import { parse } from 'jsonc-parser'
import { isPostgresUrl } from '../../base/postgres-url.ts'
import type { Config } from '../../model/config/config.ts'
import { ConfigSchema } from './keys.ts'
import { readAt } from '../../core/model/issue.ts'
import { Problem } from '../../core/model/problem.ts'
import { loadConfig } from './config.ts'
import { configFile, envFile, readConfigText } from './text.ts'
import { type Env, parseEnv, substituteEnv } from './env.ts'

export type ConfigParts = {
  readonly store: Pick<Config['store'], 'file' | 'url'>
  /** False: `store.url` is set but unreadable, so the place of the store is unknown. */
  readonly isStoreKnown: boolean
  readonly server: Pick<Config['server'], 'adminHost' | 'adminPort'>
  readonly gateway: Config['gateway']
  /** Why other parts of the configuration are invalid. Undefined if all of it is valid. */
  readonly problem: Problem | undefined
}

/** A key that cannot be read gets its default; the token has no default. An invalid configuration does not make this function throw. */
export function loadConfigParts({ dir, env }: { dir: string; env: Env }): ConfigParts {
  try {
    return { ...loadConfig({ dir, env }).config, isStoreKnown: true, problem: undefined }
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    return { ...readParts(dir, env), problem: error }
  }
}

function readParts(dir: string, env: Env): Omit<ConfigParts, 'problem'> {
  const all = { ...parseEnv(readIfPossible(dir, envFile)).values, ...env }
  // the parser continues after an error: it reads the keys before the error correctly, and often the keys after it
  const root: unknown = parse(readIfPossible(dir, configFile).replace(/^\uFEFF/, ''), [], { allowTrailingComma: true })
  const { server } = ConfigSchema.parse({})
  const port = readLeaf(root, ['server', 'adminPort'], all)
  const host = readFilledText(readLeaf(root, ['server', 'adminHost'], all))
  const given = readFilledText(readLeaf(root, ['store', 'url'], all))
  const url = given !== undefined && isPostgresUrl(given) ? given : undefined
  const hasUrl = readAt(root, ['store', 'url']) !== undefined
  const token = readFilledText(readLeaf(root, ['gateway', 'token'], all))
  return {
    store: { file: readFilledText(readLeaf(root, ['store', 'file'], all)), url },
    isStoreKnown: !hasUrl || url !== undefined,
    server: {
      adminHost: host ?? server.adminHost,
      adminPort: isPort(port) ? port : server.adminPort,
    },
    gateway: token === undefined ? {} : { token },
  }
}

function readIfPossible(dir: string, name: string): string {
  try {
    return readConfigText(dir, name) ?? ''
  } catch {
    return ''
  }
}

/** The value; undefined if there is none, or if it names a variable that is not set. */
function readLeaf(root: unknown, path: readonly string[], env: Env): unknown {
  const { value, issues } = substituteEnv(readAt(root, path), env)
  return issues.length === 0 ? value : undefined
}

/** Another number would make a URL that cannot be parsed. */
function isPort(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 65_535
}

function readFilledText(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value : undefined
}
