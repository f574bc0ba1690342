// Builds the package: the program, its types and the page. The bundle has every library that package.json does not name as a dependency. An install
// does not show what is bundled, so LICENSES.txt has the licences, and parts.cdx.json is a CycloneDX list that scanners read.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { defineConfig, type UserConfig } from 'tsdown'

type Manifest = { readonly name: string; readonly version: string; readonly license: string }
type LockedPackage = Pick<Manifest, 'version' | 'license'> & { readonly dev?: true; readonly optional?: true }

const outDir = 'dist'
const readJson = (file: string) => JSON.parse(readFileSync(file, 'utf8'))
/** The folders of the packages that are part of the bundle. */
const bundled = new Set<string>()

/** The folder of the package that a file is in; undefined for a file of this package. A bundler marks files that it made with a NUL. */
function findPackageFolder(file: string): string | undefined {
  return /^\0?(.*[/\\]node_modules[/\\](?:@[^/\\]+[/\\])?[^/\\]+)/.exec(file)?.[1]
}

function renderLicences(folders: readonly string[]): string {
  const entries = folders.map((folder) => {
    const { name, version, license }: Manifest = readJson(join(folder, 'package.json'))
    const files = readdirSync(folder).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file))
    const texts = files.toSorted().map((file) => readFileSync(join(folder, file), 'utf8').trim())
    if (texts.length === 0) texts.push(`The package has no file with its licence. Its package.json names ${license}.`)
    return [`${name} ${version} (${license})`, ...texts].join('\n\n')
  })
  return `${entries.join(`\n\n${'='.repeat(80)}\n\n`)}\n`
}

/** What the package consists of: what is bundled, and what an install adds. Without a time and a serial number, so that two builds are equal. */
function renderParts(folders: readonly string[]): string {
  const { name, version, license }: Manifest = readJson('package.json')
  const { packages }: { packages: Readonly<Record<string, LockedPackage>> } = readJson('package-lock.json')
  const inBundle = new Set(folders.map((folder) => relative('.', folder).replaceAll(sep, '/')))
  const components = Object.entries(packages)
    .filter(([place, { dev }]) => place !== '' && (dev !== true || inBundle.has(place)))
    .map(([place, part]) => {
      const own = place.replace(/^.*node_modules\//, '')
      const purl = `pkg:npm/${own.replace('@', '%40')}@${part.version}`
      return {
        type: 'library',
        // a package can be there in several places
        'bom-ref': `${purl}#${place}`,
        name: own,
        version: part.version,
        scope: part.optional === true ? 'optional' : 'required',
        licenses: [{ expression: part.license.replace(/^\((.*)\)$/, '$1') }],
        purl,
        properties: [{ name: 'hookloom:bundled', value: String(inBundle.has(place)) }],
      }
    })
  const purl = `pkg:npm/${name}@${version}`
  const component = { type: 'application', 'bom-ref': purl, name, version, licenses: [{ expression: license }], purl }
  const head = {
    $schema: 'http://cyclonedx.org/schema/bom-1.5.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
  }
  return `${JSON.stringify({ ...head, version: 1, metadata: { component }, components }, null, 1)}\n`
}

/** Notes what a bundle is made of. The lists are written after each build, so those after the last one are complete. */
const recordParts: UserConfig['plugins'] = {
  name: 'parts',
  generateBundle(_options, bundle) {
    for (const output of Object.values(bundle)) {
      if (output.type !== 'chunk') continue
      for (const [file, { renderedLength }] of Object.entries(output.modules)) {
        const folder = findPackageFolder(file)
        if (folder !== undefined && renderedLength > 0) bundled.add(folder)
      }
    }
  },
}

function writeParts(): void {
  const folders = [...bundled].toSorted()
  writeFileSync(join(outDir, 'LICENSES.txt'), renderLicences(folders))
  writeFileSync(join(outDir, 'parts.cdx.json'), renderParts(folders))
}

/**
 * Sorts the words of an enumeration in the types. The compiler orders them by the time at which it met each word first, and the bundler asks it for the
 * files in the order in which they were read.
 */
const sortEnumerations: UserConfig['plugins'] = {
  name: 'enumerations',
  renderChunk: {
    order: 'post',
    handler: (code) => ({
      code: code.replace(/(?<=ZodEnum<\{\n)(?: +\S+: "[^"]*";\n)+/g, (lines) =>
        lines.trimEnd().split('\n').toSorted().join('\n').concat('\n'),
      ),
    }),
  },
}

/** Breaks the lines of types before a comment, because editors show them in hovers. */
function breakHovers(): void {
  for (const name of readdirSync(outDir).filter((file) => file.endsWith('.d.ts'))) {
    const file = join(outDir, name)
    writeFileSync(file, readFileSync(file, 'utf8').replace(/; (?=.[*][*])/g, ';\n  '))
  }
}

const pageDir = join(outDir, 'inspector')

/** Writes each file of the page as Brotli and as gzip too: the gateway compresses nothing. */
function compressPage(): void {
  for (const name of readdirSync(pageDir).filter((file) => !/\.(?:br|gz)$/.test(file))) {
    const file = join(pageDir, name)
    const text = readFileSync(file)
    writeFileSync(
      `${file}.br`,
      brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: text.length } }),
    )
    writeFileSync(`${file}.gz`, gzipSync(text, { level: 9 }))
  }
}

const doors = {
  core: 'src/engine/engine.ts',
  define: 'src/define.ts',
  index: 'src/index.ts',
  testing: 'src/testing.ts',
}
const always: UserConfig = {
  // npm runs a script in the folder of the package; otherwise paths would begin at the folder of this file
  cwd: process.cwd(),
  outDir,
  fixedExtension: false,
  format: 'esm',
  logLevel: 'warn',
  report: false,
  checks: { eval: false, pluginTimings: false },
}
const node: UserConfig = { ...always, platform: 'node', target: 'node20.19' }

export default defineConfig([
  {
    ...node,
    entry: {
      ...doors,
      main: 'src/cli/bin.ts',
      'transform-worker': 'src/core/transforms/worker/worker.ts',
      writer: 'src/store/sqlite/writer.ts',
      reader: 'src/store/sqlite/reader.ts',
    },
    outputOptions: { comments: { annotation: false, jsdoc: false, legal: true } },
    dts: false,
    copy: ['src/cli/scaffold/files'],
    // Zod is a dependency for its types only. `onlyBundle` would be the list of all other packages
    deps: { alwaysBundle: [/^zod(?:\/|$)/], onlyBundle: false },
    inputOptions: { resolve: { mainFields: ['module', 'main'] } },
    plugins: recordParts,
    hooks: { 'build:done': writeParts },
  },
  {
    ...node,
    entry: doors,
    clean: false,
    dts: { emitDtsOnly: true },
    plugins: sortEnumerations,
    hooks: { 'build:done': breakHovers },
  },
  {
    ...always,
    platform: 'browser',
    target: 'es2023',
    entry: { page: 'src/inspector/main.tsx' },
    outDir: pageDir,
    tsconfig: 'src/inspector/tsconfig.json',
    minify: true,
    clean: false,
    dts: false,
    deps: { onlyBundle: ['eventsource-parser', 'marked', 'preact'] },
    copy: ['index.html', 'page.css', 'icon.svg', 'icon-alert.svg'].map((name) => `src/inspector/${name}`),
    plugins: recordParts,
    hooks: {
      'build:done': () => {
        writeParts()
        compressPage()
      },
    },
  },
])
