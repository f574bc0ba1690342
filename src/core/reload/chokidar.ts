// What chokidar reports of the file system.
import { statSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import type { ChokidarOptions, FSWatcher } from 'chokidar'

export async function openChokidar(path: string, options: ChokidarOptions): Promise<FSWatcher> {
  const { watch } = await import('chokidar')
  return watch(path, options)
}

/** The path that changed, from a `raw` event of chokidar. */
export function resolveRawPath(watched: string, name: string): string {
  // a watched file reports its own name; a watched directory reports the name of the entry
  return basename(watched) === name && statSync(watched, { throwIfNoEntry: false })?.isDirectory() !== true
    ? watched
    : resolve(watched, name)
}

export function isOutOfWatches(error: unknown): error is Error {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return code === 'EMFILE' || code === 'ENOSPC'
}
