// Files that are on disk when the call returns, also after a loss of power.
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

export const temporaryEnding = '.tmp'

/** Writes the bytes under a temporary name, and returns it. They get their name by `placeFile`. */
export async function writeTemporary(file: string, bytes: Uint8Array): Promise<string> {
  const temporary = `${file}${temporaryEnding}`
  const opened = await open(temporary, 'w', 0o600)
  try {
    await opened.writeFile(bytes)
    await opened.sync()
  } catch (error) {
    // a part of it would fill a full disk
    await rm(temporary, { force: true })
    throw error
  } finally {
    await opened.close()
  }
  return temporary
}

export async function placeFile(temporary: string, file: string): Promise<void> {
  await rename(temporary, file)
  await flushFolder(dirname(file))
}

export async function writeDurable(file: string, bytes: Uint8Array): Promise<void> {
  await placeFile(await writeTemporary(file, bytes), file)
}

/** Windows cannot open a folder, and needs no such step. */
export async function flushFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return
  const opened = await open(folder, 'r')
  try {
    await opened.sync()
  } finally {
    await opened.close()
  }
}
