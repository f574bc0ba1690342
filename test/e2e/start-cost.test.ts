// The modules that a start and a reading command load. The times depend on the machine, so they are not tested.
import { execFileSync, execSync } from 'node:child_process'
import { cpSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import * as nodeModule from 'node:module'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { makeFolder } from './gateway.ts'

const root = resolve(import.meta.dirname, '../..')
const dist = join(root, 'dist')

/** The packages and chunks that the chunk of a command imports before it runs, directly or through others. */
function findLoaded(command: string): { readonly packages: readonly string[]; readonly text: string } {
  const entries = readdirSync(dist).filter((name) => new RegExp(`^(main|${command})(-[\\w-]{8})?\\.js$`).test(name))
  const texts = new Map<string, string>()
  const packages = new Set<string>()
  const visit = (file: string) => {
    if (texts.has(file)) return
    const text = readFileSync(join(dist, file), 'utf8')
    texts.set(file, text)
    for (const [, specifier = ''] of text.matchAll(/^(?:import|export)\b[^'"\n]*["']([^'"\n]+)["'];?$/gm)) {
      if (specifier.startsWith('./')) visit(specifier.slice(2))
      else if (!nodeModule.isBuiltin(specifier)) packages.add(specifier)
    }
  }
  for (const entry of entries) visit(entry)
  expect(entries.length).toBeGreaterThan(1)
  return { packages: [...packages], text: [...texts.values()].join('') }
}

describe('modules that a command loads', () => {
  test('before it runs, hookloom start imports no package except SQLite', () => {
    expect(findLoaded('start').packages).toEqual(['@photostructure/sqlite'])
  })

  test('a command that only reads loads neither the configuration schema nor the server', () => {
    const { packages, text } = findLoaded('list')
    expect(packages).toEqual(['@photostructure/sqlite'])
    expect(text).not.toMatch(/class \$?Zod|createHookApp/)
    expect(findLoaded('start').text).toMatch(/createHookApp/)
  })

  test('loaded code has no comments except the licences of the libraries in it', () => {
    const { text } = findLoaded('start')
    expect(text).toMatch(/createHookApp\(/)
    expect(text).toMatch(/MIT Licensed/)
    expect(text).not.toMatch(/^\s*\/\*\*/m)
  })

  test('an npx command does not build a package that is already built', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    const before = statSync(join(dist, 'main.js')).mtimeMs
    execSync(scripts.prepare, { cwd: root, env: { ...process.env, npm_command: 'exec' } })
    expect(statSync(join(dist, 'main.js')).mtimeMs).toBe(before)
  })

  test.skipIf(!('enableCompileCache' in nodeModule))('compiled code is kept in the folder of the package', () => {
    // in a new copy, because the folder of this package has code from earlier starts
    const copy = makeFolder()
    cpSync(dist, join(copy, 'dist'), { recursive: true })
    cpSync(join(root, 'package.json'), join(copy, 'package.json'))
    execFileSync(process.execPath, [join(copy, 'dist/main.js'), '--version'])
    expect(existsSync(join(copy, 'node_modules/.cache/hookloom'))).toBe(true)
  })
})
