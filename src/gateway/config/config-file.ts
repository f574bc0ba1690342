// Writes the files of the configuration completely or not at all. Keeps every comment of an edited hookloom.jsonc.
import { realpath } from 'node:fs/promises'
import { dirname } from 'node:path'
import { applyEdits, findNodeAtLocation, type JSONPath, modify, parseTree } from 'jsonc-parser'
import { findErrorCode } from '../../base/exceptions.ts'
import { createFile, replaceFile } from '../../base/files.ts'
import { Problem } from '../../core/model/problem.ts'
import { configFile } from './text.ts'
import { parseJsonc } from './jsonc.ts'

/**
 * The text with the value at the path set, or removed if it is undefined. Index -1 appends to an array. The rest of the text
 * does not change, including comments and trailing commas. Throws `config-invalid` for a text that does not parse.
 */
export function editConfig(text: string, path: JSONPath, value: unknown): string {
  const { problems } = parseJsonc(text, configFile)
  if (problems.length > 0) {
    throw new Problem('config-invalid', `${configFile} does not parse, so it was not changed`, {
      frame: problems.join('\n'),
    })
  }
  const mark = text.startsWith('\uFEFF') ? '\uFEFF' : ''
  const source = text.slice(mark.length)
  const eol = source.includes('\r\n') ? '\r\n' : '\n'
  const indent = /^([ \t]+)\S/m.exec(source)?.[1] ?? '  '
  const formattingOptions = { insertSpaces: !indent.startsWith('\t'), tabSize: indent.length, eol }
  const edited = applyEdits(source, modify(source, path, value, { formattingOptions }))
  if (parseJsonc(edited, configFile).problems.length > 0) {
    throw new Problem('config-invalid', `${configFile} would not parse after this change, so it was not changed`)
  }
  return mark + edited
}

/** The text without the key at the path, if its value is an empty list. Every comment stays: with one in the list, so does the list. */
export function removeEmptyList(text: string, path: JSONPath): string {
  // as long as the text: a byte order mark is no JSON
  const source = text.replace(/^\uFEFF/, ' ')
  const tree = parseTree(source, [], { allowTrailingComma: true })
  const list = tree && findNodeAtLocation(tree, path)
  const property = list?.parent
  if (property === undefined || !/^\[\s*\]$/.test(source.slice(list?.offset).slice(0, list?.length))) return text
  const siblings = property.parent?.children ?? []
  const before = siblings[siblings.indexOf(property) - 1]
  let start = property.offset
  let end = start + property.length
  const comma = findComma(source, end) ?? (before && findComma(source, before.offset + before.length))
  if (comma === end) end += 1
  start -= /[ \t]*$/.exec(source.slice(0, start))?.[0].length ?? 0
  const isWholeLine = start === 0 || source[start - 1] === '\n'
  if (isWholeLine) end += /^[ \t]*\r?\n/.exec(source.slice(end))?.[0].length ?? 0
  const edits = [{ offset: start, length: end - start, content: '' }]
  if (comma !== undefined && (comma < start || comma >= end)) edits.push({ offset: comma, length: 1, content: '' })
  return applyEdits(text, edits)
}

/** The place of a comma that follows after nothing but blanks and comments. */
function findComma(text: string, from: number): number | undefined {
  const [skipped] = /^(?:\s|\/\/.*|\/\*[^]*?\*\/)*/.exec(text.slice(from)) ?? ['']
  const at = from + skipped.length
  return text[at] === ',' ? at : undefined
}

/** `replaceFile`, but throws `config-invalid` if the system does not allow the write. A symlink stays, and its target is replaced. */
export async function writeFileAtomic(file: string, text: string | Uint8Array, mode: number): Promise<void> {
  await reportUnwritable(dirname(file), async () => replaceFile(await realpath(file).catch(() => file), text, mode))
}

/** `createFile`, but throws `config-invalid` if the system does not allow the write. */
export function createFileAtomic(file: string, text: string, mode: number): Promise<boolean> {
  return reportUnwritable(dirname(file), () => createFile(file, text, mode))
}

const unwritable: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  ENOTDIR: 'a part of its path is a file',
  EEXIST: 'a file has its name',
}
/** What to do, apart from choosing another folder. */
const remedies: Readonly<Record<string, string>> = {
  EACCES: 'Change its owner or its mode',
  EPERM: 'Change its owner or its mode',
  ENOSPC: 'Free some space',
  EDQUOT: 'Free some space',
}

/** Runs code that writes below a folder of the configuration. Throws `config-invalid` if the system does not allow the write. */
export async function reportUnwritable<Result>(folder: string, write: () => Promise<Result>): Promise<Result> {
  try {
    return await write()
  } catch (error) {
    const code = findErrorCode(error) ?? ''
    const why = unwritable[code]
    if (why === undefined) throw error
    const remedy = remedies[code]
    const next = `${remedy === undefined ? 'Choose' : `${remedy}, or choose`} another folder with --config-dir.`
    throw new Problem('config-invalid', `${folder} cannot be written: ${why} (${code}). ${next}`, { cause: error })
  }
}
