// Packages of the gateway that modules import without an install. They are not bundled: a bundle with zod takes 120 ms to build and has
// 1.4 MB of code, and `hookloom` makes each bundle four times as large.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const provided = ['zod', 'zod/v4']
const own = ['hookloom', 'hookloom/define']

const { resolve } = createRequire(import.meta.url)
const loadOwn = (): Promise<object> => import(pathToFileURL(resolve('#define')).href)

/** Whether the path is `hookloom`: always that of the running version. */
export function isOwn(path: string): boolean {
  return own.includes(path)
}

/** Whether modules get the package of the gateway, if none is installed next to them. */
export function isProvided(path: string): boolean {
  return provided.includes(path)
}

/** The code in a bundle that replaces a provided package. */
export async function buildProvidedSource(path: string): Promise<string> {
  const value = `globalThis[Symbol.for('hookloom.provided')](${JSON.stringify(path)})`
  // with the names of its exports, so that the build reports a wrong one
  return isOwn(path)
    ? `export const { ${Object.keys(await loadOwn()).join(', ')} } = ${value}`
    : `module.exports = ${value}`
}

/** Makes the packages available to bundles in this thread. Those of others are loaded at the first use. */
export async function installProvided(): Promise<void> {
  const key = Symbol.for('hookloom.provided')
  if (key in globalThis) return
  const require = createRequire(import.meta.url)
  const hookloom = await loadOwn()
  const value = (path: string): unknown => (isOwn(path) ? hookloom : isProvided(path) ? require(path) : undefined)
  if (!(key in globalThis)) Object.defineProperty(globalThis, key, { value })
}
