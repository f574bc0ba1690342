import { renderConfigSchema } from '../config/schema.ts'
import type { Context } from './terminal/context.ts'

/** Prints the JSON Schema of hookloom.jsonc. */
export async function schema(context: Context): Promise<number> {
  context.print(renderConfigSchema().trimEnd())
  return 0
}
