// Finds the re-exports of a barrel, and the exports of the files that it re-exports.
import { dirname, extname, join } from 'node:path'
import type { Loader } from 'esbuild'
import { readInside, disableSourceMap } from '../read.ts'
import { listFoldersUpTo } from './manifests.ts'

/** A re-export. `from`: the specifier in the barrel. `names`: what a star exports; undefined if that is not known. */
export type ReExport =
  | { readonly kind: 'named'; readonly name: string; readonly imported: string; readonly from: string }
  | { readonly kind: 'namespace'; readonly name: string; readonly from: string }
  | { readonly kind: 'star'; readonly from: string; readonly names: ReadonlySet<string> | undefined }

/** The re-exports of a barrel; undefined for a file with any other statement, or in a package that may have side effects. */
export async function readReExports(root: string, file: string, contents: Uint8Array): Promise<ReExport[] | undefined> {
  if (!(await isFreeOfEffects(root, file))) return undefined
  const statements = readStatements(await printPlainCode(file, contents))
  if (statements === undefined) return undefined
  const { imports, exports, stars } = statements
  const names = await readExportedNames(
    root,
    file,
    stars.map(({ from }) => from),
  )
  const reExports: ReExport[] = stars.map(({ from }) => ({ kind: 'star', from, names: names.get(from) }))
  for (const { local, name } of exports) {
    const source = imports.get(local)
    if (source === undefined) return undefined
    const { from, imported } = source
    reExports.push(imported === '*' ? { kind: 'namespace', name, from } : { kind: 'named', name, imported, from })
  }
  return reExports
}

async function isFreeOfEffects(root: string, file: string): Promise<boolean> {
  for (const folder of listFoldersUpTo(root, dirname(file))) {
    const read = await readInside(root, join(folder, 'package.json')).catch(() => undefined)
    if (read === undefined) continue
    const manifest: unknown = JSON.parse(Buffer.from(read.contents).toString('utf8'))
    return typeof manifest === 'object' && manifest !== null && Reflect.get(manifest, 'sideEffects') === false
  }
  return false
}

/** The text as printed by esbuild: without comments and types, and with one form for each statement. */
export async function printPlainCode(file: string, contents: Uint8Array): Promise<string> {
  const { transform } = await import('esbuild')
  const loader = findLoader(file)
  const { code } = await transform(contents, { loader, format: 'esm', legalComments: 'none', tsconfigRaw: {} })
  return code
}

function findLoader(file: string): Loader {
  const kind = /\.[cm]?(jsx?|tsx?)$/.exec(extname(file))?.[1]
  return kind === 'ts' || kind === 'tsx' || kind === 'jsx' ? kind : 'js'
}

export const binding = String.raw`[\w$\u0080-\uffff]+`
const statement = new RegExp(
  [
    String.raw`export \* from "([^"\\]+)";`,
    String.raw`import (?:(${binding}),? ?)?(?:\{([^}"]*)\}|\* as (${binding}))? ?from "([^"\\]+)";`,
    String.raw`export \{([^}"]*)\};`,
  ].join('|'),
  'y',
)

type Statements = {
  /** The imports by local name. `*` is a namespace. */
  readonly imports: ReadonlyMap<string, { readonly imported: string; readonly from: string }>
  readonly exports: readonly { readonly local: string; readonly name: string }[]
  readonly stars: readonly { readonly from: string }[]
}

/** The statements of a text that only imports and exports; undefined for any other text. */
function readStatements(code: string): Statements | undefined {
  const imports = new Map<string, { imported: string; from: string }>()
  const exports: { local: string; name: string }[] = []
  const stars: { from: string }[] = []
  const text = code.trimEnd()
  for (
    let at = 0;
    at < text.length;
    at = statement.lastIndex + (/^\s*/.exec(text.slice(statement.lastIndex))?.[0].length ?? 0)
  ) {
    statement.lastIndex = at
    const [found, star, standard, list, namespace, from = '', exported] = statement.exec(text) ?? []
    if (found === undefined) return undefined
    if (star !== undefined) stars.push({ from: star })
    if (standard !== undefined) imports.set(standard, { imported: 'default', from })
    if (namespace !== undefined) imports.set(namespace, { imported: '*', from })
    for (const { first, second } of parsePairs(list)) imports.set(second, { imported: first, from })
    for (const { first, second } of parsePairs(exported)) exports.push({ local: first, name: second })
  }
  return { imports, exports, stars }
}

/** Parses a list such as `a, b as c`. */
export function parsePairs(list = ''): { first: string; second: string }[] {
  return list
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
    .map((item) => {
      const [first = '', second = first] = item.split(' as ')
      return { first, second }
    })
}

/** The names that relative `.js` and `.mjs` files export, by specifier. CommonJS files and files with `export *` are left out. */
async function readExportedNames(
  root: string,
  barrel: string,
  specifiers: readonly string[],
): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const names = new Map<string, ReadonlySet<string>>()
  const relative = specifiers.filter((specifier) => /^\.\.?\/.*\.m?js$/.test(specifier))
  if (relative.length === 0) return names
  const { build } = await import('esbuild')
  const folder = dirname(barrel)
  const { metafile, outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: relative.map((specifier, index) => ({ in: join(folder, specifier), out: `${index}` })),
    outdir: root,
    bundle: false,
    write: false,
    metafile: true,
    format: 'esm',
    logLevel: 'silent',
    tsconfigRaw: {},
    plugins: [
      {
        name: 'hookloom',
        setup: ({ onResolve, onLoad }) => {
          onResolve({ filter: /.*/ }, ({ path }) => ({ path }))
          onLoad({ filter: /.*/ }, async ({ path }) => ({
            contents: disableSourceMap((await readInside(root, path)).contents),
            loader: 'js',
          }))
        },
      },
    ],
  })
  const byPath = new Map(Object.entries(metafile.outputs).map(([path, { exports }]) => [join(root, path), exports]))
  const texts = new Map(outputFiles.map(({ path, text }) => [path, text]))
  for (const [index, specifier] of relative.entries()) {
    const path = join(root, `${index}.js`)
    const isPlain = metafile.inputs[toKey(root, join(folder, specifier))]?.format === 'esm'
    const exports = byPath.get(path)
    if (isPlain && exports !== undefined && !/^export \*/m.test(texts.get(path) ?? ''))
      names.set(specifier, new Set(exports))
  }
  return names
}

function toKey(root: string, file: string): string {
  return file.slice(root.length + 1).replaceAll('\\', '/')
}
