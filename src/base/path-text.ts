// How paths into a payload are written. Templates, conditions and types read what these functions write; the page writes paths too.

/** `[*]`: any item of a list. Only conditions have it. */
export const anyItem: unique symbol = Symbol('[*]')

/** A name, or the index of an item. */
export type PathStep = string | number

/** The path of a condition. */
export type ConditionPath = readonly (PathStep | typeof anyItem)[]

/** Names that no path reads, because they would change an object in code that copies it. */
export const unreadableNames: ReadonlySet<string> = new Set(['__proto__', 'prototype', 'constructor'])

/** Characters that have a meaning in paths, placeholders or quotes, that cannot be seen, or that separate words. */
const special = /[.[\]{}|"'\\\p{Z}\p{C}\p{Default_Ignorable_Code_Point}]/u
const escaped = /[\\']|(?! )[\p{Z}\p{C}\p{Default_Ignorable_Code_Point}]/gu

/**
 * The path in the form that `parsePath` reads: `issue.labels[0].name`, `fields['System.Title']`. The quotes are single ones, so that the path fits into
 * a text of JSON. Empty for the root.
 */
export function formatPath(path: ConditionPath): string {
  return path.map(formatStep).join('')
}

function formatStep(step: ConditionPath[number], at: number): string {
  if (step === anyItem) return '[*]'
  if (typeof step === 'number') return `[${step}]`
  if (step === '' || step === '*' || special.test(step)) return `['${step.replace(escaped, escapeCharacter)}']`
  return at === 0 ? step : `.${step}`
}

function escapeCharacter(character: string): string {
  if (character === '\\' || character === "'") return `\\${character}`
  return character.replace(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** What means something else at the beginning of a placeholder: the words of the request, and the tags of other template languages. */
const reserved = /^(?:(?:path|source|event|now|body|else)$|(?:headers|query|payload)(?=$|[.[])|[#/^>!&])/

/** The path in the form of a placeholder: `{{event}}` is the event of the request, so the field `event` is `payload.event`. */
export function formatPlaceholder(path: readonly PathStep[]): string {
  const text = formatPath(path)
  if (text === '') return 'payload'
  return reserved.test(text) ? `payload.${text}` : text
}
