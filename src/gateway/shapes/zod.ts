// Shapes as schemas of Zod, with the same meaning as the TypeScript types. Fields that were never seen are accepted.
import {
  buildUnionName,
  type HasNumbersAsTexts,
  isNullable,
  isOptional,
  type Learnt,
  listKinds,
  listWords,
  type NamedShape,
} from './event-shape.ts'
import { renderKey } from './typescript.ts'
import { countSeen, type Shape } from './shape.ts'

type Place = Learnt & { readonly indent: string }

/** The parts of a module with one schema for each event, and their union. They are named like their types, but with a lower-case first letter. */
export function* renderSchemas(
  hook: string,
  shapes: readonly NamedShape[],
  hasNumbersAsTexts: HasNumbersAsTexts,
): Generator<string> {
  yield `// What the requests of the hook ${JSON.stringify(hook)} have in common. "hookloom types --zod" writes this file.\nimport { z } from 'zod'\n`
  for (const { name, source, shape } of shapes) {
    const learnt = { requests: countSeen(shape), hasNumbersAsTexts: hasNumbersAsTexts(source) }
    const schema = renderSchema(shape, { indent: '', ...learnt })
    yield `\nexport const ${toSchemaName(name)} = ${schema}\n`
  }
  const union = buildUnionName(hook)
  const names = shapes.map(({ name }) => name)
  if (names.length === 0 || names.includes(union)) return
  yield `\nexport const ${toSchemaName(union)} = z.union([${names.map(toSchemaName).join(', ')}])\n`
}

/** The name of the schema of a type. */
export function toSchemaName(type: string): string {
  return `${type.charAt(0).toLowerCase()}${type.slice(1)}`
}

function renderSchema(shape: Shape, place: Place): string {
  const found = listKinds(shape, place).map((kind) => {
    if (kind === 'object') return renderObject(shape, place)
    if (kind === 'array')
      return `z.array(${shape.items === undefined ? 'z.unknown()' : renderNullable(shape.items, place)})`
    return kind === 'string' ? renderText(shape) : `z.${kind}()`
  })
  const [only, second] = found
  if (only === undefined) return 'z.unknown()'
  return second === undefined ? only : `z.union([${found.join(', ')}])`
}

/** The schema of items or of values of a map. They may be null only if null was seen: `isNullable` needs the number of requests, which their number does not show. */
function renderNullable(shape: Shape, place: Place): string {
  return `${renderSchema(shape, place)}${shape.kinds.has('null') ? '.nullable()' : ''}`
}

function renderText(shape: Shape): string {
  const words = listWords(shape)
  return words.length === 0 ? 'z.string()' : `z.string().describe('seen: ${words.join(', ')}')`
}

function renderObject(shape: Shape, place: Place): string {
  const { fields, others } = shape
  if (fields.size === 0) {
    return `z.record(z.string(), ${others === undefined ? 'z.unknown()' : renderNullable(others, place)})`
  }
  const inner = { ...place, indent: `${place.indent}  ` }
  const lines = [...fields].map(([key, field]) => {
    const nullable = isNullable(field, place.requests) ? '.nullable()' : ''
    const optional = isOptional(field, shape, place.requests) ? '.optional()' : ''
    return `${inner.indent}${renderKey(key)}: ${renderSchema(field, inner)}${nullable}${optional},`
  })
  return `z.looseObject({\n${lines.join('\n')}\n${place.indent}})`
}
