import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { findErrorCode } from '../../base/exceptions.ts'
import type { Inodes } from './operations.ts'

/** The page size of a new file. Most rows have some hundred bytes, and a commit writes each page that it changes as a whole. */
export const pageBytes = 2_048

/** The last folder and the name of a file: the part of its path that messages may show. */
export function describeFile(file: string): string {
  return join(basename(dirname(file)), basename(file))
}

/**
 * The file to which links lead, even if it is missing: SQLite creates it there. The lock is next to this file, so that a database has one lock, whatever
 * names it has. Returns the path itself if it cannot be read.
 */
export function findRealFile(file: string): string {
  try {
    return realpathSync(file)
  } catch (error) {
    if (findErrorCode(error) !== 'ENOENT') return file
  }
  try {
    return findRealFile(resolve(realpathSync(dirname(file)), readlinkSync(file)))
  } catch {
    return file
  }
}

/** The file that the owner of a database has locked. */
export function toLockFile(file: string): string {
  return `${file}.lock`
}

export function readInodes(file: string): Inodes {
  return { database: readInode(file), lock: readInode(toLockFile(file)) }
}

/** The inode of a file; undefined if there is none. A file that replaces another has another inode. */
export function readInode(file: string): number | undefined {
  return statOf(file)?.ino
}

/** Creates a file that only its owner can read, unless it exists. SQLite gives the WAL the same mode. */
export function ensurePrivate(file: string): void {
  try {
    // wx: opening and closing an existing file would drop the POSIX locks that this process has on it
    closeSync(openSync(file, 'wx', 0o600))
  } catch (error) {
    if (findErrorCode(error) !== 'EEXIST') throw error
  }
}

/** The size of a file in bytes; 0 if there is none. */
export function readSize(file: string): number {
  return statOf(file)?.size ?? 0
}

/** Throws unless the disk has room for a few more batches. */
export function probeDiskSpace(file: string): void {
  const probe = `${file}.probe`
  try {
    rmSync(probe, { force: true })
    // wx: never follows a link
    writeFileSync(probe, new Uint8Array(256 * 1024), { flush: true, flag: 'wx', mode: 0o600 })
  } finally {
    rmSync(probe, { force: true })
  }
}

function statOf(file: string) {
  try {
    return statSync(file)
  } catch {
    // the later attempt to open the file reports the reason
    return undefined
  }
}

/** Makes a folder that only its owner can read, and its name durable: a flushed file in a folder without a name is lost with the power. */
export function makeFolder(folder: string): void {
  const first = mkdirSync(folder, { recursive: true, mode: 0o700 })
  if (first === undefined) return
  try {
    for (let made = folder; made.length >= first.length; made = dirname(made)) syncFolder(dirname(made))
  } catch {
    // some file systems flush no folder, and a folder above may be unreadable
  }
}

/** Makes new names in a folder durable. Windows cannot open a folder, and needs no such step. */
export function syncFolder(folder: string): void {
  if (process.platform === 'win32') return
  const handle = openSync(folder, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
