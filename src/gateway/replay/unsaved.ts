// What is not saved: the files on disk with an unsaved template of a mapping, and with an unsaved text of a module.
import { silentLog } from '../../base/log.ts'
import { normalizeHookName } from '../../core/model/mapping-rules.ts'
import { Problem } from '../../core/model/problem.ts'
import { readInside } from '../../core/transforms/read.ts'
import { resolveModule, resolveTransformsRoot } from '../../core/transforms/root.ts'
import { createTransformRuntime, type TransformRuntime } from '../../core/transforms/runtime.ts'
import type { ModuleText } from '../../model/api/bench.ts'
import { maxCodeChars } from '../../model/api/limits.ts'
import type { Generation } from '../generation/generation.ts'
import { createGenerationWithDraft, parseDraft } from './drafts.ts'
import { withTransforms } from './replay.ts'

/**
 * What is not saved: a template, which belongs to a new mapping of the hook, after those of the configuration, if `mappingId` is absent; and the text
 * of a module.
 */
export type Unsaved = {
  readonly mappingId?: string | undefined
  readonly template?: string | undefined
  readonly code?: ModuleText | undefined
}
export type UnsavedTemplate = Pick<Unsaved, 'mappingId'> & { readonly template: string }

export type Overlay = {
  /** The generation with the draft. `id`: the mapping of its template. Throws as `withTemplate` and, for code, `conflict` and `not-found`. */
  add(base: Generation, hook: string, draft: Unsaved): Promise<{ generation: Generation; id: string | undefined }>
  /** The texts of the modules of a hook; none if unsaved code does not run here. */
  texts(generation: Generation, hook: string): Promise<ModuleText[]>
  /** Ends the threads. They start again when they are needed. */
  close(): Promise<void>
}

export function createOverlay({
  dir,
  development,
  clock,
}: {
  readonly dir: string
  readonly development: boolean
  readonly clock: () => number
}): Overlay {
  let runtime: TransformRuntime | undefined

  const findRoot = ({ config }: Generation) => resolveTransformsRoot(dir, config.hooks)

  /**
   * The generation with an unsaved text of one module. It runs at each keystroke, half written, so its threads have no effects. Throws `conflict` if
   * unsaved code does not run here, and `not-found` if no mapping names the module.
   */
  async function withCode(base: Generation, { module, text }: ModuleText): Promise<Generation> {
    if (!development) throw new Problem('conflict', 'Only a gateway of "hookloom dev" runs unsaved code.')
    const refs = base.mappings.flatMap(({ mapping: { transform } }) => (transform?.module === module ? transform : []))
    if (refs.length === 0) throw new Problem('not-found', `No mapping has the transform ${JSON.stringify(module)}.`)
    const { config, env: given } = base
    runtime ??= createTransformRuntime({ clock, log: silentLog, isShadow: true })
    const settings = { ...config.hooks.transforms, workers: 1, env: given }
    const wanted = { root: await findRoot(base), refs, settings, drafts: new Map([[module, text]]) }
    return withTransforms(base, new Map([...base.transforms, ...(await runtime.load(wanted))]))
  }

  return {
    async add(base, hook, { code, template, mappingId }) {
      const coded = code === undefined ? base : await withCode(base, code)
      if (template === undefined) return { generation: coded, id: undefined }
      return withTemplate(coded, hook, forgetUnknown(coded, { template, mappingId }))
    },
    async texts(generation, hook) {
      if (!development) return []
      const root = await findRoot(generation)
      const { mappings } = generation.findHook(normalizeHookName(hook))
      return readModuleTexts(
        root,
        mappings.flatMap(({ mapping }) => mapping.transform?.module ?? []),
      )
    },
    async close() {
      const before = runtime
      runtime = undefined
      await before?.close()
    },
  }
}

/** A draft for a new mapping if its mapping is unknown: it may have been saved just now, and may not be loaded yet. */
function forgetUnknown({ mappings }: Generation, { mappingId, template }: UnsavedTemplate): UnsavedTemplate {
  return { template, ...(mappings.some(({ id }) => id === mappingId) ? { mappingId } : {}) }
}

/** The generation with an unsaved template, and the id of its mapping. Throws `not-found` and `usage-invalid`. */
export function withTemplate(generation: Generation, hook: string, { mappingId, template }: UnsavedTemplate) {
  const { config, env, transforms, senders, verifiers } = generation
  const mappings = generation.mappings.map(({ mapping }) => mapping)
  const at = mappings.findIndex(({ id }) => id === mappingId)
  const found = mappings[at]
  if (mappingId !== undefined && found === undefined) {
    throw new Problem('not-found', `No mapping has the id ${JSON.stringify(mappingId)}.`)
  }
  let id = found?.id ?? hook
  if (found === undefined) {
    // the mappings of presets come after those of the configuration
    const made = parseDraft({ match: { path: hook }, messageTemplate: template })
    id = findFreeId(mappings, hook)
    mappings.splice(config.hooks.mappings.length, 0, { ...made, id })
  } else {
    mappings[at] = { ...found, [found.action === 'wake' ? 'textTemplate' : 'messageTemplate']: template }
  }
  return { generation: createGenerationWithDraft({ config, env, mappings, transforms, senders, verifiers }), id }
}

function findFreeId(mappings: readonly { readonly id: string }[], hook: string): string {
  const ids = new Set(mappings.map(({ id }) => id))
  for (let at = 1; ; at += 1) {
    const id = at === 1 ? hook : `${hook}-${at}`
    if (!ids.has(id)) return id
  }
}

/** The text of each module, once. Those that cannot be read, that are no UTF-8 or too long for an editor are left out. */
async function readModuleTexts(root: string, modules: readonly string[]): Promise<ModuleText[]> {
  const texts = await Promise.all([...new Set(modules)].map((module) => readText(root, module).catch(() => undefined)))
  return texts.filter((text) => text !== undefined)
}

async function readText(root: string, module: string): Promise<ModuleText | undefined> {
  const { contents } = await readInside(root, await resolveModule(root, module), { largest: 4 * maxCodeChars })
  const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(contents)
  return text.length > maxCodeChars ? undefined : { module, text }
}
