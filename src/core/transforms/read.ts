// Reads files inside a root, and files behind links out of it that are followed. The file that was checked is the file that is read, even if a symlink is
// swapped in between. A hard link to an outside file looks like any other file, and is read.
import { constants, statSync } from 'node:fs'
import { open, readlink, realpath, stat } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { dirname, sep } from 'node:path'
import { explainUntrustedLink } from '../../base/links.ts'
import { isInside } from './root.ts'

/** One file of the import graph of a module, with its state when it was read. */
export type BuildInput = {
  readonly file: string
  readonly mtimeNs: bigint
  /** When the file with this name got its current bytes, by a write or a rename. */
  readonly ctimeNs: bigint
  readonly size: bigint
}

/** A text that differs between two states of a file. The change time is part of it, because some tools keep the time of the last write. */
export function toInputStamp({ mtimeNs, ctimeNs, size }: Pick<BuildInput, 'mtimeNs' | 'ctimeNs' | 'size'>): string {
  return `${mtimeNs} ${ctimeNs} ${size}`
}

/**
 * Whether the file no longer has the state in which it was read. Files of packages count as unchanged: there are thousands of them, and
 * the next build checks them.
 */
export function hasChanged({ file, mtimeNs, size }: BuildInput): boolean {
  if (file.includes(`${sep}node_modules${sep}`)) return false
  try {
    const stats = statSync(file, { bigint: true, throwIfNoEntry: false })
    return stats?.mtimeNs !== mtimeNs || stats.size !== size
  } catch {
    return true
  }
}

/** The size limit of a file in bytes: ten times the largest files in packages. */
const largestFile = 32_000_000

/**
 * The contents of a file inside the root, without a byte order mark. The input has the real path of the file, or the path of a link out of the root. Throws the error of the system, or an Error whose message continues a
 * sentence that begins with the name of the file. `root` is a real path; `largest` is in bytes.
 */
export async function readInside(
  root: string,
  path: string,
  { largest = largestFile }: { largest?: number } = {},
): Promise<{ contents: Uint8Array; input: BuildInput }> {
  const file = await realpath(path)
  if (!isInside(root, file)) await requireTrustedLink(root, { path, real: file })
  // O_NONBLOCK: otherwise, opening a FIFO would wait for its writer
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const { mtimeNs, ctimeNs, size, dev, ino, ...facts } = await handle.stat({ bigint: true })
    if ((Number(facts.mode) & constants.S_IFMT) !== constants.S_IFREG) throw buildIrregularError()
    if (size > largest) throw buildTooLargeError(size, largest)
    const opened = await resolveOpenPath(handle, file, { dev, ino })
    // a file that an editor replaces while it is read is "deleted"
    const isChecked = isInside(root, file) ? isInside(root, opened) : opened.replace(/ \(deleted\)$/, '') === file
    if (!isChecked) throw buildOutsideError()
    const contents = stripBom(await handle.readFile())
    return { contents, input: { file: isInside(root, file) ? file : path, mtimeNs, ctimeNs, size } }
  } finally {
    await handle.close()
  }
}

/**
 * Throws the same errors as `readInside`, but does not read the file. Does nothing if the file does not exist. It is for files that esbuild
 * reads without asking a plugin: a FIFO would block esbuild, and a device never ends.
 */
export async function checkReadable(root: string, path: string): Promise<void> {
  const facts = await stat(path).catch(() => undefined)
  if (facts === undefined) return
  if (!facts.isFile()) throw buildIrregularError()
  const [file, folder] = await Promise.all([realpath(path), realpath(dirname(path))])
  // a link to a whole folder is checked where the files in it are resolved
  if (dirname(file) !== folder && !isInside(root, file)) await requireTrustedLink(root, { path, real: file })
  if (facts.size > largestFile) throw buildTooLargeError(facts.size, largestFile)
}

async function requireTrustedLink(root: string, link: { path: string; real: string }): Promise<void> {
  if (!isInside(root, link.path)) throw buildOutsideError()
  const why = await explainUntrustedLink(root, link)
  if (why !== undefined) throw new Error(why)
}

function buildIrregularError(): Error {
  return new Error('is not a regular file')
}

function buildTooLargeError(size: bigint | number, largest: number): Error {
  return new Error(`has ${size} bytes; the limit is ${largest}`)
}

function buildOutsideError(): Error {
  return new Error('is outside the transforms directory')
}

/** The path of an open file, which Linux shows. On other systems the path is resolved again, and must still be the same file. */
async function resolveOpenPath(
  handle: FileHandle,
  file: string,
  opened: { dev: bigint; ino: bigint },
): Promise<string> {
  if (process.platform === 'linux') return readlink(`/proc/self/fd/${handle.fd}`)
  const again = await realpath(file)
  const { dev, ino } = await stat(again, { bigint: true })
  if (dev !== opened.dev || ino !== opened.ino) throw new Error('changed while it was read')
  return again
}

function stripBom(bytes: Uint8Array): Uint8Array {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes
}

const sourceMapComment = /\/[/*][#@] sourceMappingURL=/

/** esbuild uses the last source map comment. This one is invalid, so esbuild prints a warning and uses no map. */
const invalidSourceMap = '\n//# sourceMappingURL=data:application/json;base64,!'

/**
 * Keeps esbuild from reading the source map of a program. esbuild reads the file that the comment names without asking a plugin, even a FIFO or
 * a file outside the transforms directory. The comment itself is kept, because the same characters may be text of the program.
 */
export function disableSourceMap(contents: Uint8Array): Uint8Array {
  const bytes = Buffer.from(contents.buffer, contents.byteOffset, contents.byteLength)
  if (!bytes.includes(' sourceMappingURL=') || !sourceMapComment.test(bytes.toString('latin1'))) return contents
  return Buffer.concat([bytes, Buffer.from(invalidSourceMap)])
}
