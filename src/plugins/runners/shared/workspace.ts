// The folder of an agent: its commands run there, and the operator may keep two files there.
import { constants } from 'node:fs'
import { mkdir, mkdtemp, open, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, sep } from 'node:path'
import type { Log } from '../../../base/log.ts'
import { findErrorCode } from '../../../base/exceptions.ts'

/** AGENTS.md is added to the system text. HEARTBEAT.md lists the tasks of a heartbeat. */
type WorkspaceFile = 'AGENTS.md' | 'HEARTBEAT.md'

/** The maximum number of bytes of such a file that are read. */
const maxBytes = 65_536

/** Creates the folder and its parents, readable by the owner only. A failure is ignored here: the command in the folder then fails. */
export async function prepareWorkspace(folder: string | undefined): Promise<void> {
  if (folder !== undefined) await mkdir(folder, { recursive: true, mode: 0o700 }).catch(() => undefined)
}

/** Runs the work in the workspace; without one, in an empty private folder that is removed afterwards. */
export async function runInWorkspace<T>(
  workspace: string | undefined,
  work: (folder: string) => Promise<T>,
): Promise<T> {
  if (workspace !== undefined) return await work(workspace)
  const folder = await mkdtemp(join(tmpdir(), 'hookloom-run-'))
  try {
    return await work(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

// an agent may write in its folder: a link must not make the gateway read its own files (/proc/self/environ), and a pipe must not block it
const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** `refused`: one sentence about a file that exists but is not read. Both are undefined if the file does not exist or is empty. */
type WorkspaceText = { readonly text?: string; readonly refused?: string }

/**
 * A file with only headings and empty list items counts as empty. A link that leads out of the folder, and anything that
 * is not a regular file, is refused.
 */
export async function readWorkspaceFile(folder: string | undefined, name: WorkspaceFile): Promise<WorkspaceText> {
  if (folder === undefined) return {}
  const refuse = (why: string) => ({ refused: `${join(folder, name)} is not read: ${why}` })
  try {
    // most workspaces have no such file, and then this is the only access to the disk
    const path = await realpath(join(folder, name))
    if (!path.startsWith((await realpath(folder)) + sep)) {
      return refuse('it is a link that leads out of the workspace. Put the file itself there.')
    }
    const file = await open(path, flags)
    try {
      if (!(await file.stat()).isFile()) return refuse('it is not a regular file. Replace it with a file.')
      const { buffer, bytesRead } = await file.read(Buffer.alloc(maxBytes), 0, maxBytes, 0)
      const text = buffer.toString('utf8', 0, bytesRead).trim()
      return hasContent(text) ? { text } : {}
    } finally {
      await file.close()
    }
  } catch (error) {
    const code = findErrorCode(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return {}
    return refuse(`the system reports ${code ?? 'an error'}. Make it readable for the user of the gateway.`)
  }
}

/** Returns the text of the file; undefined if the file is empty or cannot be read. */
export type WorkspaceReader = (folder: string | undefined, name: WorkspaceFile) => Promise<string | undefined>

/** A reader for turns. It logs a refused file once, and again only if a read in between was not refused. */
export function createWorkspaceReader(log: Pick<Log, 'warn'>): WorkspaceReader {
  const warned = new Set<string>()
  return async (folder, name) => {
    const { text, refused } = await readWorkspaceFile(folder, name)
    const file = join(folder ?? '', name)
    if (refused === undefined) warned.delete(file)
    else if (!warned.has(file)) {
      warned.add(file)
      log.warn({}, refused)
    }
    return text
  }
}

function hasContent(text: string): boolean {
  return text.split('\n').some((line) => line.trim() !== '' && !/^\s*(#+(\s.*)?|[-*+]\s*(\[[ x]?\]\s*)?)$/i.test(line))
}
