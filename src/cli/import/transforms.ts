// Copies the transforms of OpenClaw, writes an adapter for each, and runs it once with a sample. No symlink is followed out of the
// transforms folder.
import { readdir } from 'node:fs/promises'
import { basename, extname, join } from 'node:path'
import { formatQuantity } from '../../base/text.ts'
import { findBundledRequest } from '../../gateway/replay/bundled.ts'
import { createBench } from '../checks/bench.ts'
import { type FileResult, createMissingFile } from '../scaffold/folder.ts'
import type { Context } from '../terminal/context.ts'
import { isJsonObject, type SentValue } from '../../base/json.ts'
import { runFixture } from '../../gateway/replay/fixtures.ts'
import { readInside } from '../../core/transforms/read.ts'
import { resolveModule, resolveTransformsRoot } from '../../core/transforms/root.ts'
import type { Mapping } from '../../core/model/mapping.ts'
import { Problem } from '../../core/model/problem.ts'
import type { DraftMapping } from './draft.ts'
import type { Notes } from './notes.ts'

const maxFiles = 500
/** The maximum number of bytes of a file. */
const maxFileBytes = 1_000_000

type Source = {
  readonly root: string
  readonly files: readonly { readonly name: string; readonly contents: Uint8Array }[]
}

/** Reads the files below OpenClaw's transforms folder, except hidden files and packages. `dir`: the folder of openclaw.json. Undefined, with a note,
 * if the transforms folder is outside of `hooks/transforms`. */
export async function readTransforms(
  { dir, transformsDir, home }: { dir: string; transformsDir: string | undefined; home: string },
  notes: Notes,
): Promise<Source | undefined> {
  const folder = transformsDir?.replace(/^~(?=\/)/, home)
  let root: string
  try {
    root = await resolveTransformsRoot(dir, { transformsDir: folder })
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    notes.add(
      ['hooks', 'transformsDir'],
      'leads out of hooks/transforms in the folder of the file. Copy its modules by hand.',
    )
    return undefined
  }
  const files: { name: string; contents: Uint8Array }[] = []
  const names = await listFiles(root, '')
  if (names.length > maxFiles)
    notes.add(['hooks', 'transforms'], `has more than ${maxFiles} files. Copy the rest by hand.`)
  for (const name of names.slice(0, maxFiles)) {
    try {
      files.push({ name, contents: (await readInside(root, join(root, name), { largest: maxFileBytes })).contents })
    } catch (error) {
      const why = error instanceof Error ? error.message : 'it cannot be read'
      notes.add([join('hooks', 'transforms', name)], `is not copied: ${why}.`)
    }
  }
  return { root, files }
}

/** The names of the files, sorted. Folders that are symlinks are left out. */
async function listFiles(root: string, below: string): Promise<string[]> {
  const entries = await readdir(join(root, below), { withFileTypes: true }).catch(() => [])
  const names: string[] = []
  for (const entry of entries.toSorted((one, other) => (one.name < other.name ? -1 : 1))) {
    const name = join(below, entry.name)
    if (entry.name.startsWith('.') || entry.name === 'node_modules') continue
    if (entry.isDirectory()) names.push(...(await listFiles(root, name)))
    else names.push(name)
    if (names.length > maxFiles) break
  }
  return names
}

/** The mappings without a transform, and those whose modules can be copied. A note for each other mapping says why its module
 * cannot be copied. */
export async function keepExistingTransforms(
  mappings: readonly DraftMapping[],
  source: Source | undefined,
  notes: Notes,
): Promise<DraftMapping[]> {
  const kept: DraftMapping[] = []
  for (const draft of mappings) {
    const why = await findMissing(draft, source)
    if (why === undefined) kept.push(draft)
    else notes.add([...draft.from, 'transform', 'module'], `: ${why} The mapping is not taken over.`)
  }
  return kept
}

async function findMissing({ mapping }: DraftMapping, source: Source | undefined): Promise<string | undefined> {
  const { transform } = mapping
  if (typeof transform !== 'object' || transform === null) return undefined
  const module: unknown = Reflect.get(transform, 'module')
  if (typeof module !== 'string') return 'there is no module.'
  if (source === undefined) return 'its folder is not taken over.'
  try {
    await resolveModule(source.root, module)
    return undefined
  } catch (error) {
    if (error instanceof Problem) return error.message.replace(/^hooks\.mappings\[\]\.transform\.module /, '')
    throw error
  }
}

/**
 * The mappings, each with an adapter in place of its transform, and the files with the adapters. An adapter calls an unedited transform as
 * OpenClaw does.
 */
export function adaptTransforms(
  mappings: readonly DraftMapping[],
  { files, ...source }: Source,
): { mappings: readonly DraftMapping[]; source: Source } {
  const names = new Set(files.map(({ name }) => name))
  const adapters = new Map<string, Source['files'][number]>()
  const adapted = mappings.map(({ from, mapping }): DraftMapping => {
    const transform = mapping['transform']
    if (!isJsonObject(transform) || typeof transform['module'] !== 'string') return { from, mapping }
    const { export: named } = transform
    const [module, exportName] = [join(transform['module']), typeof named === 'string' ? named : undefined]
    const key = JSON.stringify([module, exportName])
    const adapter = adapters.get(key) ?? {
      name: findFreeName(module, names),
      contents: Buffer.from(renderAdapter(basename(module), exportName)),
    }
    names.add(adapter.name)
    adapters.set(key, adapter)
    return { from, mapping: { ...mapping, transform: { module: adapter.name } } }
  })
  return { mappings: adapted, source: { ...source, files: [...files, ...adapters.values()] } }
}

function findFreeName(module: string, names: ReadonlySet<string>): string {
  const stem = module.slice(0, -extname(module).length)
  for (let count = 1; ; count += 1) {
    const name = `${stem}.openclaw${count === 1 ? '' : `-${count}`}.ts`
    if (!names.has(name)) return name
  }
}

/** `file`: the transform, relative to the adapter. Without `exportName`, OpenClaw takes the default export, else the export `transform`. */
function renderAdapter(file: string, exportName: string | undefined): string {
  const found = exportName === undefined ? 'exported.default ?? exported.transform' : `exported[${quote(exportName)}]`
  return `// Calls ${quote(file)} as OpenClaw does: "url" is a URL, and a transform that returns nothing keeps the action of the mapping.
// To write the transform for Hookloom, name its module in hooks.mappings and delete this file.
import type { TransformContext, TransformInput } from 'hookloom'
import * as loaded from ${quote(`./${file}`)}

const exported: Readonly<Record<string, unknown>> = loaded
const transform = ${found}

export default async function callAsOpenClaw(input: TransformInput, context: TransformContext) {
  if (typeof transform !== 'function') throw new TypeError(${quote(`${file} has no such function`)})
  const result: unknown = await transform({ ...input, url: new URL(input.url, 'http://localhost') }, context)
  if (result === undefined || result === false) return {}
  if (typeof result !== 'object' || result === null) return result
  // in OpenClaw, null keeps the value of the mapping
  return Object.fromEntries(Object.entries(result).filter(([, value]) => value !== null))
}
`
}

/** A text from the imported file as a string literal. */
function quote(text: string): string {
  return JSON.stringify(text).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')
}

/** Copies the files. Overwrites nothing. */
export async function copyTransforms(dir: string, source: Source): Promise<FileResult[]> {
  const made: FileResult[] = []
  for (const { name, contents } of source.files)
    made.push(await createMissingFile(dir, join('hooks', 'transforms', name), contents))
  return made
}

type DryRun = { readonly module: string; readonly ok: boolean; readonly detail: string }

/** Runs each module once, within the limits of a gateway and without effects. The request is a bundled one of the mapping's sender, or a
 * small sample. */
export async function runEachOnce(context: Context): Promise<DryRun[]> {
  const bench = createBench(context)
  try {
    const { parts, modules } = await bench.load([])
    const runs: DryRun[] = []
    for (const module of modules) {
      const mapping = parts.mappings.find(({ transform }) => transform?.module === module)
      if (mapping === undefined) continue
      const { request, what } = buildTrialRequest(mapping)
      const expect = { decision: 'accept' as const }
      const outcome = await runFixture(parts, module, {
        kind: 'fixture',
        name: what,
        file: what,
        fixture: { request, expect },
      })
      const decision = outcome.actual?.decision
      const why = outcome.ok ? '' : (/\((.*)\)$/s.exec(outcome.diff[0] ?? '')?.[1] ?? outcome.diff[0])
      const detail = outcome.ok
        ? `makes ${formatQuantity(outcome.actual.actions.length, 'action')} of ${what}`
        : decision === 'skip'
          ? `skips ${what}`
          : `fails with ${what}: ${why}`
      runs.push({ module, ok: outcome.ok || decision === 'skip', detail })
    }
    return runs
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    return [{ module: 'transforms', ok: false, detail: error.message }]
  } finally {
    await bench.close()
  }
}

type Sample = {
  path: string
  method: string
  headers: Record<string, string>
  query: Record<string, string>
  payload: SentValue
}

function buildTrialRequest({ match }: Mapping): { request: Sample; what: string } {
  const path = match.path ?? 'sample'
  const bundled = findBundled(path)
  const small = { id: 'sample-1', event: 'sample', title: 'A sample', message: 'A sample', text: 'A sample' }
  const { headers, payload } = bundled ?? { headers: {}, payload: small }
  const wanted = match.payload?.['source']
  const full = typeof wanted === 'string' && isJsonObject(payload) ? { ...payload, source: wanted } : payload
  return {
    request: { path, method: 'POST', headers: { ...headers }, query: {}, payload: full },
    what: bundled === undefined ? 'a small sample' : `a request of ${path}`,
  }
}

function findBundled(name: string): { headers: Record<string, string>; payload: SentValue } | undefined {
  try {
    return findBundledRequest(name)
  } catch (error) {
    if (error instanceof Problem) return undefined
    throw error
  }
}
