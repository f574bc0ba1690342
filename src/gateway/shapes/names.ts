// Decides which words of a payload may be kept. A name of a field and a word of a closed vocabulary may; everything else may be a secret or
// personal, even as a key: maps have ids, addresses and names of people as their keys.
import { unreadableNames } from '../../base/path-text.ts'

/** A name, after it the name of a field of a form in each bracket, before it the domain of a label of Kubernetes: `data[email]`, `app.kubernetes.io/name`. */
const fieldName =
  /^(?:[a-z][a-z\d-]*(?:\.[a-z][a-z\d-]*)+\/)?[@#]?[\p{L}_$][\p{L}\p{M}\p{N}_$.:-]*(?:\[[\p{L}\p{M}\p{N}_$.:-]*\])*$/u
const maxNameChars = 64
/** The longest part of a name, between two punctuation characters or capital letters: words are shorter, and tokens are longer. */
const maxPartChars = 32

/** Whether a key reads like the name of a field. Ids, numbers, addresses, URLs and texts with spaces do not. */
export function isFieldName(key: string): boolean {
  if (key.length > maxNameChars || unreadableNames.has(key) || !fieldName.test(key)) return false
  return !hasIdForm(key) && key.split(/[_$.:/[\]-]|(?=\p{Lu})/u).every((part) => part.length <= maxPartChars)
}

/** The maximum number of words in a name with spaces: a sentence has more. */
const maxEventWords = 5
const eventName = /^[A-Za-z][\w.:/ -]{0,63}$/

/** Whether a word reads like the name of an event or of a sender, such as `Merge Request Hook` or `orders/create`. */
export function isEventName(word: string): boolean {
  return eventName.test(word) && !hasIdForm(word) && word.split(' ').length <= maxEventWords
}

/**
 * Whether a word looks like an id: its digits are spread over it or are many, or it consists of at least six capital letters and digits. `sha256` and
 * `address_2` are names, `U012AB3CD` and `item_48213` are ids.
 */
function hasIdForm(word: string): boolean {
  const groups = word.match(/\p{N}+/gu) ?? []
  if (groups.length > 2 || groups.some((digits) => digits.length > 4)) return true
  return groups.length > 0 && /^[A-Z\d]{6,}$/.test(word)
}

/** A field whose name ends with one of these words has values from a vocabulary of the sender, which name no person, thing or place of a customer. */
const vocabularies: ReadonlySet<string> = new Set(
  (
    'action type kind state status event object mode level severity currency visibility category priority conclusion ' +
    'result outcome environment protocol phase stage trigger operation verb decision association strategy ' +
    'interval frequency direction encoding subtype'
  ).split(' '),
)
const vocabularyWord = /^[A-Za-z]+(?:[_.:-][A-Za-z]+)*$/
const maxWordChars = 40
const maxPartOfWord = 20

/** Whether the values of the field may be listed. */
export function isVocabulary(field: string): boolean {
  return vocabularies.has(splitWords(field).at(-1) ?? '')
}

/** Whether a value may be in such a list: letters only, in words, so no id, address, number or token. */
export function isVocabularyWord(value: string): boolean {
  if (value.length > maxWordChars || !vocabularyWord.test(value)) return false
  return value.split(/[_.:-]|(?=[A-Z][a-z])/).every((part) => part.length <= maxPartOfWord)
}

/** The words of a name in lower case: `pullRequest_URL` has `pull`, `request` and `url`. */
export function splitWords(name: string): string[] {
  return name
    .replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '')
}

const forms = [
  ['a date and time', /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?\s?(?:Z|UTC|[+-]\d\d:?\d\d)?$/],
  ['a date', /^\d{4}-\d\d-\d\d$/],
  ['a URL', /^https?:\/\/\S+$/],
  ['a UUID', /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i],
  ['an email address', /^[^\s@:/]{1,64}@[^\s@:/]{1,190}\.[^\s@:/.]{2,63}$/],
  ['an integer', /^-?\d{1,20}$/],
] as const

export type Form = (typeof forms)[number][0] | 'text'

/** The form of a text. An empty text has none. */
export function findForm(text: string): Form | undefined {
  if (text === '') return undefined
  if (text.length > 2_000) return 'text'
  return forms.find(([, pattern]) => pattern.test(text))?.[0] ?? 'text'
}
