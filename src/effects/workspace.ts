// The folder of an agent: where its commands run, and two files that its operator writes.
import { mkdir, open } from 'node:fs/promises'
import { join } from 'node:path'

/** AGENTS.md: what the agent is told about itself. HEARTBEAT.md: what it looks at when nobody asked for anything. */
export type WorkspaceFile = 'AGENTS.md' | 'HEARTBEAT.md'

/** Bytes of such a file that are read. */
const maxBytes = 65_536

/** Makes the folder, with its parents, for the owner alone. A folder that cannot be made fails whoever runs in it. */
export async function prepareWorkspace(folder: string | undefined): Promise<void> {
  if (folder !== undefined) await mkdir(folder, { recursive: true, mode: 0o700 }).catch(() => undefined)
}

/** Undefined where the file is not there, or says nothing beside headings and empty list items. */
export async function readWorkspaceFile(folder: string | undefined, name: WorkspaceFile): Promise<string | undefined> {
  if (folder === undefined) return undefined
  try {
    const file = await open(join(folder, name), 'r')
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(maxBytes), 0, maxBytes, 0)
      const text = buffer.toString('utf8', 0, bytesRead).trim()
      return saysSomething(text) ? text : undefined
    } finally {
      await file.close()
    }
  } catch {
    return undefined
  }
}

function saysSomething(text: string): boolean {
  return text.split('\n').some((line) => line.trim() !== '' && !/^\s*(#+(\s.*)?|[-*+]\s*(\[[ x]?\]\s*)?)$/i.test(line))
}
