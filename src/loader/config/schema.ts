// What the configuration may hold, as JSON Schema: for editors, and for near misses in its errors.
import { z } from 'zod'
import { Config } from '../../model/config.ts'

type Schema = z.core.JSONSchema.BaseSchema

/** JSON Schema (draft-7) of `hookloom.jsonc` as it is written, for editors. */
export function toConfigSchema(): Schema {
  return z.toJSONSchema(Config, {
    io: 'input',
    target: 'draft-7',
    override: ({ jsonSchema }) => {
      // zod writes out how far an integer goes in JavaScript, which is no limit of a key
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
    },
  })
}

/** As a file beside `hookloom.jsonc` holds it. */
export function renderConfigSchema(): string {
  return `${JSON.stringify(toConfigSchema(), undefined, 2)}\n`
}

/** The keys that the configuration knows at a path; none where any key goes. */
export function toKeysAt(path: readonly PropertyKey[]): string[] {
  return [...new Set(toSchemasAt(path).flatMap(toKeys))]
}

/** The words that the configuration knows at a path, such as the kinds of a runner; none where any value goes. */
export function toWordsAt(path: readonly PropertyKey[]): string[] {
  return [...new Set(toSchemasAt(path).flatMap(toWords))]
}

function toSchemasAt(path: readonly PropertyKey[]): Schema[] {
  let found = toAlternatives(toConfigSchema())
  for (const key of path) found = found.flatMap((schema) => toChildren(schema, key)).flatMap(toAlternatives)
  return found
}

/** Those of an object, and of a record whose keys are words. */
function toKeys({ properties = {}, propertyNames }: Schema): string[] {
  return [...Object.keys(properties), ...(isSchema(propertyNames) ? toWords(propertyNames) : [])]
}

function toWords(schema: Schema): string[] {
  return [schema.const, ...(schema.enum ?? [])].filter((word) => typeof word === 'string')
}

function toAlternatives(schema: Schema): Schema[] {
  return [schema, ...[...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].filter(isSchema).flatMap(toAlternatives)]
}

function toChildren(schema: Schema, key: PropertyKey): Schema[] {
  const { items, properties = {}, additionalProperties } = schema
  if (typeof key === 'number') return [items].flat().filter(isSchema)
  const own = Object.hasOwn(properties, key) ? properties[String(key)] : additionalProperties
  return [own].filter(isSchema)
}

function isSchema(schema: unknown): schema is Schema {
  return typeof schema === 'object' && schema !== null
}
