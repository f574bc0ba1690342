// Packages of the gateway that transforms import without an install. They are not bundled: a bundle with zod takes 120 ms to build and has
// 1.4 MB of code.
import { createRequire } from 'node:module'

const provided = ['zod', 'zod/v4']

export function isProvided(path: string): boolean {
  return provided.includes(path)
}

/** The code in a bundle that replaces a provided package. */
export function buildProvidedSource(path: string): string {
  return `module.exports = globalThis[Symbol.for('hookloom.provided')](${JSON.stringify(path)})`
}

/** Makes the packages available to bundles in this thread. They are loaded at the first use. */
export function installProvided(): void {
  const key = Symbol.for('hookloom.provided')
  if (key in globalThis) return
  const require = createRequire(import.meta.url)
  const value = (path: string): unknown => (isProvided(path) ? require(path) : undefined)
  Object.defineProperty(globalThis, key, { value })
}
