// The resolution of an import also depends on files that are not read, such as a `mode.ts` next to a `mode.js`, or a package in a nearer
// folder. A snapshot records what a build found at each place where it looked, so that a later check notices a change.
import { type BigIntStats, type Dirent, statSync } from 'node:fs'
import { readdir, realpath } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { listFoldersUpTo } from './manifests.ts'
import { type BuildInput, toInputStamp } from '../read.ts'

/** What the file system answered during the build. The keys are the questions: `stat <path>` or `names <path>`. */
export type ResolutionSnapshot = ReadonlyMap<string, string>

/** `record` must end before the import is resolved, so that a later check finds a change in between. */
export function recordResolution(root: string): {
  snapshot: ResolutionSnapshot
  record(path: string, resolveDir: string): Promise<void>
} {
  const snapshot = new Map<string, string>()
  const ask = createFileFacts()
  const note = async (question: string) => {
    if (!snapshot.has(question)) snapshot.set(question, await ask(question))
  }
  return {
    snapshot,
    record: async (path, resolveDir) => {
      // packages are installed as a whole: a change shows in their package.json or in the folder around them
      if (/[/\\]node_modules[/\\]/.test(`${resolveDir}/`)) return
      await Promise.all(listQuestions(root, path, resolveDir).map(note))
    },
  }
}

/** Whether a new build would read the same files, as far as their names, times and sizes show. `ask`: shared by modules that are checked together. */
export async function isUnchanged(
  { inputs, snapshot }: { readonly inputs: readonly BuildInput[]; readonly snapshot: ResolutionSnapshot },
  ask: FileFacts = createFileFacts(),
): Promise<boolean> {
  const same = await Promise.all([
    ...inputs.map(async (input) => (await ask(`stat ${input.file}`)) === toInputStamp(input)),
    ...[...snapshot].map(async ([question, answer]) => (await ask(question)) === answer),
  ])
  return same.every(Boolean)
}

function listQuestions(root: string, path: string, resolveDir: string): string[] {
  const above = listFoldersUpTo(root, resolveDir)
  const manifests = above.map((folder) => `stat ${join(folder, 'package.json')}`)
  if (/^\.{0,2}\//.test(path) || path === '.' || path === '..') {
    const target = resolve(resolveDir, path)
    // in TypeScript, .js can mean a .ts; a path without an extension can mean a file with any extension, or a folder
    const stem = target.replace(/\.[cm]?[jt]sx?$/, '')
    return [...manifests, `names ${stem}`, `names ${join(target, 'index')}`, `stat ${join(target, 'package.json')}`]
  }
  const name = path
    .split('/')
    .slice(0, path.startsWith('@') ? 2 : 1)
    .join('/')
  const installed = above.flatMap((folder) => {
    const packages = join(folder, 'node_modules')
    return [`names ${join(packages, name)}`, `stat ${join(packages, name, 'package.json')}`]
  })
  return [...manifests, ...installed]
}

export type FileFacts = (question: string) => Promise<string>

/** Answers questions about files, and reads each folder only once. The answers about names also say where links lead. */
export function createFileFacts(): FileFacts {
  const folders = new Map<string, Promise<Folder>>()
  return async (question) => {
    const path = question.slice(question.indexOf(' ') + 1)
    if (question.startsWith('stat ')) {
      // asynchronous calls take ten times as long: 40 ms at each save for a package with a thousand files
      const facts = readFacts(path)
      return facts === undefined ? 'missing' : toInputStamp(facts)
    }
    const folder = dirname(path)
    const reading = folders.get(folder) ?? readFolder(folder)
    folders.set(folder, reading)
    const { place, entries } = await reading
    const base = basename(path)
    const found = entries.filter(({ name }) => name === base || name.startsWith(`${base}.`))
    if (found.length === 0) return ''
    const names = await Promise.all(found.map((entry) => describeEntry(folder, entry)))
    return [place, ...names.toSorted()].join('\n')
  }
}

/** `place`: the real path. */
type Folder = { readonly place: string; readonly entries: readonly Dirent[] }

async function readFolder(folder: string): Promise<Folder> {
  try {
    const [place, entries] = await Promise.all([realpath(folder), readdir(folder, { withFileTypes: true })])
    return { place, entries }
  } catch {
    return { place: '', entries: [] }
  }
}

async function describeEntry(folder: string, entry: Dirent): Promise<string> {
  if (!entry.isSymbolicLink()) return entry.name
  return `${entry.name} → ${await realpath(join(folder, entry.name)).catch(() => '')}`
}

function readFacts(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false })
  } catch {
    return undefined
  }
}
