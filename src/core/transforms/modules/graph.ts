// Resolves and loads the import graph of a module. An import may reach files of the root, packages that are installed there, the packages of
// `provided.ts`, and Node's built-in modules.
import { takeStart } from '../../../base/text.ts'
import { realpath } from 'node:fs/promises'
import { isBuiltin } from 'node:module'
import { basename, dirname, extname, join, resolve } from 'node:path'
import type { OnLoadResult, OnResolveResult, PartialMessage, Plugin } from 'esbuild'
import type { Trim } from './barrels.ts'
import { createManifestCheck, isInPackage } from './manifests.ts'
import { buildProvidedSource, isOwn, isProvided } from './provided.ts'
import { readInside, disableSourceMap } from '../read.ts'
import type { BuildInput } from '../read.ts'
import { isInside, toFileLabel } from '../root.ts'
import { recordResolution, type ResolutionSnapshot } from './resolution-snapshot.ts'

const loadable = new Set(['.ts', '.mts', '.cts', '.tsx', '.js', '.mjs', '.cjs', '.jsx', '.json', '.txt'])
/** Marks a request of this plugin to the resolver, so that the plugin does not handle it again. */
const asked = Symbol('asked')

/** An unsaved text of a file, which is a real path. */
type Draft = { readonly file: string; readonly text: string }

/**
 * The plugin that resolves and loads, the files that it read, and a snapshot of the places where it looked for them. `entry` is the source
 * of the entry point, which is not a file. `folder` is the name of the root in messages. `draft` stands for the contents of its file.
 */
export function createGraph({
  root,
  entry,
  folder = 'transforms',
  trim,
  draft,
}: {
  root: string
  entry: string
  folder?: string | undefined
  trim?: Trim | undefined
  draft?: Draft | undefined
}): { plugin: Plugin; inputs: BuildInput[]; snapshot: ResolutionSnapshot } {
  const inputs: BuildInput[] = []
  const { snapshot, record } = recordResolution(root)
  const checkManifests = createManifestCheck(root, folder)
  const plugin: Plugin = {
    name: 'hookloom',
    setup(build) {
      build.onResolve(
        { filter: /.*/ },
        async ({ path, kind, namespace, importer, resolveDir, pluginData, ...rest }) => {
          if (pluginData === asked) return undefined
          if (kind === 'entry-point') return { path, namespace: 'entry' }
          if (isOwn(path)) return { path, namespace: 'provided' }
          if (isBuiltin(path)) return { path, namespace: 'builtin' }
          await record(path, resolveDir)
          const unreadable = await checkManifests(path, resolveDir)
          if (unreadable !== undefined) return buildFailure(unreadable)
          // a package has hundreds of imports, and resolving each here costs milliseconds: the file is checked when it is loaded
          if (isInPackage(root, resolveDir) && isPackagePath(path)) return undefined
          const found = await build.resolve(path, {
            kind,
            namespace,
            importer,
            resolveDir,
            ...(rest.with === undefined ? {} : { with: rest.with }),
            pluginData: asked,
          })
          // a package that is installed next to the transforms has priority
          const isInstalled = found.errors.length === 0 && isInside(root, found.path)
          if (isProvided(path) && !isInstalled) return { path, namespace: 'provided' }
          // esbuild reports an import that is not found, because it knows which imports may fail
          if (found.errors.length > 0) return undefined
          if (found.external || found.namespace !== 'file')
            return failToResolve(path, `is not a file of the ${folder} directory`)
          if (extname(found.path) === '.node') return failToResolve(path, addonReason)
          if (isInside(root, found.path)) return undefined
          const link = await findLink(root, { path, resolveDir, target: found.path })
          return link === undefined ? failToResolve(path, explainOutside(path, folder)) : { path: link }
        },
      )
      build.onLoad({ filter: /.*/, namespace: 'entry' }, () => ({ contents: entry, loader: 'js', resolveDir: root }))
      build.onLoad({ filter: /.*/, namespace: 'builtin' }, ({ path }) => ({
        contents: `module.exports = process.getBuiltinModule(${JSON.stringify(path)})`,
        loader: 'js',
      }))
      build.onLoad({ filter: /.*/, namespace: 'provided' }, async ({ path }) => ({
        contents: await buildProvidedSource(path),
        loader: 'js',
      }))
      build.onLoad({ filter: /.*/, namespace: 'file' }, async ({ path }): Promise<OnLoadResult> => {
        if (!isInside(root, path))
          return failToResolve(findPackageName(path), explainOutside(findPackageName(path), folder))
        if (extname(path) === '.node') return failToResolve(basename(path), addonReason)
        if (!loadable.has(extname(path))) return buildFailure(`Files of the type "${extname(path)}" cannot be imported`)
        try {
          const { contents: saved, input } = await readInside(root, path)
          inputs.push(input)
          const contents = input.file === draft?.file ? Buffer.from(draft.text) : saved
          const trimmed = trim?.findContents(input)
          if (trimmed !== undefined) return { contents: trimmed, loader: 'js', resolveDir: dirname(path) }
          const isData = /\.(json|txt)$/.test(path)
          const text = isData ? contents : disableSourceMap(contents)
          return { contents: text, loader: 'default', resolveDir: dirname(path) }
        } catch (error) {
          const label = toFileLabel({ root, file: path, folder })
          return buildFailure(`${label} ${error instanceof Error ? error.message : 'cannot be read'}`)
        }
      })
    },
  }
  return { plugin, inputs, snapshot }
}

/**
 * The path inside the root by which an import reaches a file outside: its imports are resolved there, because a manager of dotfiles may keep each file in a
 * folder of its own. Undefined if there is none, as for a path with too many `..` and for a package. The link is checked when the file is loaded.
 */
async function findLink(
  root: string,
  { path, resolveDir, target }: { path: string; resolveDir: string; target: string },
): Promise<string | undefined> {
  if (!/^\.{1,2}\//.test(path)) return undefined
  const named = resolve(resolveDir, path)
  const stem = named.replace(/\.[cm]?jsx?$/, '')
  for (const start of [named, stem, join(named, 'index')]) {
    for (const extension of ['', ...loadable]) {
      const link = start + extension
      if (isInside(root, link) && (await realpath(link).catch(() => '')) === target) return link
    }
  }
  return undefined
}

const addonReason = 'is a native addon, which a transform cannot load'

/** Whether an import is relative, or names a package that is not provided. esbuild resolves it to a file or reports an error. */
function isPackagePath(path: string): boolean {
  return !isProvided(path) && !/^[#/\\]|:/.test(path)
}

/** The package name of a file; the path if the file is in no package. */
function findPackageName(path: string): string {
  return /.*[/\\]node_modules[/\\]((?:@[^/\\]+[/\\])?[^/\\]+)/.exec(path)?.[1]?.replace('\\', '/') ?? path
}

function explainOutside(path: string, folder: string): string {
  const isPackage = !/^[./]/.test(path)
  return isPackage
    ? `is not installed next to the ${folder}: only packages in their own node_modules are bundled`
    : `is outside the ${folder} directory`
}

function failToResolve(path: string, why: string): OnResolveResult {
  return buildFailure(`"${takeStart(path, 200)}" ${why}`)
}

/** An error without the name of the plugin, which esbuild would put before every message. */
function buildFailure(text: string): { errors: PartialMessage[]; pluginName: string } {
  return { errors: [{ text, pluginName: '' }], pluginName: '' }
}
