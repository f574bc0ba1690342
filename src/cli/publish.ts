// Publishes a save that `hooks.transforms.hold` keeps from going live, or replaces a module with its shadow.
import { existsSync } from 'node:fs'
import { copyFile, readFile, rm } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { codeMode, privateMode } from '../base/files.ts'
import { loadConfig, parseConfig } from '../gateway/config/config.ts'
import { editConfig, reportUnwritable, writeFileAtomic } from '../gateway/config/config-file.ts'
import { configFile } from '../gateway/config/text.ts'
import { readMappingId } from '../core/model/mapping.ts'
import { Problem } from '../core/model/problem.ts'
import { resolveModule, resolveTransformsRoot, toModuleLabel } from '../core/transforms/root.ts'
import { askAdmin } from './gateway/gateway.ts'
import { type Context, withProgress } from './terminal/context.ts'

/** `mappingId`: publishes the shadow of this mapping. Without it, publishes the waiting save, and throws `conflict` if no save waits. */
export async function publish(context: Context, { mappingId }: { mappingId: string | undefined }): Promise<number> {
  if (mappingId !== undefined) return publishShadow(context, mappingId)
  const published = await withProgress(context, 'Waiting for the gateway', () => askAdmin(context, 'POST /api/publish'))
  if (context.json) context.printJson(published)
  else context.print(`The files on disk are live, as generation ${published.generation}.`)
  return 0
}

/**
 * Replaces the module with its shadow, and removes `shadow` from hookloom.jsonc. The module keeps its name, and so its fixtures, its parked
 * deliveries and its `context.state`. The old code replaces what is in the file `.previous` of the module. Throws `usage-invalid` for a
 * mapping without a shadow, and `conflict` if another mapping has the module without this shadow.
 */
async function publishShadow(context: Context, mappingId: string): Promise<number> {
  const { dir, env } = context
  const { config, env: all, text } = loadConfig({ dir, env })
  const mappings = config.hooks.mappings.map((mapping, at) => ({
    ...mapping,
    id: readMappingId(mapping, at),
    at,
  }))
  const { module = '', shadow } = mappings.find(({ id }) => id === mappingId)?.transform ?? {}
  if (shadow === undefined) {
    const next = 'Set transform.shadow, or leave out the mapping to publish a save that waits.'
    throw new Problem('usage-invalid', `${configFile} has no mapping "${mappingId}" with a shadow. ${next}`)
  }
  const same = mappings.filter(({ transform }) => transform?.module === module)
  const other = same.find(({ transform }) => transform?.shadow !== shadow)
  if (other !== undefined) {
    const next = `Give it the shadow ${JSON.stringify(shadow)} first, so that you see how its results differ.`
    throw new Problem('conflict', `The mapping "${other.id}" runs ${toModuleLabel(module)} too. ${next}`)
  }
  const edited = same.reduce(
    (now, { at }) => editConfig(now, ['hooks', 'mappings', at, 'transform', 'shadow'], undefined),
    text,
  )
  const { problems } = parseConfig(edited, all)
  if (problems.length > 0) throw new Problem('config-invalid', 'Nothing was changed.', { frame: problems.join('\n') })
  const root = await resolveTransformsRoot(dir, config.hooks)
  const [from, to] = [await resolveModule(root, shadow), await resolveModule(root, module)]
  const extension = extname(module)
  const previous = `${module.slice(0, -extension.length)}.previous${extension}`
  const [code, oldCode] = [await readFile(from, 'utf8'), await readFile(to, 'utf8')]
  const previousFile = join(root, previous)
  // the two are equal if an earlier call was cut off after it replaced the module: then `previous` has the old code already
  if (code !== oldCode || !existsSync(previousFile)) await reportUnwritable(root, () => copyFile(to, previousFile))
  await writeFileAtomic(to, code, codeMode)
  await writeFileAtomic(join(dir, configFile), edited, privateMode)
  // last: until the configuration no longer names the shadow, its file is needed to repeat the command
  if (from !== to) await reportUnwritable(root, () => rm(from))
  if (context.json) context.printJson({ module, previous })
  else {
    context.print(
      `${toModuleLabel(module)} is the code of ${toModuleLabel(shadow)} now. A running gateway tests it with its fixtures and loads it.`,
    )
    context.print(`The old code is in ${toModuleLabel(previous)}.`)
  }
  return 0
}
