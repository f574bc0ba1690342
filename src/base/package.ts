// Finds the folders of this package and of its dependencies, from the sources and from the built files.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const { resolve } = createRequire(import.meta.url)
const packageFile = resolve('#package')

/** A path inside the package. */
export function resolvePackagePath(...parts: readonly string[]): string {
  return join(dirname(packageFile), ...parts)
}

/** A path inside a package that this package depends on. */
export function resolveDependencyPath(name: string, ...parts: readonly string[]): string {
  return join(dirname(resolve(`${name}/package.json`)), ...parts)
}

export function readVersion(): string {
  const fields: unknown = JSON.parse(readFileSync(packageFile, 'utf8'))
  const version = typeof fields === 'object' && fields !== null && 'version' in fields ? fields.version : undefined
  return typeof version === 'string' ? version : 'unknown'
}
