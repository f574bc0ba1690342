// Builds a module and all its imports into one text that imports nothing and can run in any thread.
import { takeStart } from '../../../base/text.ts'
import { createHash } from 'node:crypto'
import { access } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import type { BuildFailure, BuildOptions, Message, Metafile } from 'esbuild'
import { toErrorText } from '../../../base/exceptions.ts'
import { type Attempt, attemptWithin } from '../../../base/time.ts'
import { Problem } from '../../model/problem.ts'
import { findAlias } from './aliases.ts'
import type { Trim, Trimmer } from './barrels.ts'
import { createGraph } from './graph.ts'
import type { BuildInput } from '../read.ts'
import { toModuleLabel } from '../root.ts'
import type { ResolutionSnapshot } from './resolution-snapshot.ts'

/**
 * A built module. `code` is the body of an async function with jiti's parameters. It stores the exports in `module.exports.loaded`. `map`
 * is its source map as JSON, with sources relative to the root.
 */
export type Bundle = {
  readonly root: string
  readonly file: string
  /** The name of the root in messages, if it is not the transforms directory. */
  readonly folder?: string
  readonly code: string
  readonly map: string
  /** SHA-256 of the code and its map, hex: a changed comment makes a new version, so that errors name the lines of the new file. */
  readonly hash: string
  readonly inputs: readonly BuildInput[]
  readonly snapshot: ResolutionSnapshot
}

/**
 * Defines what replaces `export` and `import.meta`, which a function body cannot have. It also hides jiti's loaders from the code: all
 * imports are part of the bundle, and a computed `require()` must not reach files outside the root.
 */
const banner = [
  `'use strict'; const hookloom$export = ((module) => (loaded) => { module.exports = { loaded } })(module);`,
  'require = module = exports = jitiImport = jitiESMResolve = undefined;',
  `const hookloom$meta = { url: process.getBuiltinModule('url').pathToFileURL(__filename).href,`,
  'filename: __filename, dirname: __dirname };',
].join(' ')

export type ModuleFile = Pick<Bundle, 'root' | 'file' | 'folder'> & {
  /** The name of the package, if `file` is the folder of a package. */
  readonly packageName?: string
}

/** The time limit of a build. A large package takes a second. */
const buildMs = 15_000

/**
 * Builds the module at `file`, a real path inside `root`. Throws `transform-build-failed` if the code is invalid, with a code frame whose paths
 * are relative to the root, and if the build takes longer than `limitMs`. Throws `transform-missing` if there is no file. `draft`: an unsaved text of
 * the file, which is built in place of its contents.
 */
export async function buildModule(
  { root, file, folder, packageName }: ModuleFile,
  { limitMs = buildMs, trimmer, draft }: { limitMs?: number; trimmer?: Trimmer; draft?: string | undefined } = {},
): Promise<Bundle> {
  const name = findModuleName(root, file)
  const label = toModuleLabel(name, folder)
  const entry = `import * as loaded from ${JSON.stringify(packageName ?? `./${name}`)}\nhookloom$export(loaded)`
  const buildOnce = async (trim: Trim | undefined) => {
    const { plugin, inputs, snapshot } = createGraph({
      root,
      entry,
      folder,
      trim,
      draft: draft === undefined ? undefined : { file, text: draft },
    })
    const ended = await buildWithin(({ build }) => build({ ...buildOptions(root), plugins: [plugin] }), limitMs)
    return { ended, inputs, snapshot }
  }
  const trim = await trimmer?.buildTrim()
  let built = await buildOnce(trim)
  if (isLost(built.ended)) built = await buildOnce(trim)
  if (trim !== undefined && !isUsable(built, trim)) built = await buildOnce(undefined)
  const { ended, inputs, snapshot } = built
  if (ended.kind === 'late') throw buildLateProblem(label, limitMs)
  if (ended.kind === 'threw') throw await describeFailure(ended.thrown, { root, file, label })
  const { outputFiles, metafile } = ended.value
  trimmer?.learn(metafile, inputs)
  const text = (suffix: string) => outputFiles.find(({ path }) => path.endsWith(suffix))?.text ?? ''
  const code = text('.js')
  const map = text('.js.map')
  const hash = createHash('sha256').update(code).update(map).digest('hex')
  return { root, file, ...(folder === undefined ? {} : { folder }), code, map, hash, inputs, snapshot }
}

/** Whether the result of a trimmed build is final. A build that exceeded the limit is not repeated. */
function isUsable(
  { ended, inputs }: { ended: Attempt<{ metafile: Metafile }>; inputs: readonly BuildInput[] },
  trim: Trim,
): boolean {
  return ended.kind === 'late' || (ended.kind === 'ended' && trim.isUsable(ended.value.metafile, inputs))
}

function buildLateProblem(label: string, limitMs: number): Problem {
  return new Problem(
    'transform-build-failed',
    `${label} was not built within ${limitMs} ms. Does it import a file or a package.json that is a pipe or a device, or is on a disk that does not answer?`,
  )
}

async function describeFailure(
  thrown: unknown,
  { root, file, label }: { root: string; file: string; label: string },
): Promise<unknown> {
  if (!isBuildFailure(thrown)) {
    const detail = `${label} was not built, because esbuild does not run: ${toErrorText(thrown)}.`
    return new Problem('transform-build-failed', detail, { cause: thrown })
  }
  const { formatMessages } = await import('esbuild')
  try {
    await access(file)
  } catch (cause) {
    return new Problem('transform-missing', `${label} does not exist.`, { cause })
  }
  const errors = thrown.errors.slice(0, 5).map(hideOwnCode)
  const frames = await formatMessages(errors, { kind: 'error', terminalWidth: 120 })
  return new Problem('transform-build-failed', describeMessage(label, errors[0], root), {
    frame: frames
      .map((frame) => frame.trimEnd())
      .join('\n\n')
      .replaceAll(root + sep, ''),
    cause: thrown,
  })
}

/** The message without names and places of code that the gateway has put into the bundle: the author knows none of it. */
function hideOwnCode({ text, location, notes, ...message }: Message): Message {
  const own = /^(?:entry|builtin|provided):/
  const hide = (place: Message['location']) => (place !== null && own.test(place.file) ? null : place)
  return {
    ...message,
    text: text.replaceAll(/"(?:builtin|provided):([^"]*)"/g, '"$1"'),
    location: hide(location),
    notes: notes.map((note) => ({ ...note, location: hide(note.location) })),
  }
}

function buildOptions(root: string) {
  return {
    absWorkingDir: root,
    entryPoints: ['entry'],
    outfile: join(root, 'bundle.js'),
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    metafile: true,
    sourcemap: 'external',
    banner: { js: banner },
    define: { 'import.meta': 'hookloom$meta' },
    charset: 'utf8',
    legalComments: 'none',
    logLevel: 'silent',
    // a tsconfig above the root must not change the meaning of the code
    tsconfigRaw: {},
  } satisfies BuildOptions
}

/** The file name that the author knows: relative to the root, with slashes. */
function findModuleName(root: string, file: string): string {
  return relative(root, file).split(sep).join('/')
}

function isBuildFailure(error: unknown): error is BuildFailure {
  return error instanceof Error && 'errors' in error && Array.isArray(error.errors)
}

function describeMessage(label: string, first: Message | undefined, root: string): string {
  const where = first?.location ? ` at ${first.location.file}:${first.location.line}` : ''
  return `${label} does not build${where}: ${takeStart(first?.text ?? 'no reason given', 300)}.${suggestImport(first?.text ?? '', root)}`
}

type Esbuild = typeof import('esbuild')

let running = 0
let isStuck = false
/** The number of processes of esbuild that have ended by themselves. */
let lost = 0

/** Whether the process of esbuild ended during the build, for example because it was killed when memory was short. */
function isLost(ended: Attempt<unknown>): boolean {
  return ended.kind === 'threw' && !isBuildFailure(ended.thrown)
}

/**
 * Runs esbuild with a time limit. All builds share one process of esbuild, and a build that blocks on a file ends only with that process. So a
 * late build is abandoned, and the process is stopped when no other build uses it. If the process ends by itself, the first build that fails
 * because of it resets esbuild, so that the next build starts a new process.
 */
async function buildWithin<Result>(
  start: (esbuild: Esbuild) => Promise<Result>,
  limitMs: number,
): Promise<Attempt<Result>> {
  const esbuild = await import('esbuild')
  running += 1
  const lostBefore = lost
  const ended = await attemptWithin(limitMs, () => start(esbuild))
  running -= 1
  if (isLost(ended) && lost === lostBefore) {
    lost += 1
    await esbuild.stop()
  }
  isStuck ||= ended.kind === 'late'
  if (isStuck && running === 0) {
    isStuck = false
    await esbuild.stop()
  }
  return ended
}

/** The next move for an import that does not resolve; an empty text for any other message. */
function suggestImport(text: string, root: string): string {
  if (/^No matching export in "hookloom(?:\/define)?" for import "default"$/.test(text))
    return ' Import its functions by their names: import { defineTransform } from "hookloom".'
  const [, specifier] = /^(?:Could not resolve )?"([^"]+)"(?:$| is not installed)/.exec(text) ?? []
  if (specifier === undefined) return ''
  const found = findAlias(root, specifier)
  if (found !== undefined) {
    return ` "${found.alias}" is an alias of ${found.file}, and the gateway does not read the paths of a tsconfig. Import a relative path, or use "imports" of a package.json next to the module: {"imports":{"#lib/*":"./lib/*"}}.`
  }
  const [name] = /^(?:@[a-z\d][\w.-]*\/)?[a-z\d][\w.-]*/i.exec(specifier) ?? []
  if (name === undefined) return ''
  const at = root.split(sep).lastIndexOf('hooks')
  const folder = root.split(sep).slice(at < 0 ? -1 : at)
  return ` Run "npm install ${name}" in ${folder.join('/')}.`
}
