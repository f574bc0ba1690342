// Saves the template of a mapping in hookloom.jsonc, with every comment kept.
import { join } from 'node:path'
import { privateMode } from '../../base/files.ts'
import { trimSlashes } from '../../base/text.ts'
import type { Config } from '../../model/config/config.ts'
import { readMappingId } from '../../core/model/mapping.ts'
import type { SavedMappingFields } from '../../model/api/bench.ts'
import { Problem } from '../../core/model/problem.ts'
import { loadConfig, parseConfig } from './config.ts'
import { editConfig, writeFileAtomic } from './config-file.ts'
import type { Env } from './env.ts'
import { configFile } from './text.ts'

/** `mappingId`: the mapping that gets the template. Without it, a new mapping of the hook is added at the end. */
type NewTemplate = { readonly hook: string; readonly template: string; readonly mappingId?: string | undefined }

/**
 * Throws `config-invalid` if the configuration on disk, or the changed one, is invalid, and `conflict` for a mapping that is not in
 * hookloom.jsonc or whose code makes the action. Nothing is written then.
 */
export async function saveTemplate(
  { dir, env }: { dir: string; env: Env },
  { hook, template, mappingId }: NewTemplate,
): Promise<SavedMappingFields> {
  const { config, env: all, text } = loadConfig({ dir, env })
  const { mappings } = config.hooks
  const path = trimSlashes(hook)
  const at = mappingId === undefined ? -1 : requireIndex(config, mappingId)
  const field = mappings[at]?.action === 'wake' ? 'textTemplate' : 'messageTemplate'
  const id = mappingId ?? findFreeId(config, path)
  const edited =
    mappingId === undefined
      ? editConfig(text, ['hooks', 'mappings', -1], { id, match: { path }, messageTemplate: template })
      : editConfig(text, ['hooks', 'mappings', at, field], template)
  const { problems } = parseConfig(edited, all)
  if (problems.length > 0) {
    throw new Problem('config-invalid', 'The configuration would be invalid with this template. Nothing was changed.', {
      frame: problems.join('\n'),
    })
  }
  const file = join(dir, configFile)
  await writeFileAtomic(file, edited, privateMode)
  const earlier = mappings.slice(0, at < 0 ? mappings.length : 0).findIndex(({ match }) => hasHook(match.path, path))
  return { file, mappingId: id, shadowedBy: earlier < 0 ? null : readMappingId(mappings[earlier] ?? {}, earlier) }
}

/** Whether a mapping with the path `other` can match requests of the hook `path`. */
function hasHook(other: string | undefined, path: string): boolean {
  return other === undefined || trimSlashes(other) === path
}

function requireIndex(config: Config, mappingId: string): number {
  const at = config.hooks.mappings.findIndex((mapping, index) => readMappingId(mapping, index) === mappingId)
  const mapping = config.hooks.mappings[at]
  if (mapping === undefined) {
    throw new Problem('conflict', `${configFile} has no mapping "${mappingId}": a preset makes it.`)
  }
  if (mapping.transform === undefined) return at
  throw new Problem('conflict', `The mapping "${mappingId}" has a transform: change ${mapping.transform.module}.`)
}

function findFreeId(config: Config, path: string): string {
  const ids = new Set(config.hooks.mappings.map(readMappingId))
  for (let at = 1; ; at += 1) {
    const id = at === 1 ? path : `${path}-${at}`
    if (!ids.has(id)) return id
  }
}
