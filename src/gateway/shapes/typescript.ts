// Shapes as TypeScript. Lists of words stay open, because traffic never shows that a list is complete: a type accepts every payload that
// differs from the earlier ones in values only.
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
import type { Form } from './names.ts'
import { countSeen, type Shape } from './shape.ts'

type Place = Learnt & { readonly indent: string }

const renderHead = (hook: string) =>
  `// What the requests of the hook ${JSON.stringify(hook)} have in common. "hookloom types" writes this file.\n`

/** The parts of a declaration file with one type for each event, and their union. A part may take some milliseconds. */
export function* renderTypes(
  hook: string,
  shapes: readonly NamedShape[],
  hasNumbersAsTexts: HasNumbersAsTexts,
): Generator<string> {
  const union = buildUnionName(hook)
  yield renderHead(hook)
  for (const { event, source, name, shape } of shapes) {
    const about = [event && `event ${JSON.stringify(event)}`, source && `source ${JSON.stringify(source)}`]
    const comment = about.filter((part) => part !== '').join(', ')
    const learnt = { requests: countSeen(shape), hasNumbersAsTexts: hasNumbersAsTexts(source) }
    const type = renderType(shape, { indent: '', ...learnt })
    yield `\n${comment === '' ? '' : `/** ${comment} */\n`}export type ${name} = ${type}\n`
  }
  const names = shapes.map(({ name }) => name)
  const members = names.length === 0 ? ['unknown'] : names.filter((name) => name !== union)
  if (!names.includes(union)) yield `\nexport type ${union} =\n  | ${members.join('\n  | ')}\n`
}

function renderType(shape: Shape, place: Place): string {
  const found = listKinds(shape, place).map((kind) => {
    if (kind === 'object') return renderObject(shape, place)
    if (kind === 'array') return shape.items === undefined ? 'unknown[]' : renderArray(shape.items, place)
    return kind === 'string' ? renderText(shape) : kind
  })
  return found.length === 0 ? 'unknown' : found.join(' | ')
}

function renderArray(items: Shape, place: Place): string {
  const type = renderType(items, place)
  if (items.kinds.has('null') && type !== 'unknown') return `Array<${type} | null>`
  return listKinds(items, place).length > 1 || listWords(items).length > 0 ? `Array<${type}>` : `${type}[]`
}

function renderText(shape: Shape): string {
  const words = listWords(shape)
  return words.length === 0 ? 'string' : [...words.map((word) => `'${word}'`), '(string & {})'].join(' | ')
}

function renderObject(shape: Shape, place: Place): string {
  const { fields, others } = shape
  if (fields.size === 0) {
    if (others === undefined) return 'Record<string, unknown>'
    const type = renderType(others, place)
    return `Record<string, ${others.kinds.has('null') && type !== 'unknown' ? `${type} | null` : type}>`
  }
  const inner = { ...place, indent: `${place.indent}  ` }
  const lines = [...fields].map(([key, field]) => {
    const type = renderType(field, inner)
    const optional = isOptional(field, shape, place.requests) ? '?' : ''
    const nullable = type !== 'unknown' && isNullable(field, place.requests) ? ' | null' : ''
    const notes = [
      field.form === undefined || field.form === 'text' ? [] : (formNotes[field.form] ?? field.form),
      field.hasLongNumbers ? 'a number that a double does not hold is a string of its digits' : [],
    ].flat()
    const note = notes.length === 0 ? '' : `${inner.indent}/** ${notes.join('; ')} */\n`
    return `${note}${inner.indent}${renderKey(key)}${optional}: ${type}${nullable}`
  })
  if (others !== undefined || shape.isPartial) lines.push(`${inner.indent}[key: string]: unknown`)
  return `{\n${lines.join('\n')}\n${place.indent}}`
}

/** What the comment of a text says instead of its form: code must not take the text for a number. */
const formNotes: Partial<Record<Form, string>> = { 'an integer': 'a text of digits' }

/** Names that are not identifiers are quoted. */
export function renderKey(key: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(key) ? key : JSON.stringify(key)
}
