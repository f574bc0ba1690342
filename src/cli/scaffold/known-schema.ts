// Writes the JSON Schema file next to hookloom.jsonc, extended with the known payloads, so that an editor suggests paths, senders and
// events.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { codeMode } from '../../base/files.ts'
import { writeFileAtomic } from '../../gateway/config/config-file.ts'
import { renderConfigSchema } from '../../gateway/config/schema.ts'
import type { Generation } from '../../gateway/generation/generation.ts'
import { loadPlugins } from '../../gateway/reload/plugins.ts'
import { createLoader } from '../../gateway/reload/loader.ts'
import { collectKnownPayloads } from '../../gateway/replay/learnt-paths.ts'
import { readStore } from '../gateway/stored.ts'
import { Problem } from '../../core/model/problem.ts'
import type { Context } from '../terminal/context.ts'
import { schemaFile } from './folder.ts'

/** Updates the file, if it exists. It gets names of hooks, senders, events and fields, but no other text of a request. */
export async function writeKnownSchema(context: Context, generation: Generation): Promise<void> {
  const file = join(context.dir, schemaFile)
  if (!existsSync(file)) return
  const parts = { dir: context.dir, generation }
  const stored = await readStore(context, undefined, (store) => collectKnownPayloads({ ...parts, store }))
  const known = stored ?? (await collectKnownPayloads({ ...parts, store: undefined }))
  const { plugins } = await loadPlugins({ names: generation.config.plugins }, createLoader(context.dir))
  const text = renderConfigSchema(known, plugins)
  if (readFileSync(file, 'utf8') !== text) await writeFileAtomic(file, text, codeMode)
}

/** Updates the file after a command has changed `plugins`. A configuration that does not load leaves it as it is: the next `hookloom dev` updates it. */
export async function renewSchema(context: Context, load: (context: Context) => Promise<Generation>): Promise<void> {
  try {
    await writeKnownSchema(context, await load(context))
  } catch (error) {
    if (!(error instanceof Problem)) throw error
  }
}
