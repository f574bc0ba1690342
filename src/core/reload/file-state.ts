// Files on disk: what tells that one has changed, where it really is, and whether an author wrote it.
import { type BigIntStats, realpathSync, statSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { relative, resolve, sep } from 'node:path'
import { isInside } from '../transforms/root.ts'

/** The time, size and inode of a file, which change with every write or replacement. Empty if the file does not exist. */
export function readStamp(path: string): string {
  try {
    return toStamp(statSync(path, { bigint: true, throwIfNoEntry: false }))
  } catch {
    return ''
  }
}

/** The same, off the main thread: a mount may not answer. */
export async function readStampLater(path: string): Promise<string> {
  return toStamp(await stat(path, { bigint: true }).catch(() => undefined))
}

function toStamp(stats: BigIntStats | undefined): string {
  return stats === undefined ? '' : `${stats.mtimeNs} ${stats.size} ${stats.ino}`
}

/** Whether the stamp is that of an empty file. */
export function isEmpty(stamp: string): boolean {
  return stamp.split(' ')[1] === '0'
}

/** The real path if the file exists; otherwise the path itself. */
export function findRealPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return resolve(path)
  }
}

/** Whether a path is a file of an author: below the root, not in a package or a dot folder, and no backup copy of an editor. */
export function isSource(root: string, path: string): boolean {
  if (!isInside(root, path)) return false
  const parts = relative(root, path).split(sep)
  // files of types have no code, and "hookloom types" writes them while the gateway runs
  if (path.endsWith('.d.ts')) return false
  return !parts.some((part) => part === 'node_modules' || part.startsWith('.') || part.endsWith('~'))
}
