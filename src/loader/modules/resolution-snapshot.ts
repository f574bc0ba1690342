// Which file an import means depends on files that are not read: a `mode.ts` beside a `mode.js`, a package that is installed
// nearer. A snapshot remembers what lay where a build looked, so that a later look can tell whether the build would find the same.
import { statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { toFoldersUpTo } from './manifests.ts'
import type { Input } from '../read.ts'

/** A question → the answer at the time of the build: `stat <path>` or `names <path>`. */
export type ResolutionSnapshot = ReadonlyMap<string, string>

/** `record` is to be awaited before the import is resolved: what changes meanwhile shows as a change later. */
export function recordResolution(root: string): {
  snapshot: ResolutionSnapshot
  record(path: string, resolveDir: string): Promise<void>
} {
  const snapshot = new Map<string, string>()
  const ask = createAsk()
  const note = async (question: string) => {
    if (!snapshot.has(question)) snapshot.set(question, await ask(question))
  }
  return {
    snapshot,
    record: async (path, resolveDir) => {
      // packages are installed as a whole: their package.json and the folder that holds them tell of a change
      if (/[/\\]node_modules[/\\]/.test(`${resolveDir}/`)) return
      await Promise.all(toQuestions(root, path, resolveDir).map(note))
    },
  }
}

/** Whether a build of these inputs would read the same bytes of the same files. */
export async function isUnchanged({
  inputs,
  snapshot,
}: {
  inputs: readonly Input[]
  snapshot: ResolutionSnapshot
}): Promise<boolean> {
  const ask = createAsk()
  const same = await Promise.all([
    ...inputs.map(async ({ file, mtimeNs, size }) => (await ask(`stat ${file}`)) === `${mtimeNs} ${size}`),
    ...[...snapshot].map(async ([question, answer]) => (await ask(question)) === answer),
  ])
  return same.every(Boolean)
}

function toQuestions(root: string, path: string, resolveDir: string): string[] {
  const above = toFoldersUpTo(root, resolveDir)
  const manifests = above.map((folder) => `stat ${join(folder, 'package.json')}`)
  if (/^\.{0,2}\//.test(path) || path === '.' || path === '..') {
    const target = resolve(resolveDir, path)
    // TypeScript means a .ts by .js; without an extension any of them is meant, or a folder
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

/** Answers questions, and reads each folder once. */
function createAsk(): (question: string) => Promise<string> {
  const folders = new Map<string, Promise<string[]>>()
  return async (question) => {
    const path = question.slice(question.indexOf(' ') + 1)
    if (question.startsWith('stat ')) {
      // of a package with a thousand files, an asynchronous question takes ten times as long: 40 ms at each save
      const facts = toFacts(path)
      return facts === undefined ? 'missing' : `${facts.mtimeNs} ${facts.size}`
    }
    const folder = dirname(path)
    const reading = folders.get(folder) ?? readdir(folder).catch(() => [])
    folders.set(folder, reading)
    const base = basename(path)
    const names = (await reading).filter((name) => name === base || name.startsWith(`${base}.`))
    return names.toSorted().join('/')
  }
}

function toFacts(path: string): { mtimeNs: bigint; size: bigint } | undefined {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false })
  } catch {
    return undefined
  }
}
