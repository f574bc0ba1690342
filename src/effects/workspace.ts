// The folder of an agent: where its commands run, and two files that its operator writes.
import { constants } from 'node:fs'
import { mkdir, mkdtemp, open, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, sep } from 'node:path'
import type { Log } from '../model/log.ts'
import { toErrorCode } from '../base/exceptions.ts'

/** AGENTS.md: what the agent is warned about itself. HEARTBEAT.md: what it looks at when nobody asked for anything. */
export type WorkspaceFile = 'AGENTS.md' | 'HEARTBEAT.md'

/** Bytes of such a file that are read. */
const maxBytes = 65_536

/** Makes the folder, with its parents, for the owner alone. A folder that cannot be made fails whoever runs in it. */
export async function prepareWorkspace(folder: string | undefined): Promise<void> {
  if (folder !== undefined) await mkdir(folder, { recursive: true, mode: 0o700 }).catch(() => undefined)
}

/** Works there; without a workspace, in an empty folder that nobody else can read and that is gone afterwards. */
export async function inWorkspace<T>(workspace: string | undefined, work: (folder: string) => Promise<T>): Promise<T> {
  if (workspace !== undefined) return await work(workspace)
  const folder = await mkdtemp(join(tmpdir(), 'hookloom-run-'))
  try {
    return await work(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

// an agent may write in its folder: neither may it have what we may read (a link to /proc/self/environ), nor hold us up with a pipe
const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** `refused`: one sentence about a file that is there and is not read. Both are undefined where it is not there, or says nothing. */
export type WorkspaceText = { readonly text?: string; readonly refused?: string }

/**
 * A file that says nothing beside headings and empty list items counts as none. A link that leads out of the folder, and what
 * is no plain file, is refused.
 */
export async function readWorkspaceFile(folder: string | undefined, name: WorkspaceFile): Promise<WorkspaceText> {
  if (folder === undefined) return {}
  const refuse = (why: string) => ({ refused: `${join(folder, name)} is not read: ${why}` })
  try {
    const [inside, path] = await Promise.all([realpath(folder), realpath(join(folder, name))])
    if (!path.startsWith(inside + sep)) {
      return refuse('it is a link that leads out of the workspace. Put the file itself there.')
    }
    const file = await open(path, flags)
    try {
      if (!(await file.stat()).isFile()) return refuse('it is no plain file. Put one there.')
      const { buffer, bytesRead } = await file.read(Buffer.alloc(maxBytes), 0, maxBytes, 0)
      const text = buffer.toString('utf8', 0, bytesRead).trim()
      return saysSomething(text) ? { text } : {}
    } finally {
      await file.close()
    }
  } catch (error) {
    const code = toErrorCode(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return {}
    return refuse(`the system says ${code ?? 'no'}. Give it to the user of the gateway.`)
  }
}

/** Undefined where there is none that is read, or it says nothing. */
export type WorkspaceReader = (folder: string | undefined, name: WorkspaceFile) => Promise<string | undefined>

/** The same for turns: a file that is refused is warned once, and again after it was read in between. */
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

function saysSomething(text: string): boolean {
  return text.split('\n').some((line) => line.trim() !== '' && !/^\s*(#+(\s.*)?|[-*+]\s*(\[[ x]?\]\s*)?)$/i.test(line))
}
