// Finds the paths that complete the text in a template.
/** The unclosed placeholder before the caret. `from`: where it begins. `word`: the typed part of its path. */
export type OpenPath = { readonly from: number; readonly word: string }

/** A path, whose last key may have an open quote. */
const openPath =
  /^\{\{[ \t]*((?:[^{}|\n"'[]|\[(?:'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")?)*(?:'(?:[^'\\\n]|\\.)*|"(?:[^"\\\n]|\\.)*)?)$/
/** A placeholder, with its path: it ends at a filter or at the end of the placeholder. */
const placeholder =
  /(\{\{[ \t]*)((?:[^{}|\n"'[]|\[(?:'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")?)+?)(?=[ \t]*(?:\}\}|\|))/g

/** The parts of a template: `isMarked` is true for each path among `paths`. Together they are the whole template. */
export function splitByPaths(template: string, paths: ReadonlySet<string>): { text: string; isMarked: boolean }[] {
  const parts: { text: string; isMarked: boolean }[] = []
  let from = 0
  for (const { index, 1: open = '', 2: path = '' } of template.matchAll(placeholder)) {
    if (!paths.has(path)) continue
    const at = index + open.length
    parts.push({ text: template.slice(from, at), isMarked: false }, { text: path, isMarked: true })
    from = at + path.length
  }
  return [...parts, { text: template.slice(from), isMarked: false }]
}

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
export function choosePaths<Path extends { readonly path: string }>(paths: readonly Path[], word: string): Path[] {
  const wanted = toPlainPath(word)
  const having = paths.filter(({ path }) => toPlainPath(path).includes(wanted))
  const begins = ({ path }: Path) => toPlainPath(path).startsWith(wanted)
  return [...having.filter(begins), ...having.filter((each) => !begins(each))]
}

/** The path without its quotes, so that `fields.sys` finds `fields['System.Title']`. */
function toPlainPath(path: string): string {
  const plain = path
    .toLowerCase()
    .replace(/\[["']/g, '.')
    .replace(/["']\]/g, '')
  return plain.replace(/^(?:payload)?\./, '')
}
