// What a message is about, in one line: the first line of it that the mapping did not write itself, or what its payload is about.
import { cut } from '../../base/text.ts'
import { replaceTokens } from '../../base/token-forms.ts'
import { readPartialJson } from '../shapes/partial-json.ts'
import { readTitle } from '../shapes/title.ts'

/** The part of a message that is read. */
const maxRead = 16_000
/** The maximum number of lines that are compared with the template. */
const maxLines = 40
export const maxAboutChars = 200

export type AboutContext = {
  /** The template of the mapping: its lines without placeholders are the same in each message, and say nothing about this one. */
  readonly template?: string | undefined
  /** The event in the words of the sender. */
  readonly event?: string | undefined
}

/** At most 200 characters. What looks like a secret is replaced by an ellipsis. */
export function describeMessage(message: string, { template, event }: AboutContext = {}): string {
  const text = message.slice(0, maxRead)
  const own = new Set((template ?? '').split('\n').map((line) => line.trim()))
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .slice(0, maxLines)
  const [first = ''] = lines
  const line = lines.find((each) => !own.has(each)) ?? first
  return cut(readJson(text, line, { template, event }) ?? replaceTokens(line, '…'), maxAboutChars)
}

const beginning = /[{[]\s*(?:["{[\]}]|-?\d|$)/

/** What the JSON is about that begins in a line, after the words before it unless they are the template's; undefined if it does not say. */
function readJson(text: string, line: string, { template, event }: AboutContext): string | undefined {
  const inLine = line.search(beginning)
  if (inLine < 0) return undefined
  const payload = readPartialJson(text, text.indexOf(line) + inLine)
  const title = payload === undefined ? undefined : readTitle(payload, event)
  const words = line.slice(0, inLine).trim()
  if (title === undefined || words === '' || template?.includes(words) === true) return title
  return `${replaceTokens(words, '…')} ${title}`
}
