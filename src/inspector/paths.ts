// Finds the paths that complete the text in a template.
import type { LearntPaths } from '../model/api/shapes.ts'

const maxPaths = 50

/** The unclosed placeholder before the caret. `from`: where it begins. `word`: the typed part of its path. */
export type OpenPath = { readonly from: number; readonly word: string }

/** A path, whose last key may have an open quote. */
const openPath =
  /^\{\{[ \t]*((?:[^{}|\n"'[]|\[(?:'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")?)*(?:'(?:[^'\\\n]|\\.)*|"(?:[^"\\\n]|\\.)*)?)$/
/** The rest of a path, from inside a key or after it, before its filter or the end of its placeholder. */
const restOfPath = /^(?:[^{}|\n"'[]*["']\])?(?:[^{}|\n"'[]|\[(?:'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")?)*(?=\}\}|\|)/

export function findRestOfPath(after: string): string | undefined {
  return restOfPath.exec(after)?.[0]
}

export function findOpenPath(text: string, caret: number): OpenPath | undefined {
  const from = text.lastIndexOf('{{', caret - 2)
  const [, word] = openPath.exec(text.slice(Math.max(0, from), caret)) ?? []
  return word === undefined ? undefined : { from, word }
}

/** The paths that contain the word. Those that begin with it come first. */
export function choosePaths({ paths }: LearntPaths, word: string): LearntPaths['paths'] {
  const wanted = toPlainPath(word)
  const having = paths.filter(({ path }) => toPlainPath(path).includes(wanted))
  const begins = ({ path }: LearntPaths['paths'][number]) => toPlainPath(path).startsWith(wanted)
  return [...having.filter(begins), ...having.filter((each) => !begins(each))].slice(0, maxPaths)
}

/** The path without its quotes, so that `fields.sys` finds `fields['System.Title']`. */
function toPlainPath(path: string): string {
  const plain = path
    .toLowerCase()
    .replace(/\[["']/g, '.')
    .replace(/["']\]/g, '')
  return plain.replace(/^(?:payload)?\./, '')
}
