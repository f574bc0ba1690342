// Writes the types of a hook's payloads next to the transforms.
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { codeFolderMode, codeMode } from '../base/files.ts'
import { yieldToEventLoop } from '../base/serial.ts'
import { findNearest } from '../base/text.ts'
import { writeFileAtomic } from '../gateway/config/config-file.ts'
import { loadConfig } from '../gateway/config/config.ts'
import { readShapes } from '../gateway/deliveries/shapes/stored.ts'
import { trimSlashes } from '../base/text.ts'
import { exitCodes, Problem } from '../core/model/problem.ts'
import type { Generation } from '../gateway/generation/generation.ts'
import { createGeneration } from '../gateway/generation/generation.ts'
import { collectShapes } from '../gateway/replay/payload-shapes.ts'
import { assemble } from '../gateway/reload/assemble.ts'
import type { NamedShape } from '../gateway/shapes/event-shape.ts'
import { renderTypes } from '../gateway/shapes/typescript.ts'
import { renderSchemas, toSchemaName } from '../gateway/shapes/zod.ts'
import { resolveTransformsRoot } from '../core/transforms/root.ts'
import { readStore } from './gateway/stored.ts'
import { type Context, withProgress } from './terminal/context.ts'
import { cutLine } from './terminal/print.ts'

type TypesOptions = { readonly hook: string | undefined; readonly zod: boolean }

/** Throws `not-found` if no mapping has the hook, or if no request is known. */
export async function types(context: Context, { hook, zod }: TypesOptions): Promise<number> {
  const generation = await loadGeneration(context)
  const known = await listHooks(context, generation)
  if (hook !== undefined && generation.findHook(hook).kind !== 'mapped')
    throw new Problem('not-found', describeUnmapped(hook, known))
  const written: WrittenTypes[] = []
  await withProgress(context, 'Reading the kept requests', async (report) => {
    for (const name of hook === undefined ? known : [trimSlashes(hook)]) {
      report(`the hook ${cutLine(name, 60)}`)
      written.push(...(await writeTypes(context, { hook: name, zod, generation })))
    }
  })
  if (written.length === 0) {
    throw new Problem(
      'not-found',
      'No request is known yet: none came in, and there is no fixture and no sample. Send a request to the hook first.',
    )
  }
  for (const each of written) {
    if (context.json) context.printJson(each)
    else context.print(`${each.isNew ? 'wrote' : 'unchanged'}  ${each.file}  ${each.types.join(', ')}`)
  }
  return exitCodes.ok
}

type WrittenTypes = {
  readonly hook: string
  readonly file: string
  readonly types: readonly string[]
  /** Whether the file is new or its text changed. */
  readonly isNew: boolean
}

/** The module from which a transform imports the types of a hook. */
export function toTypesModule(hook: string): string {
  return `./payloads/${toFilePath(hook)}.ts`
}

/** The file with the types of a hook, in the transforms root. */
export const toTypesFile = (hook: string) => join('payloads', `${toFilePath(hook)}.d.ts`)

/** Whether this program wrote the file. */
export function isTypesFile(file: string): boolean {
  return (
    existsSync(file) &&
    /^\/\/ What the requests of the hook .*"hookloom types" writes this file\.\n/.test(readFileSync(file, 'utf8'))
  )
}

/** Writes the types of one hook and, with `zod`, its schemas. Returns an empty list if no request of the hook is known. */
export async function writeTypes(
  context: Context,
  { hook, zod, generation }: { readonly hook: string; readonly zod: boolean; readonly generation: Generation },
): Promise<WrittenTypes[]> {
  const shapes = await collectHookShapes(context, generation, hook)
  if (shapes.length === 0) return []
  const folder = join(await resolveTransformsRoot(context.dir, generation.config.hooks), 'payloads')
  const path = toFilePath(hook)
  await mkdir(dirname(join(folder, path)), { recursive: true, mode: codeFolderMode })
  const names = shapes.map(({ name }) => name)
  const hasNumbersAsTexts = (source: string) => generation.senders.find(source)?.hasNumbersAsTexts === true
  const schemas = [`${path}.zod.ts`, names.map(toSchemaName), renderSchemas(hook, shapes, hasNumbersAsTexts)] as const
  const files = [
    [`${path}.d.ts`, names, renderTypes(hook, shapes, hasNumbersAsTexts)] as const,
    ...(zod ? [schemas] : []),
  ]
  const written: WrittenTypes[] = []
  for (const [base, exported, parts] of files) {
    let text = ''
    for (const part of parts) {
      text += part
      // "hookloom dev" serves requests meanwhile
      await yieldToEventLoop()
    }
    const file = join(folder, base)
    const isNew = !existsSync(file) || readFileSync(file, 'utf8') !== text
    if (isNew) await writeFileAtomic(file, text, codeMode)
    written.push({ hook, file, types: exported, isNew })
  }
  return written
}

async function collectHookShapes(
  context: Context,
  generation: Generation,
  hook: string,
): Promise<readonly NamedShape[]> {
  const parts = { dir: context.dir, generation }
  const found = await readStore(context, undefined, (store) => collectShapes({ ...parts, store }, hook))
  return found ?? collectShapes({ ...parts, store: undefined }, hook)
}

/** Loads the configuration on disk, without transforms. */
export async function loadGeneration({ dir, env }: Pick<Context, 'dir' | 'env'>): Promise<Generation> {
  const { config } = loadConfig({ dir, env })
  const { mappings, senders, verifiers } = await assemble(dir, config)
  return createGeneration({ config, mappings, senders, verifiers, transforms: new Map() })
}

/** The hooks of the mappings, and the hooks with a learnt shape. */
async function listHooks(context: Context, { mappings }: Generation): Promise<string[]> {
  const named = mappings.flatMap(({ match: { path } }) => path ?? [])
  const learnt = await readStore(context, [], (store) => readShapes(store))
  return [...new Set([...named.map(trimSlashes), ...learnt.map(({ hook }) => hook)])].toSorted()
}

function describeUnmapped(hook: string, known: readonly string[]): string {
  const near = findNearest(hook, known)
  const next = near === undefined ? '"hookloom list" shows what came in.' : `Did you mean "${near}"?`
  return `No mapping has the hook "${cutLine(hook, 60)}". ${next}`
}

/** Says that no mapping has the hook. Undefined if the hook exists, or if the configuration is invalid. */
export async function findUnknownHook(context: Context, hook: string): Promise<string | undefined> {
  try {
    const generation = await loadGeneration(context)
    if (generation.findHook(hook).kind !== 'unknown') return undefined
    return describeUnmapped(hook, await listHooks(context, generation))
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    return undefined
  }
}

/** The path of the files of a hook, without their extensions. Each hook has its own path: a name that is long or has other characters gets a hash. */
function toFilePath(hook: string): string {
  if (hook.length <= 100 && /^[\w-]+(\/[\w-]+)*$/.test(hook)) return hook
  const words = hook === '*' ? 'any' : hook.replaceAll(/[^\w-]+/g, '-').slice(0, 60)
  return `${words}-${createHash('sha256').update(hook).digest('hex').slice(0, 8)}`
}
