// A workspace must not be a folder of the system. An agent may write in its workspace, and a service gets the right to.
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Config } from '../../model/config/config.ts'
import { type ConfigIssue, type ConfigPath, toIssue } from '../../core/model/issue.ts'

const roots =
  '/ /bin /boot /dev /etc /home /lib /lib64 /proc /run /sbin /sys /usr /usr/bin /usr/lib /usr/local /usr/sbin /usr/share /var /var/lib ' +
  '/Applications /Library /System /Users /Volumes /private'
const systemFolders = roots.split(' ')

/** `dir`: the config directory, where relative workspaces start. */
export function findWorkspaceIssues({ agents }: Config, dir: string): ConfigIssue[] {
  return [
    ...findIssue(agents.defaults.workspace, dir, ['agents', 'defaults', 'workspace']),
    ...agents.list.flatMap(({ workspace }, index) => findIssue(workspace, dir, ['agents', 'list', index, 'workspace'])),
  ]
}

function findIssue(workspace: string | undefined, dir: string, at: ConfigPath): ConfigIssue[] {
  const system = workspace === undefined ? undefined : findSystemFolder(resolve(dir, workspace))
  if (system === undefined) return []
  const fault = `is ${system}, a folder of the system, in which an agent could then write. Name a folder of its own, such as "agents/main".`
  return [toIssue(at, fault)]
}

/** The folder of the system that a path leads to, even through a link. */
function findSystemFolder(path: string): string | undefined {
  // a drive has no folder above it
  if (resolve(path, '..') === path) return path
  const id = readId(path)
  return systemFolders.find((folder) => folder === path || (id !== undefined && readId(folder) === id))
}

/** Two paths with one id lead to the same folder. Undefined if the path leads to none, or to one that cannot be read. */
function readId(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path, { bigint: true })
    return `${dev} ${ino}`
  } catch {
    return undefined
  }
}
