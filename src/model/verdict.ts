// The verdict of a run: one word of a list that the mapping has. A model writes it, so only a word of that list counts.
import type { Job, RunVerdict } from './job.ts'

/** The listed word that a text consists of; undefined for any other text. Case, punctuation and the label `verdict` before the word are ignored. */
export function matchVerdict(text: unknown, words: readonly string[]): string | undefined {
  if (typeof text !== 'string' || text.length > longestLine) return undefined
  const bare = text.replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, '').toLowerCase()
  const unlabelled = bare.replace(/^verdict[^\p{L}\p{N}]+/u, '')
  return words.find((word) => word.toLowerCase() === unlabelled)
}

/** The maximum number of characters: a longer text is not a verdict. */
const longestLine = 200

/** The verdict on the last line of a reply. Blank lines after it are ignored. Undefined if the line is not a verdict. */
export function readLastLineVerdict(reply: string, words: readonly string[]): string | undefined {
  return matchVerdict(reply.trimEnd().split('\n').at(-1), words)
}

/**
 * The verdict of a run whose mapping has `verdicts`, and the words of `verdicts`; undefined for every other job. Without a reply, the word is
 * null.
 */
export function findVerdict({
  planned,
  steps,
}: Pick<Job, 'planned' | 'steps'>): (RunVerdict & { readonly words: readonly string[] }) | undefined {
  if (planned.kind !== 'agent' || planned.verdicts === undefined) return undefined
  const { verdict = { word: null } } = steps.find(({ name }) => name === 'run') ?? {}
  return { ...verdict, words: planned.verdicts }
}

/** Describes a verdict, such as `pass, by structured output, after a second question`. */
export function describeVerdict({ word, form, isRepaired }: RunVerdict): string {
  const parts = [word ?? 'none', ...(form === undefined ? [] : [`by ${form.replace('-', ' ')}`])]
  return [...parts, ...(isRepaired === true ? ['after a second question'] : [])].join(', ')
}
