// The JSON Schema of the configuration, for editors and for suggestions in error messages.
import { z } from 'zod'
import { channelMark, ownChannel } from '../../core/model/action.ts'
import { recoverMark } from '../../core/model/recover.ts'
import type { LoadedPlugin } from '../../model/plugin.ts'
import { addPlugins, builtInKeys, builtInParts, createKeys, type Keys } from './keys.ts'

type Schema = z.core.JSONSchema.BaseSchema

/** The JSON Schema (draft-7) of `hookloom.jsonc`. */
function buildConfigSchema(plugins: readonly LoadedPlugin[] = []): Schema {
  const keys = plugins.length === 0 ? builtInKeys : createKeys(addPlugins(builtInParts, plugins))
  return toJsonSchema(keys.config, keys)
}

function toJsonSchema(type: z.ZodType, { channels, recover }: Pick<Keys, 'channels' | 'recover'>): Schema {
  return z.toJSONSchema(type, {
    io: 'input',
    target: 'draft-7',
    override: ({ jsonSchema }) => {
      // editors complete the names that are known
      if (channelMark in jsonSchema) {
        delete jsonSchema[channelMark]
        const names = ['last', ...channels.map(({ name }) => name)]
        jsonSchema.anyOf = [{ enum: names }, { pattern: ownChannel.source }]
      }
      if (recoverMark in jsonSchema) {
        const { description } = jsonSchema
        for (const key of Object.keys(jsonSchema)) Reflect.deleteProperty(jsonSchema, key)
        const { $schema: _, ...sections } = toJsonSchema(recover, { channels, recover })
        Object.assign(jsonSchema, { description, ...sections })
      }
      // zod adds the integer limits of JavaScript, which are not limits of the key
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
    },
  })
}

/** Facts about the payloads that were received. Editors suggest them; they make no value invalid. */
export type KnownPayloads = {
  /** `path`: in the form of `match.payload`. `placeholder`: in the form of a template. */
  readonly paths: readonly { readonly path: string; readonly placeholder: string; readonly kinds: readonly string[] }[]
  /** The paths of lists, in the form of `forEach`. */
  readonly lists: readonly string[]
  readonly sources: readonly string[]
  readonly events: readonly string[]
}

const maxExamples = 100

/** The text of the schema file next to `hookloom.jsonc`. `plugins`: those of the configuration, whose sections it has too. */
export function renderConfigSchema(known?: KnownPayloads, plugins: readonly LoadedPlugin[] = []): string {
  const schema = buildConfigSchema(plugins)
  if (known !== undefined) addSuggestions(schema, known)
  return `${JSON.stringify(schema, undefined, 2)}\n`
}

/** Adds the facts to the conditions and templates of the mappings, as suggestions of editors. */
function addSuggestions(schema: Schema, { paths, lists, sources, events }: KnownPayloads): void {
  const find = (...path: PropertyKey[]) =>
    path.reduce<Schema[]>((found, key) => found.flatMap((each) => listChildren(each, key)), [schema])
  const mapping = ['hooks', 'mappings', 0]
  const placeholders = paths.slice(0, maxExamples).map(({ placeholder }) => `{{${placeholder}}}`)
  for (const match of [
    [...mapping, 'match'],
    [...mapping, 'match', 'any', 0],
  ]) {
    for (const found of find(...match, 'source')) found.examples = [...sources]
    for (const found of find(...match, 'event')) found.examples = events.slice(0, maxExamples)
    for (const found of find(...match, 'payload')) addKnownPaths(schema, found, paths)
  }
  for (const found of find(...mapping, 'forEach')) found.examples = [...lists]
  for (const name of ['messageTemplate', 'textTemplate']) {
    for (const found of find(...mapping, name)) found.examples = placeholders
  }
}

/** Adds the known paths as keys of a condition. Each of them refers to the schema of all keys, which is written once. */
function addKnownPaths(root: Schema, conditions: Schema, paths: KnownPayloads['paths']): void {
  const { additionalProperties } = conditions
  if (!isSchema(additionalProperties)) return
  root.definitions = Object.assign({}, root.definitions, { condition: additionalProperties })
  const ref = { $ref: '#/definitions/condition' }
  conditions.properties = Object.fromEntries(
    paths.map(({ path, kinds }) => [
      path,
      { allOf: [ref], description: `${kinds.join(' or ')}, as requests have it.` },
    ]),
  )
  conditions.additionalProperties = ref
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
