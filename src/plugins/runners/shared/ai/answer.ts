// Two of the forms in which a model gives a reply with a verdict: structured output, and the call of a tool. In both, the schema allows only the
// listed words, but not every server enforces it.
import type { JSONSchema7 } from 'ai'
import { isJsonObject, type JsonObject, tryParseJson } from '../../../../base/json.ts'
import type { VerdictForm } from '../../../../model/job.ts'
import { matchVerdict } from '../../../../model/verdict.ts'

/** The form of the answer that a call requests. */
export type AnswerForm = { readonly form: VerdictForm; readonly words: readonly string[] }

/** The tool that a model calls to answer. */
export const answerTool = 'answer'

/** The schema of an answer. The reply comes before the verdict, so that the model writes its reasons before it decides. */
export function toAnswerSchema(words: readonly string[]): JSONSchema7 {
  return {
    type: 'object',
    properties: {
      reply: { type: 'string', description: 'The whole reply, in Markdown.' },
      verdict: { type: 'string', enum: [...words], description: 'The verdict of the reply.' },
    },
    required: ['reply', 'verdict'],
    additionalProperties: false,
  }
}

type Answer = { readonly text: string; readonly verdict?: { readonly word: string; readonly form: VerdictForm } }

/**
 * Reads a reply and its verdict. A text that is not a JSON object with the field `reply` is the reply itself. `parse` reads JSON that may be
 * incomplete.
 */
export async function readVerdictReply(
  { text, toolInput }: { readonly text: string; readonly toolInput: unknown },
  { form, words }: AnswerForm,
  parse: (text: string) => Promise<unknown>,
): Promise<Answer> {
  if (form === 'last-line') return { text }
  const fields = isJsonObject(toolInput) ? toolInput : await readFields(text, parse)
  if (fields === undefined) return { text }
  const word = matchVerdict(fields['verdict'], words)
  const said = typeof fields['reply'] === 'string' ? fields['reply'] : ''
  return {
    // an answer may have only the verdict
    text: said.trim() === '' && word !== undefined ? word : said,
    ...(word === undefined ? {} : { verdict: { word, form: isJsonObject(toolInput) ? 'tool-call' : form } }),
  }
}

/** The object of structured output, also inside a code fence. Undefined for any other text. */
async function readFields(text: string, parse: (text: string) => Promise<unknown>): Promise<JsonObject | undefined> {
  const bare = removeFence(text.trim())
  if (!bare.startsWith('{')) return undefined
  const found = tryParseJson(bare) ?? (await parse(bare))
  return isJsonObject(found) && Object.hasOwn(found, 'reply') ? found : undefined
}

/** Removes a code fence. Its end is found without a regular expression, because one that begins with blanks would try each of many blanks. */
function removeFence(text: string): string {
  const open = /^```(?:json)?/.exec(text)?.[0] ?? ''
  return (text.endsWith('```') ? text.slice(open.length, -3) : text.slice(open.length)).trim()
}
