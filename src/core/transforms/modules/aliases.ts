// Finds the alias of a tsconfig.json behind an import that does not resolve. The gateway does not read these aliases: a `tsconfig.json` is for editors, and
// its paths may lead out of the folder. The `imports` of a package.json do the same, and Node reads them too.
import { readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { parse } from 'jsonc-parser'
import { isJsonObject, type JsonObject } from '../../../base/json.ts'

const maxExtends = 5

/** `file`: the tsconfig.json that declares the alias. */
export type Alias = { readonly alias: string; readonly file: string }

/** Looks in the folder of a module and in the two above it: `hooks/` and the config directory. */
export function findAlias(root: string, specifier: string): Alias | undefined {
  for (const folder of [root, dirname(root), dirname(dirname(root))]) {
    const file = join(folder, 'tsconfig.json')
    const alias = listAliases(file, maxExtends).find((pattern) => isMatch(pattern, specifier))
    if (alias !== undefined) return { alias, file: relative(dirname(dirname(root)), file) }
  }
  return undefined
}

function listAliases(file: string, depth: number): string[] {
  const { compilerOptions, extends: base } = readConfig(file)
  const paths = isJsonObject(compilerOptions) ? compilerOptions['paths'] : undefined
  const own = isJsonObject(paths) ? Object.keys(paths) : []
  const bases = depth === 0 ? [] : [base].flat().filter((name) => typeof name === 'string' && name.startsWith('.'))
  return [...own, ...bases.flatMap((name) => listAliases(resolve(dirname(file), String(name)), depth - 1))]
}

function readConfig(file: string): JsonObject {
  try {
    const value: unknown = parse(readFileSync(file, 'utf8'), [], { allowTrailingComma: true })
    return isJsonObject(value) ? value : {}
  } catch {
    return {}
  }
}

function isMatch(pattern: string, specifier: string): boolean {
  const [before = '', after] = pattern.split('*')
  if (after === undefined) return pattern === specifier
  return specifier.startsWith(before) && specifier.endsWith(after) && specifier.length >= before.length + after.length
}
