// The folders in a workspace that have the files of its runs: one folder a run. Names come from outside, and an agent may write in the workspace.
import { constants } from 'node:fs'
import { lstat, mkdir, open, readdir, realpath, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { toLine } from '../../../boundary/boundary.ts'
import { findErrorCode } from '../../../base/exceptions.ts'
import { privateMode } from '../../../base/files.ts'
import { replaceInvisible, takeStart } from '../../../base/text.ts'

const folderName = 'hookloom-files'
const keptMs = 7 * 86_400_000
const maxStemChars = 60

/** The folder of a run. Its names are paths below the workspace. */
export type RunFolder = {
  /** Writes a file that does not exist yet, and returns its path below the workspace. `name`: from `toFileName`. */
  write(name: string, bytes: Uint8Array): Promise<string>
}

/** Makes the empty folder of a run; what an earlier attempt left there is removed. Returns a sentence if the workspace must not be written. */
export async function openRunFolder(workspace: string, runId: string): Promise<RunFolder | string> {
  if (!isRunFolder(runId)) throw new RangeError('The id of a run must be the name of a folder')
  const parent = join(await realpath(workspace), folderName)
  await mkdir(parent, { mode: 0o700 }).catch(ignoreExisting)
  // an agent may have put a link there, which would lead the files elsewhere
  if (!(await lstat(parent)).isDirectory()) return `${folderName} of the workspace is not a folder`
  // an agent that commits all files of its workspace must not publish mails
  await writeFile(join(parent, '.gitignore'), '*\n', { flag: 'wx', mode: privateMode }).catch(ignoreExisting)
  const folder = join(parent, runId)
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { mode: 0o700 })
  return {
    async write(name, bytes) {
      if ((await realpath(folder)) !== folder) throw new Error('The folder of the run was replaced by a link.')
      const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
      const file = await open(join(folder, name), flags, privateMode)
      try {
        await file.writeFile(bytes)
      } finally {
        await file.close()
      }
      return `${folderName}/${runId}/${name}`
    },
  }
}

/** Removes the folders of runs in which nothing has changed for a week. A failure is ignored: the next call tries again. */
export async function removeOldRunFolders(workspace: string | undefined, now: number): Promise<void> {
  if (workspace === undefined) return
  try {
    const parent = join(await realpath(workspace), folderName)
    if (!(await lstat(parent)).isDirectory()) return
    for (const name of (await readdir(parent)).filter(isRunFolder)) {
      const folder = join(parent, name)
      const { mtimeMs } = await lstat(folder)
      if (mtimeMs < now - keptMs) await rm(folder, { recursive: true, force: true })
    }
  } catch {
    // most workspaces have no such folder
  }
}

function isRunFolder(name: string): boolean {
  return /^[\w-]{1,100}$/.test(name)
}

function ignoreExisting(error: unknown): void {
  if (findErrorCode(error) !== 'EEXIST') throw error
}

/**
 * A name for a file from outside: `2-invoice.pdf`. The number keeps names apart where case does not count, and no program takes such a name for an option, a
 * device, a hidden file or a file with orders to an agent, such as AGENTS.md. It has letters, digits and few signs, at most 200 bytes.
 */
export function toFileName(name: string, number: number): string {
  const plain = replaceInvisible(name.normalize('NFC').replaceAll(/\s+/g, ' '), () => '')
  const safe = plain.replaceAll(/[^\p{L}\p{M}\p{N} ._+@=,()-]/gu, '_')
  const [, stem = '', extension = ''] = /^(.*?)(\.[A-Za-z\d]{1,10})?$/.exec(safe.replaceAll(/^[ .]+|[ .]+$/g, '')) ?? []
  const whole = `${number}-${takeStart(stem, maxStemChars).replace(/[ .]+$/, '') || 'file'}${extension}`
  // a prompt must show the name as it is
  return toLine(whole) === whole ? whole : `${number}-file${extension}`
}
