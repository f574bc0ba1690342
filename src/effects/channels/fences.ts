// Code fences, line by line, as far as one must know them to break a text in the middle of one (CommonMark, 4.5).

export type Fence = {
  readonly marks: string
  /** What opens it again in another piece, with its place and its language. */
  readonly opening: string
  readonly closing: string
}

/** Quotes and indentation or a bullet, the marks, the rest. The bounds keep what is repeated in every piece short. */
const opener = /^([ \t>]{0,40})(?:([-*+]|\d{1,9}[.)])([ \t]{1,4}))?(`{3,16}|~{3,16})(?!`|~)(.*)$/
const closer = /^[ \t>]*(`{3,}|~{3,})[ \t]*$/

/** The fence that is open after `line`, given the one that was open before it. */
export function fenceAfterLine(line: string, open: Fence | undefined): Fence | undefined {
  if (open !== undefined && !hasEnded(line, open)) return closes(line, open) ? undefined : open
  const [, before = '', bullet = '', gap = '', marks, info = ''] = opener.exec(line) ?? []
  // back ticks after back ticks are code in a line
  if (marks === undefined || (marks.startsWith('`') && info.includes('`'))) return undefined
  const place = `${before}${' '.repeat(bullet.length + gap.length)}`
  const language = /^\s*([^\s{]{0,40})/.exec(info)?.[1] ?? ''
  return { marks, opening: `${place}${marks}${language}`, closing: `${place}${marks}` }
}

export function fenceAfter(text: string, open: Fence | undefined): Fence | undefined {
  return text.split('\n').reduce((fence, line) => fenceAfterLine(line, fence), open)
}

export function closes(line: string, { marks }: Fence): boolean {
  return closer.exec(line)?.[1]?.startsWith(marks) === true
}

/** A fence in a quote ends with the quote. */
function hasEnded(line: string, { closing }: Fence): boolean {
  return closing.includes('>') && !/^[ \t]*>/.test(line)
}
