// Finds the place in the author's source where an exception was thrown, from a stack in the bundle.
import { takeStart } from '../../../base/text.ts'
import { SourceMap } from 'node:module'

/** A position in a source file. The path is relative to the root; line and column begin at 1. `excerpt` is a small code frame. */
type SourcePosition = {
  readonly file: string
  readonly line: number
  readonly column: number
  readonly excerpt: string
}
/** The innermost position of a stack in a source file of the bundle; undefined if there is none. */
export type Locate = (stack: string) => SourcePosition | undefined

const framesRead = 50
const widthOfLine = 160

/** `file` is the name under which the bundle was evaluated. The map is parsed when it is first needed. */
export function createLocate({ file, map }: { file: string; map: string }): Locate {
  let parsed: SourceMap | undefined
  return (stack) => {
    for (const generated of readPositions(stack, file)) {
      parsed ??= new SourceMap(JSON.parse(map))
      const entry = parsed.findEntry(generated.line - 1, generated.column - 1)
      if (!('originalLine' in entry) || /^(entry|builtin|provided):/.test(entry.originalSource)) continue
      const { originalSource, originalLine, originalColumn } = entry
      const { sources, sourcesContent } = parsed.payload
      const text = sourcesContent[sources.indexOf(originalSource)] ?? ''
      const position = { file: originalSource, line: originalLine + 1, column: originalColumn + 1 }
      return { ...position, excerpt: formatExcerpt(text, position) }
    }
    return undefined
  }
}

function readPositions(stack: string, file: string): { line: number; column: number }[] {
  // the message comes before the frames, may be huge, and may look like frames, so only the last lines are read
  const lines = stack.slice(-20_000).split('\n').slice(-framesRead)
  return lines.flatMap((frame) => {
    const at = /^\s+at /.test(frame) ? frame.lastIndexOf(`${file}:`) : -1
    const [, line, column] = at < 0 ? [] : (/^(\d+):(\d+)/.exec(frame.slice(at + file.length + 1)) ?? [])
    return line === undefined || column === undefined ? [] : [{ line: Number(line), column: Number(column) }]
  })
}

function formatExcerpt(text: string, position: { line: number; column: number }): string {
  const lines = text.split(/\r?\n/)
  const first = Math.max(1, position.line - 1)
  const last = Math.min(lines.length, position.line + 1)
  const width = String(last).length
  const rows: string[] = []
  for (let line = first; line <= last; line++) {
    const mark = line === position.line ? '>' : ' '
    rows.push(`${mark} ${String(line).padStart(width)} | ${takeStart(lines[line - 1] ?? '', widthOfLine)}`)
    if (line === position.line && position.column <= widthOfLine) {
      rows.push(`  ${' '.repeat(width)} | ${' '.repeat(position.column - 1)}^`)
    }
  }
  return rows.join('\n')
}
