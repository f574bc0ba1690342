// The answers of the tools of `hookloom mcp`. Each answer is data between the markers of the boundary, and is short enough for
// a model. In place of a secret of this configuration with at least `minSecretChars` characters, it has a mark.
import { findCharacterStart, takeStart } from '../../base/text.ts'
import { randomBytes } from 'node:crypto'
import { parse } from 'jsonc-parser'
import { wrapExternal, neutralise } from '../../boundary/boundary.ts'
import { loadConfig } from '../../gateway/config/config.ts'
import { parseEnv } from '../../gateway/config/env.ts'
import { configFile, envFile, readConfigText } from '../../gateway/config/text.ts'
import { createSecretMask, listConfigSecrets, minSecretChars } from '../../model/config/secrets.ts'
import { Problem, toProblem } from '../../core/model/problem.ts'
import type { Context } from '../terminal/context.ts'

/** About 10,000 tokens. Clients cut or refuse much longer answers. */
const maxAnswerChars = 40_000
/** The maximum length of a text in an answer. A longer text is cut, so that the fields after it are still shown. */
const maxTextChars = 8_000
export const secretMark = '[secret]'

/** `offset`: shows the answer as one text, from this character on. `rest`: how to see the part that was cut. */
type AnswerOptions = {
  readonly secrets: readonly string[]
  readonly offset?: number | undefined
  readonly rest: string
}

/** The text of an answer. All of it is between the markers, except sentences from this file and `rest`. */
export function renderAnswer(value: unknown, { secrets, offset, rest }: AnswerOptions): string {
  if (offset !== undefined) {
    const text = maskSecrets(typeof value === 'string' ? value : JSON.stringify(value, undefined, 1), secrets)
    const end = findCharacterStart(text, Math.min(text.length, offset + maxAnswerChars))
    const place = `These are the characters ${offset} to ${end} of ${text.length}.`
    const isWhole = offset === 0 && end === text.length
    const more = end === text.length ? place : `${place} Call this tool with "offset": ${end} for the rest.`
    return [wrap(text.slice(offset, end)), ...(isWhole ? [] : [more])].join('\n')
  }
  const text = maskSecrets(
    JSON.stringify(value, (_key, item: unknown) => cutText(item, secrets), 1),
    secrets,
  )
  return [
    wrap(text),
    ...(text.length > maxAnswerChars ? [`The answer is cut after ${maxAnswerChars} characters. ${rest}`] : []),
  ].join('\n')
}

/** The sentence that describes a Problem. The frame of the Problem may quote code or a payload, so it is between markers. */
export function renderProblem(thrown: unknown, secrets: readonly string[]): string {
  const { code, message, frame } = toProblem(thrown)
  const known = thrown instanceof Problem ? message : `Hookloom failed. This is a bug. ${message}`
  const sentence = maskSecrets(neutralise(`${known} (${code})`), secrets)
  return frame === undefined ? sentence : `${sentence}\n${wrap(maskSecrets(frame, secrets))}`
}

function wrap(text: string): string {
  const id = randomBytes(8).toString('hex')
  return wrapExternal({ text, source: 'Hookloom, with texts of senders', id, maxChars: maxAnswerChars })
}

function cutText(value: unknown, secrets: readonly string[]): unknown {
  if (typeof value !== 'string' || value.length <= maxTextChars) return value
  // masked before the cut, which could leave a part of a secret
  const text = maskSecrets(value, secrets)
  if (text.length <= maxTextChars) return text
  return `${takeStart(text, maxTextChars)} [Cut here: ${text.length - maxTextChars} of ${text.length} characters are left out.]`
}

function maskSecrets(text: string, secrets: readonly string[]): string {
  return createSecretMask(secrets, secretMark)(text)
}

/** The secrets of the configuration on disk, even if the configuration is invalid, and every value of `.env`. */
export function listSecrets({ dir, env }: Pick<Context, 'dir' | 'env'>): string[] {
  const inFile: unknown = parse(readConfigText(dir, configFile) ?? '{}', [], { allowTrailingComma: true })
  const literal = typeof inFile === 'object' && inFile !== null ? listConfigSecrets(inFile, []) : []
  const found = [
    ...Object.values(parseEnv(readConfigText(dir, envFile) ?? '').values),
    // a reference to a variable is not a secret
    ...literal.filter((text) => !text.includes('${')),
    ...listLoadedSecrets({ dir, env }),
  ]
  return [...new Set(found.flatMap((text) => text ?? []))].filter((text) => text.length >= minSecretChars)
}

function listLoadedSecrets(place: Pick<Context, 'dir' | 'env'>): string[] {
  try {
    return listConfigSecrets(loadConfig(place).config, [])
  } catch (error) {
    if (error instanceof Problem) return []
    throw error
  }
}
