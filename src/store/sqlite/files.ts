import { closeSync, openSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** Folder and name of a store's file: what may be shown of it. */
export function toShownName(file: string): string {
  return join(basename(dirname(file)), basename(file))
}

/** What identifies a file behind its name; undefined when nothing is there. */
export function toInode(file: string): number | undefined {
  return statOf(file)?.ino
}

/** Makes a file that its owner alone may read, where there is none; SQLite gives its mode to the files beside it. */
export function ensurePrivate(file: string): void {
  try {
    // wx: to open and close a file that is there would drop the locks that this process holds on it
    closeSync(openSync(file, 'wx', 0o600))
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  }
}

/** Bytes of a file; 0 when nothing is there. */
export function toSize(file: string): number {
  return statOf(file)?.size ?? 0
}

/** Throws unless there is room beside the file for some more batches. */
export function probeRoom(file: string): void {
  const probe = `${file}.probe`
  try {
    writeFileSync(probe, new Uint8Array(256 * 1024), { flush: true })
  } finally {
    rmSync(probe, { force: true })
  }
}

function statOf(file: string) {
  try {
    return statSync(file)
  } catch {
    // whoever opens the file learns why it cannot be reached
    return undefined
  }
}
