import { toConfigSchema } from '../loader/config/schema.ts'
import type { Context } from './terminal/context.ts'

/** The JSON Schema of hookloom.jsonc, as a file beside it would hold it. */
export async function schema(context: Context): Promise<number> {
  context.print(toSchemaText().trimEnd())
  return 0
}

export function toSchemaText(): string {
  return `${JSON.stringify(toConfigSchema(), undefined, 2)}\n`
}
