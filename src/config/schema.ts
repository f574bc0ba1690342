// The JSON Schema of the configuration, for editors and for suggestions in error messages.
import { z } from 'zod'
import { Config } from '../model/config/config.ts'

type Schema = z.core.JSONSchema.BaseSchema

/** JSON Schema (draft-7) of the file `hookloom.jsonc`, for editors. */
function buildConfigSchema(): Schema {
  return z.toJSONSchema(Config, {
    io: 'input',
    target: 'draft-7',
    override: ({ jsonSchema }) => {
      // zod adds the integer limits of JavaScript, which are not limits of the key
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
    },
  })
}

/** The text of the schema file next to `hookloom.jsonc`. */
export function renderConfigSchema(): string {
  return `${JSON.stringify(buildConfigSchema(), undefined, 2)}\n`
}

/** The known keys at a path; an empty list where any key is valid. */
export function listKeysAt(path: readonly PropertyKey[]): string[] {
  return [...new Set(findSchemasAt(path).flatMap(listKeys))]
}

/** The known words at a path, such as the kinds of a runner; an empty list where any value is valid. */
export function listWordsAt(path: readonly PropertyKey[]): string[] {
  return [...new Set(findSchemasAt(path).flatMap(listWords))]
}

function findSchemasAt(path: readonly PropertyKey[]): Schema[] {
  let found = listAlternatives(buildConfigSchema())
  for (const key of path) found = found.flatMap((schema) => listChildren(schema, key)).flatMap(listAlternatives)
  return found
}

/** The keys of an object, or of a record whose keys are known words. */
function listKeys({ properties = {}, propertyNames }: Schema): string[] {
  return [...Object.keys(properties), ...(isSchema(propertyNames) ? listWords(propertyNames) : [])]
}

function listWords(schema: Schema): string[] {
  return [schema.const, ...(schema.enum ?? [])].filter((word) => typeof word === 'string')
}

function listAlternatives(schema: Schema): Schema[] {
  return [schema, ...[...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].filter(isSchema).flatMap(listAlternatives)]
}

function listChildren(schema: Schema, key: PropertyKey): Schema[] {
  const { items, properties = {}, additionalProperties } = schema
  if (typeof key === 'number') return [items].flat().filter(isSchema)
  const own = Object.hasOwn(properties, key) ? properties[String(key)] : additionalProperties
  return [own].filter(isSchema)
}

function isSchema(schema: unknown): schema is Schema {
  return typeof schema === 'object' && schema !== null
}
