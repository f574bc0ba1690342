// Packages of our own that transforms import with nothing installed. They are not bundled: to build zod into a module takes
// 120 ms and 1.4 MB of code each time.
import { createRequire } from 'node:module'

const provided = ['zod', 'zod/v4']

export function isProvided(path: string): boolean {
  return provided.includes(path)
}

/** What stands in a bundle for such a package. */
export function toProvidedSource(path: string): string {
  return `module.exports = globalThis[Symbol.for('hookloom.provided')](${JSON.stringify(path)})`
}

/** Makes them reachable for bundles that are evaluated in this thread. Loaded when the first one asks. */
export function provide(): void {
  const key = Symbol.for('hookloom.provided')
  if (key in globalThis) return
  const require = createRequire(import.meta.url)
  const value = (path: string): unknown => (isProvided(path) ? require(path) : undefined)
  Object.defineProperty(globalThis, key, { value })
}
