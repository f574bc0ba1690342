// What tells one state of a file from another without reading it.
import { realpathSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Input } from './read.ts'

/** What a write or an exchange changes: time, size, inode. Empty where nothing is. */
export function toStamp(path: string): string {
  try {
    const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
    return stats === undefined ? '' : `${stats.mtimeNs} ${stats.size} ${stats.ino}`
  } catch {
    return ''
  }
}

/** Whether the file is as it was when it was read. */
export function isAsRead({ file, mtimeNs, size }: Input): boolean {
  return toStamp(file).startsWith(`${mtimeNs} ${size} `)
}

/** Of a file without a byte in it. */
export function isEmpty(stamp: string): boolean {
  return stamp.split(' ')[1] === '0'
}

/** Links followed, where there is something. */
export function toRealPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return resolve(path)
  }
}
