// Links that lead out of a directory, as Stow, home-manager and Nix make them. They are followed where nobody but the owner of the directory and root
// could have made them, or can change what is behind them.
import type { Stats } from 'node:fs'
import { lstat, readlink, stat } from 'node:fs/promises'
import { dirname, isAbsolute, join, parse, relative, sep } from 'node:path'
import { findErrorCode } from './exceptions.ts'

/** The limit of the system. */
const maxLinks = 40
const writableByOthers = 0o022
const sticky = 0o1000

/**
 * Why a link below a directory is not followed, as the end of a sentence that begins with its name; undefined if it may be followed. Each link on the way, each folder
 * outside of the directory and the target must belong to the owner of the directory or to root, and only they may write it. In a folder
 * with the sticky bit, such as /tmp or /nix/store, others cannot replace files. `directory` is a real path, `path` is below it, and `real` is its real
 * path.
 */
export async function explainUntrustedLink(
  directory: string,
  { path, real }: { path: string; real: string },
): Promise<string | undefined> {
  // other systems have no owners in this sense
  if (process.getuid === undefined) return 'is a link, which is not followed on this system'
  const { uid } = await stat(directory)
  const { target, visited } = await walk(directory, path)
  if (target !== real) return 'changed while it was read'
  const fault = visited.map((place) => findFault(place, [0, uid])).find((found) => found !== undefined)
  if (fault === undefined) return undefined
  const owners = uid === 0 ? 'root' : `root or the owner of ${directory} (user ${uid})`
  return `is a link to ${target}, which is not followed: ${fault}. Everything on the way must belong to ${owners}, and only the owner may write it`
}

/** `isLink`: the mode of a link means nothing. */
type Place = { readonly path: string; readonly isLink: boolean; readonly stats: Stats }

/** Follows a path as the system does. `visited`: its links, and the folders and the file outside of the directory, with the parents of the target. */
async function walk(directory: string, path: string): Promise<{ target: string; visited: Place[] }> {
  const visited: Place[] = []
  const left = relative(directory, path).split(sep)
  let at = directory
  for (let links = 0; left.length > 0;) {
    const next = join(at, left.shift() ?? '')
    const stats = await findStats(next)
    if (stats?.isSymbolicLink() !== true) {
      at = next
      continue
    }
    visited.push({ path: next, isLink: true, stats })
    links += 1
    if (links > maxLinks) throw Object.assign(new Error(`ELOOP: too many links, open '${path}'`), { code: 'ELOOP' })
    const target = await readlink(next)
    if (isAbsolute(target)) at = parse(target).root
    left.unshift(...target.split(sep).filter((part) => part !== ''))
    visited.push(...(await listFoldersUp(dirname(next), directory)))
  }
  return { target: at, visited: [...visited, ...(await listFoldersUp(at, directory))] }
}

/** A file or folder, and all folders above it up to the directory, or else to the root of the system. */
async function listFoldersUp(from: string, directory: string): Promise<Place[]> {
  const found: Place[] = []
  for (let path = from; path !== directory; path = dirname(path)) {
    if (path.startsWith(directory + sep)) continue
    const stats = await findStats(path)
    if (stats !== undefined) found.push({ path, isLink: false, stats })
    if (path === dirname(path)) break
  }
  return found
}

/** A part of the path that does not exist is no fault: its reader reports it. */
async function findStats(path: string): Promise<Stats | undefined> {
  return lstat(path).catch((error: unknown) => {
    if (findErrorCode(error) === 'ENOENT') return undefined
    throw error
  })
}

function findFault({ path, isLink, stats }: Place, owners: readonly number[]): string | undefined {
  if (!owners.includes(stats.uid)) return `${path} belongs to user ${stats.uid}`
  if (isLink || (stats.mode & writableByOthers) === 0) return undefined
  if (stats.isDirectory() && (stats.mode & sticky) !== 0) return undefined
  const mode = (stats.mode & 0o7777).toString(8).padStart(4, '0')
  return `others can write ${path} (mode ${mode}; "chmod go-w" ends that)`
}
