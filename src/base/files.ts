// Writes files completely or not at all: after a power cut, a reader finds the old text or the new one.
import { randomUUID } from 'node:crypto'
import { constants, copyFile, link, mkdir, open, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { findErrorCode } from './exceptions.ts'

/** Mode of files that may hold a secret. */
export const privateMode = 0o600

/** Modes of modules and their folders. Only the owner may write them, because anyone who can write them can run code here. */
export const codeMode = 0o644
export const codeFolderMode = 0o755

/** Creates or replaces a file. A symlink in its place is replaced. The mode is exact and does not depend on the umask. The folder must exist. */
export function replaceFile(file: string, text: string | Uint8Array, mode: number): Promise<void> {
  return writeDraft(file, { text, mode, put: (draft) => rename(draft, file) })
}

/** Like `replaceFile`, but replaces nothing. Returns false if the name is taken, even by a symlink that leads nowhere. */
export async function createFile(file: string, text: string, mode: number): Promise<boolean> {
  let isNew = false
  const put = async (draft: string) => {
    isNew = await linkNew(draft, file)
    await rm(draft)
  }
  await writeDraft(file, { text, mode, put })
  return isNew
}

/**
 * Creates or replaces a file that only the owner may read, such as those in state/. A symlink in its place is replaced, so that it cannot lead the
 * write elsewhere. Creates the folder.
 */
export async function writeStateFile(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  await replaceFile(file, text, privateMode)
}

async function linkNew(draft: string, file: string): Promise<boolean> {
  // some file systems have no hard links: there, a power cut during the copy can leave a part of the text
  const create = () =>
    link(draft, file).catch((error: unknown) => {
      if (!['EPERM', 'ENOTSUP', 'ENOSYS'].includes(findErrorCode(error) ?? '')) throw error
      return copyFile(draft, file, constants.COPYFILE_EXCL)
    })
  try {
    await create()
    return true
  } catch (error) {
    if (findErrorCode(error) === 'EEXIST') return false
    throw error
  }
}

/** `put` gives the complete file its name. */
async function writeDraft(
  target: string,
  { text, mode, put }: { text: string | Uint8Array; mode: number; put: (draft: string) => Promise<void> },
): Promise<void> {
  const folder = dirname(target)
  const draft = join(folder, `.${basename(target)}.${randomUUID()}.tmp`)
  try {
    // created without permissions for others: nobody can open it before its mode is set
    const handle = await open(draft, 'wx', privateMode)
    try {
      await handle.writeFile(text)
      await handle.chmod(mode)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await put(draft)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
  await flushFolder(folder)
}

/** Makes new names in a folder durable. Windows cannot open a folder, and needs no such step. */
export async function flushFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
