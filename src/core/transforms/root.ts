// The boundary for transforms: every module is inside the transforms directory, which is <config dir>/hooks/transforms or is inside it. A link leads out of
// it only if the owner of the directory made it: see base/links.ts.
import { takeStart } from '../../base/text.ts'
import { realpath, stat } from 'node:fs/promises'
import { basename, dirname, extname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { explainUntrustedLink } from '../../base/links.ts'
import { Problem } from '../model/problem.ts'

/** Matches `hooks/transforms` at the beginning of a path: such a path is relative to the config directory. */
const ofConfigDir = /^(\.\/+)*hooks\/+transforms(\/+|$)/

export const moduleExtensions = ['.ts', '.mts', '.js', '.mjs', '.cjs'] as const

/** True for a path below the directory. Both are real paths. `hooks/transforms-evil` is not inside `hooks/transforms`. */
export function isInside(directory: string, path: string): boolean {
  return path.startsWith(directory.endsWith(sep) ? directory : directory + sep)
}

/**
 * The name of a module in messages, as its author knows it. `folder`: the name of the directory that the module must not leave.
 */
export function toModuleLabel(module: string, folder = 'transforms'): string {
  return `${folder}/${module.replace(/^(\.\/)+/, '')}`
}

/** The name in messages for a file inside the root. */
export function toFileLabel({ root, file, folder }: { root: string; file: string; folder?: string }): string {
  return toModuleLabel(relative(root, file).split(sep).join('/'), folder)
}

/**
 * The real path of `hooks.transformsDir`, or by default of the transforms root. A relative path starts at the transforms root, or at the
 * config directory if it begins with `hooks/transforms`. A directory that does not exist yet is not an error: each of its modules is
 * reported as missing. Throws `config-invalid` for a directory outside the transforms root, and for a symlink out of it that is not followed.
 */
export async function resolveTransformsRoot(
  configDir: string,
  { transformsDir }: { readonly transformsDir?: string | undefined },
): Promise<string> {
  const dir = await resolveRealPath(resolve(configDir))
  const base = join(dir, 'hooks', 'transforms')
  if (transformsDir !== undefined && (/[\0\\]/.test(transformsDir) || transformsDir.startsWith('~'))) {
    throw buildOutsideProblem('must be a plain path, without "~", "\\" or NUL')
  }
  const place = resolve(base, (transformsDir ?? '').replace(ofConfigDir, ''))
  if (place !== base && !isInside(base, place)) throw buildOutsideProblem('leads out of it')
  return followLinks(dir, { place, allowed: base })
}

/** The real path of a folder below the config directory. Throws `config-invalid` if a link on the way leads out of `allowed` and is not followed. */
export async function followLinks(
  dir: string,
  { place, allowed }: { place: string; allowed: string },
): Promise<string> {
  const root = await resolveRealPath(place)
  if (root === allowed || isInside(allowed, root)) return root
  const why = await explainUntrustedLink(dir, { path: place, real: root })
  if (why === undefined) return root
  throw new Problem('config-invalid', `${relative(dir, place).split(sep).join('/')} ${why}.`)
}

function buildOutsideProblem(why: string): Problem {
  return new Problem(
    'config-invalid',
    `hooks.transformsDir must stay inside hooks/transforms of the config directory: ${why}.`,
  )
}

/** Resolves a path to its real path. If it does not exist, the nearest existing directory above it is resolved. */
export async function resolveRealPath(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch (error) {
    const parent = dirname(path)
    if (!isMissing(error) || parent === path) throw error
    return join(await resolveRealPath(parent), basename(path))
  }
}

/**
 * The path of a module's file: its real path, or its path in the root if that is a link out of the root. Throws `config-invalid` for a path that
 * could leave the root, for a link that is not followed and for a file that is not a module. Throws `transform-missing` if the file does not
 * exist. `root` is a real path.
 */
export async function resolveModule(root: string, module: string): Promise<string> {
  const label = `hooks.mappings[].transform.module ${JSON.stringify(takeStart(module, 200))}`
  if (!isPlainModulePath(module)) {
    throw new Problem(
      'config-invalid',
      `${label} must be a relative path below the transforms directory, without "..", "~", ":", "\\" or "%".`,
    )
  }
  if (!moduleExtensions.some((extension) => extension === extname(module))) {
    throw new Problem('config-invalid', `${label} must end in one of ${moduleExtensions.join(' ')}.`)
  }
  const path = join(root, module)
  const file = await realpath(path).catch((error: unknown) => {
    if (!isMissing(error)) throw error
    throw new Problem('transform-missing', `${toModuleLabel(module)} does not exist.`, {
      frame: `looked for ${path}`,
      cause: error,
    })
  })
  const why = isInside(root, file) ? undefined : await explainUntrustedLink(root, { path, real: file })
  if (why !== undefined) throw new Problem('config-invalid', `${label}: ${toModuleLabel(module)} ${why}.`)
  if (!(await stat(file)).isFile()) throw new Problem('config-invalid', `${label} is not a file.`)
  return isInside(root, file) ? file : path
}

/** Stricter than the schema of the configuration, which allows a backslash or a percent sign inside of a path. */
function isPlainModulePath(module: string): boolean {
  if (module.trim() === '' || isAbsolute(module)) return false
  // a backslash is a separator on some systems; %2e and %2f become a dot and a slash where a path is decoded twice
  if (/[\\:\0%]/.test(module) || module.startsWith('~')) return false
  return !module.split('/').includes('..')
}

export function isMissing(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return code === 'ENOENT' || code === 'ENOTDIR'
}
