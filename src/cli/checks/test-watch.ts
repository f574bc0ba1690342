// Runs the fixtures of a module again when somebody saves the module, its imports or its fixtures. Runs all fixtures again when the
// configuration changes.
import { readFileSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { configFile, envFile } from '../../gateway/config/text.ts'
import { toFixturesFolder } from '../../gateway/replay/fixture-files.ts'
import { createWatcher } from '../../core/reload/watch.ts'
import { silentLog } from '../../base/log.ts'
import { exitCodes, Problem } from '../../core/model/problem.ts'
import { toPrintableLine } from '../../base/text.ts'
import type { Bench, BenchModules } from './bench.ts'
import type { Context } from '../terminal/context.ts'
import { describeFailure } from '../terminal/print.ts'

/** `written`: the files that this command wrote, with their texts. They do not count as saves of the author. */
export type Round = { readonly code: number; readonly written: ReadonlyMap<string, string> }

/** Runs until SIGINT or SIGTERM. `names`: the modules to watch; an empty list means all. */
export async function watchSaves(
  context: Context,
  bench: Bench,
  {
    names,
    round,
  }: { names: readonly string[]; round: (loaded: BenchModules, modules: readonly string[]) => Promise<Round> },
): Promise<number> {
  const { dir } = context
  const changed = new Set<string>()
  const written = new Map<string, string>()
  const stopping = new AbortController()
  let wake = () => {}
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      stopping.abort()
      wake()
    })
  }
  const watcher = createWatcher({
    paths: { roots: [join(dir, 'hooks', 'transforms')], files: [join(dir, configFile), join(dir, envFile)] },
    inputs: bench.inputs,
    onChange: (reason) => {
      for (const path of reason.changed) changed.add(path)
      wake()
    },
    log: { ...silentLog, warn: (_fields, message) => context.note(message) },
  })

  let latest: BenchModules | undefined
  async function runTouched(paths: readonly string[]): Promise<void> {
    try {
      const loaded = await bench.load(names)
      const touched = loaded.modules.filter((module) => isTouched(module, { paths, before: latest, after: loaded }))
      latest = loaded
      if (touched.length === 0) return
      if (paths.length > 0 && !context.json) context.print(`\n${describeSaves(loaded.root, paths)}`)
      for (const [file, text] of (await round(loaded, touched)).written) written.set(file, text)
    } catch (error) {
      // the configuration is invalid, or only a part of it is written yet
      if (!(error instanceof Problem) || latest === undefined) throw error
      context.note(describeFailure(error))
    }
  }

  try {
    await watcher.ready()
    await runTouched([])
    if (!context.json) context.print('\nWaiting for changes. Press Ctrl-C to stop.')
    while (!stopping.signal.aborted) {
      if (changed.size === 0) await new Promise<void>((resolve) => (wake = resolve))
      const paths = [...changed].filter((path) => !isOwn(path, written))
      changed.clear()
      if (!stopping.signal.aborted && paths.length > 0) await runTouched(paths)
    }
    return exitCodes.ok
  } finally {
    await watcher.close()
  }
}

function isTouched(
  module: string,
  { paths, before, after }: { paths: readonly string[]; before: BenchModules | undefined; after: BenchModules },
): boolean {
  if (before === undefined || serializeSettings(before) !== serializeSettings(after)) return true
  const folder = join(after.root, toFixturesFolder(module))
  const own = [join(after.root, module), folder]
  if (paths.some((path) => own.includes(path) || dirname(path) === folder)) return true
  return serializeVersion(before, module) !== serializeVersion(after, module)
}

function serializeSettings({ parts }: BenchModules): string {
  return JSON.stringify([parts.config, parts.mappings])
}

/** The result changes when the module or a file that it imports changes. */
function serializeVersion({ parts }: BenchModules, module: string): string {
  const own = [...parts.transforms].filter(([, transform]) => transform.module === module)
  return JSON.stringify(own.map(([key, { hash, problem }]) => [key, hash, problem]))
}

/** Whether `-u` wrote the file. Such a file is not a save: a fixture of code with random results would be updated endlessly. */
function isOwn(path: string, written: ReadonlyMap<string, string>): boolean {
  try {
    return written.has(path) && readFileSync(path, 'utf8') === written.get(path)
  } catch {
    return false
  }
}

function describeSaves(root: string, paths: readonly string[]): string {
  // ignores temporary files of editors, which no longer exist, and folders
  const files = paths.filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile())
  const names = (files.length > 0 ? files : paths).map((path) =>
    path.startsWith(root) ? relative(root, path) : relative(dirname(dirname(root)), path),
  )
  return `Saved ${toPrintableLine(names.slice(0, 3).join(', '))}${names.length > 3 ? ', …' : ''}`
}
