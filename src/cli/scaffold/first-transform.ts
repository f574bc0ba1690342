// Renders a new transform and its first fixture, which passes from the start.
import { stringify } from '../../base/sent-json.ts'
import type { Fixture } from '../../gateway/replay/fixture-files.ts'
import { isJsonObject, type SentValue } from '../../base/json.ts'
import type { Shape } from '../../gateway/shapes/shape.ts'

type Request = Pick<Fixture['request'], 'path' | 'headers' | 'payload'>

export const greeting: Pick<Request, 'headers' | 'payload'> = {
  headers: { 'content-type': 'application/json' },
  payload: { name: 'Ada' },
}

/** The type of the payload, its shape, and the module from which the type is imported. */
export type PayloadType = { readonly name: string; readonly module: string; readonly shape: Shape }

/** `module`: makes a message from one text of the payload. `fixture`: expects this message, or a skip if the payload has no text. */
export function renderFirstTransform(
  { path, headers, payload }: Request,
  type?: PayloadType,
): { module: string; fixture: string } {
  const found = findText(payload)
  const steps = found?.steps ?? ['name']
  const expect =
    found === undefined
      ? { decision: 'skip', actions: [] }
      : { decision: 'accept', actions: [{ kind: 'agent', message: `${renderOpening(steps)} ${found.text}` }] }
  const fixture = { request: { path, headers, payload }, expect }
  const typed = type !== undefined && hasField(type.shape, steps) ? type : undefined
  return { module: renderModule(steps, typed), fixture: `${stringify(fixture, 2)}\n` }
}

/** Whether the text is still the module that was made of the request, with the types of its hook or without. */
export function isFirstModule(text: string, { payload }: Pick<Request, 'payload'>): boolean {
  const steps = findText(payload)?.steps ?? ['name']
  const [, name, module] = /^import type \{ (\w+) \} from '([^']+)'$/m.exec(text) ?? []
  const typed = name === undefined || module === undefined ? undefined : { name, module }
  return text === renderModule(steps, typed)
}

export function isFirstFixture(text: string, request: Request): boolean {
  return text === renderFirstTransform(request).fixture
}

function hasField(shape: Shape, [step, ...further]: readonly string[]): boolean {
  if (step === undefined) return true
  const field = shape.fields.get(step)
  return field !== undefined && hasField(field, further)
}

function renderModule(steps: readonly string[], typed: Omit<PayloadType, 'shape'> | undefined): string {
  const field = steps.at(-1) ?? 'name'
  const inline = steps.reduceRight((inner, step) => `{ ${step}?: ${inner} }`, 'string')
  const name = typed?.name ?? 'Payload'
  const declared =
    typed === undefined
      ? `
/** The fields that this code reads. The payload comes from outside: any field may be missing. */
type Payload = ${inline}
`
      : `import type { ${typed.name} } from '${typed.module}'
`
  return `/** The ${field} of the payload becomes a message to the agent; a payload without one is skipped. */
import { defineTransform, type TransformResult } from 'hookloom'
${declared}
export default defineTransform<${name}>(({ payload }, { log }): TransformResult => {
  const ${field} = payload.${steps.join('?.')}
  if (typeof ${field} !== 'string' || ${field}.trim() === '') {
    log('skipped: no ${field}') // "hookloom show <deliveryId>" has this line
    return null // no action: the sender gets 204
  }
  // one action; return an array for several, or {} to keep the values of the mapping
  return { message: \`${renderOpening(steps)} \${${field}}\` }
})
`
}

function renderOpening(steps: readonly string[]): string {
  const field = steps.at(-1) ?? ''
  return field === 'name' ? 'Hello' : `Look at this ${field}:`
}

const likelyNames = ['title', 'subject', 'name', 'summary', 'text', 'message', 'description', 'action', 'event', 'type']
const maxDepth = 3

/** The text with the likeliest name for a message; among equals, the least nested one. */
function findText(payload: SentValue): { steps: string[]; text: string } | undefined {
  const all = listTexts(payload, [])
  const named = likelyNames.flatMap((name) => all.filter(({ steps }) => steps.at(-1) === name).toSorted(byDepth))
  return named[0] ?? all.toSorted(byDepth)[0]
}

type Text = { steps: string[]; text: string }

function byDepth(one: Text, other: Text): number {
  return one.steps.length - other.steps.length
}

function listTexts(value: SentValue, steps: string[]): Text[] {
  if (typeof value === 'string') {
    return steps.length > 0 && value.trim() !== '' && value.length <= 300 ? [{ steps, text: value }] : []
  }
  if (!isJsonObject(value) || steps.length === maxDepth) return []
  return Object.entries(value).flatMap(([key, item]) => (isVariableName(key) ? listTexts(item, [...steps, key]) : []))
}

// a field of the payload becomes a variable next to `payload` and `log`
const reservedWords =
  /^(payload|log|default|new|class|function|delete|in|if|for|do|this|null|true|false|var|let|const|return|with|case|try|void|enum|export|import|switch|throw|typeof|while|yield|await|static|package|private|public|protected|interface|implements|super|extends|else|break|catch|continue|debugger|finally|instanceof|arguments|eval)$/

function isVariableName(key: string): boolean {
  return /^[A-Za-z_][A-Za-z\d_]*$/.test(key) && !reservedWords.test(key)
}
