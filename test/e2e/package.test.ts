// What the built package consists of: its libraries, their licences, and the list of its parts.
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../..')
const dist = join(root, 'dist')
const readJson = (...path: string[]) => JSON.parse(readFileSync(join(root, ...path), 'utf8'))

type Locked = Readonly<Record<string, { readonly version: string; readonly dev?: true; readonly integrity?: string }>>
type Component = {
  readonly name: string
  readonly version: string
  readonly properties: readonly { readonly value: string }[]
  readonly hashes?: readonly { readonly content: string }[]
}

const { packages: locked }: { packages: Locked } = readJson('package-lock.json')
const nameOf = (place: string) => place.replace(/^.*node_modules\//, '')
const describeLocked = (places: readonly string[]) =>
  places.map((place) => `${nameOf(place)}@${locked[place]?.version}`).toSorted()
const chunks = readdirSync(dist).filter((file) => file.endsWith('.js'))
const text = chunks.map((file) => readFileSync(join(dist, file), 'utf8')).join('\n')
/** The places of the packages whose code is in the program, from the comments of the bundler. */
const inProgram = [
  ...new Set(
    [...text.matchAll(/^\/\/#region (node_modules\/.*)/gm)].map(([, file = '']) => {
      return /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? ''
    }),
  ),
]
const inPage = ['eventsource-parser', 'marked', 'preact'].map((name) => `node_modules/${name}`)

describe('the built package', () => {
  test('it imports nothing but its dependencies, so an install of them is enough for every runner and store', () => {
    const { dependencies } = readJson('package.json')
    const statements = text.matchAll(/^(?:import|export)\b[^'"\n]*"([^"\n.#][^"\n]*)";$/gm)
    const calls = text.matchAll(/\bimport\("([^".#][^"]*)"\)/g)
    const names = [...statements, ...calls].map(([, specifier = '']) => specifier).filter((name) => !isBuiltin(name))
    expect(new Set(names)).toContain('esbuild')
    expect([...new Set(names)].filter((name) => !Object.hasOwn(dependencies, name))).toEqual([])
    expect(inProgram.map(nameOf)).toEqual(expect.arrayContaining(['ai', '@ai-sdk/openai', 'pg', 'koa']))
  })

  test('the licence of each library in the bundle is part of it', () => {
    const licences = readFileSync(join(dist, 'LICENSES.txt'), 'utf8')
    const entries = licences.split(/\n={80}\n/).map((entry) => /^\n?(\S+ \S+) \([^\n]+\)\n\n\S/.exec(entry)?.[1])
    const wanted = describeLocked([...inProgram, ...inPage]).map((part) => part.replace(/(?<=.)@/, ' '))
    expect([...new Set(entries)].toSorted()).toEqual([...new Set(wanted)].toSorted())
    expect(licences).toContain('Copyright (c) 2019 Koa contributors')
    expect(licences).toContain('Licensed under the Apache License, Version 2.0')
  })

  test('the list of parts has what is bundled and what an install adds, as the lock file has it', () => {
    const { components }: { components: readonly Component[] } = readJson('dist/parts.cdx.json')
    const bundled = [...inProgram, ...inPage]
    const installed = Object.keys(locked).filter((place) => place !== '' && locked[place]?.dev !== true)
    const describeParts = (parts: readonly Component[]) =>
      parts.map(({ name, version }) => `${name}@${version}`).toSorted()
    expect(describeParts(components)).toEqual(describeLocked([...new Set([...bundled, ...installed])]))
    expect(describeParts(components.filter(({ properties }) => properties[0]?.value === 'true'))).toEqual(
      describeLocked([...new Set(bundled)]),
    )
  })

  test('npm lists the parts of the lock file, with their hashes', () => {
    const args = ['sbom', '--package-lock-only', '--sbom-format', 'cyclonedx']
    const list = execFileSync('npm', args, { cwd: root, encoding: 'utf8', maxBuffer: 100_000_000 })
    const { components }: { components: readonly Component[] } = JSON.parse(list)
    const toHash = (integrity: string) => Buffer.from(integrity.replace(/^sha512-/, ''), 'base64').toString('hex')
    const listed = components.map(({ name, version, hashes = [] }) => `${name}@${version} ${hashes[0]?.content}`)
    const wanted = Object.entries(locked)
      .filter(([place]) => place !== '')
      .map(([place, { version, integrity = '' }]) => `${nameOf(place)}@${version} ${toHash(integrity)}`)
    expect([...new Set(listed)].toSorted()).toEqual([...new Set(wanted)].toSorted())
  })
})
