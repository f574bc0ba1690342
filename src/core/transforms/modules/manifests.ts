// Checks the package.json files that esbuild reads without asking a plugin: a FIFO with that name would block esbuild.
import { dirname, join, relative, resolve, sep } from 'node:path'
import { checkReadable } from '../read.ts'
import { isInside, toFileLabel } from '../root.ts'

/** Checks each package.json file that esbuild may read for an import. Resolves with the first fault; undefined if there is none. */
type CheckManifests = (path: string, resolveDir: string) => Promise<string | undefined>

/** Checks each folder once. The `exports` of a package may lead to a folder that no import names: only the time limit of the build covers that. */
export function createManifestCheck(root: string, folder: string): CheckManifests {
  const seen = new Map<string, Promise<string | undefined>>()

  async function checkManifest(file: string): Promise<string | undefined> {
    try {
      await checkReadable(root, file)
      return undefined
    } catch (error) {
      return `${toFileLabel({ root, file, folder })} ${error instanceof Error ? error.message : 'cannot be read'}`
    }
  }

  return async (path, resolveDir) => {
    const folders = new Set(listFolders(root, path, resolveDir))
    const found = await Promise.all(
      [...folders].map((at) => {
        const checking = seen.get(at) ?? checkManifest(join(at, 'package.json'))
        seen.set(at, checking)
        return checking
      }),
    )
    return found.find((why) => why !== undefined)
  }
}

function listFolders(root: string, path: string, resolveDir: string): string[] {
  const above = listFoldersUpTo(root, resolveDir)
  if (/^\.{0,2}\//.test(path) || path === '.' || path === '..') {
    return [...above, ...listFoldersUpTo(root, resolve(resolveDir, path))]
  }
  const inPackages = above.flatMap((at) => {
    const packages = join(at, 'node_modules')
    return listFoldersUpTo(packages, join(packages, path))
  })
  return [...above, ...inPackages]
}

/** Whether a folder belongs to a package that is installed below the root. */
export function isInPackage(root: string, folder: string): boolean {
  return relative(root, folder).split(sep).includes('node_modules')
}

/** A folder and its parents up to the root; an empty list for a folder outside of the root. */
export function listFoldersUpTo(root: string, from: string): string[] {
  const folders: string[] = []
  for (let at = from; at === root || isInside(root, at); at = dirname(at)) folders.push(at)
  return folders
}
