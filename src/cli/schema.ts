import { z } from 'zod'
import { parseJsonc } from '../gateway/config/jsonc.ts'
import { renderConfigSchema } from '../gateway/config/schema.ts'
import { configFile, readConfigText } from '../gateway/config/text.ts'
import { loadPlugins } from '../gateway/reload/plugins.ts'
import { createDefinitions } from '../gateway/reload/definitions.ts'
import type { Context } from './terminal/context.ts'

const Named = z.object({ plugins: z.array(z.string()) })

/** Prints the JSON Schema of hookloom.jsonc, with the sections of its plugins. Nothing else of the file is read: it may be invalid. */
export async function schema(context: Context): Promise<number> {
  const { dir } = context
  const { data } = Named.safeParse(parseJsonc(readConfigText(dir, configFile) ?? '{}', configFile).value)
  const { plugins } = await loadPlugins({ dir, names: data?.plugins ?? [] }, createDefinitions())
  context.print(renderConfigSchema(undefined, plugins).trimEnd())
  return 0
}
