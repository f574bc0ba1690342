// Finds the paths that complete the text in a template.
import type { LearntPaths } from '../model/api/shapes.ts'

const maxPaths = 50

/** The unclosed placeholder before the caret. `from`: where it begins. `word`: the typed part of its path. */
export type OpenPath = { readonly from: number; readonly word: string }

export function findOpenPath(text: string, caret: number): OpenPath | undefined {
  const from = text.lastIndexOf('{{', caret - 2)
  const [, word] = /^\{\{[ \t]*([^{}|\n]*)$/.exec(text.slice(Math.max(0, from), caret)) ?? []
  return word === undefined ? undefined : { from, word }
}

/** The paths that contain the word. Those that begin with it come first. */
export function choosePaths({ paths }: LearntPaths, word: string): LearntPaths['paths'] {
  const wanted = word.toLowerCase().replace(/^payload\./, '')
  const having = paths.filter(({ path }) => path.toLowerCase().includes(wanted))
  const begins = ({ path }: LearntPaths['paths'][number]) =>
    path
      .toLowerCase()
      .replace(/^payload\./, '')
      .startsWith(wanted)
  return [...having.filter(begins), ...having.filter((each) => !begins(each))].slice(0, maxPaths)
}
