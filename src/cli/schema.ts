import { z } from 'zod'
import { parseJsonc } from '../gateway/config/jsonc.ts'
import { renderConfigSchema } from '../gateway/config/schema.ts'
import { configFile, readConfigText } from '../gateway/config/text.ts'
import { loadPlugins } from '../gateway/reload/plugins.ts'
import { createLoader } from '../gateway/reload/loader.ts'
import type { Context } from './terminal/context.ts'

const Named = z.object({ plugins: z.array(z.string()) })

/** Prints the JSON Schema of hookloom.jsonc, with the sections of its plugins. Nothing else of the file is read: it may be invalid. */
export async function schema(context: Context): Promise<number> {
  const { dir } = context
  const { data } = Named.safeParse(parseJsonc(readConfigText(dir, configFile) ?? '{}', configFile).value)
  const { plugins } = await loadPlugins({ names: data?.plugins ?? [] }, createLoader(dir))
  context.print(renderConfigSchema(undefined, plugins).trimEnd())
  return 0
}
