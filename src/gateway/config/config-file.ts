// Writes the files of the configuration completely or not at all. Keeps every comment of an edited hookloom.jsonc.
import { realpath } from 'node:fs/promises'
import { dirname } from 'node:path'
import { applyEdits, type JSONPath, modify } from 'jsonc-parser'
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
