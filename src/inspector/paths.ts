// Which paths complete what is typed into a template.
import type { LearntPaths } from '../model/api/shapes.ts'

const mostShown = 50

/** The placeholder that is open before the caret: where it begins, and the part of a path that it has. */
export type OpenPath = { readonly from: number; readonly word: string }

export function findOpenPath(text: string, caret: number): OpenPath | undefined {
  const from = text.lastIndexOf('{{', caret - 2)
  const [, word] = /^\{\{[ \t]*([^{}|\n]*)$/.exec(text.slice(Math.max(0, from), caret)) ?? []
  return word === undefined ? undefined : { from, word }
}

/** Those that begin with the word come first. */
export function choosePaths({ paths }: LearntPaths, word: string): LearntPaths['paths'] {
  const wanted = word.toLowerCase().replace(/^payload\./, '')
  const having = paths.filter(({ path }) => path.toLowerCase().includes(wanted))
  const begins = ({ path }: LearntPaths['paths'][number]) =>
    path
      .toLowerCase()
      .replace(/^payload\./, '')
      .startsWith(wanted)
  return [...having.filter(begins), ...having.filter((each) => !begins(each))].slice(0, mostShown)
}
