// The type errors of transforms, as an editor shows them. The gateway removes types without checking them.
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { isAbsolute, join, relative, sep } from 'node:path'
import type TypeScript from 'typescript'
import { formatQuantity, toPrintableLine } from '../../base/text.ts'
import { exitCodes } from '../../core/model/problem.ts'
import { renderEditorConfig } from '../scaffold/folder.ts'
import { buildFailure, type CheckFinding } from './findings.ts'

/** `errors`: each as `<file>:<line>:<column> TS<code> <message>`. */
export type TypeReport = { readonly modules: number; readonly errors: readonly string[] }

type CheckedModules = { readonly dir: string; readonly root: string; readonly modules: readonly string[] }

const hint =
  'TypeScript is not installed, so types are not checked. Run "npm install --save-dev typescript" in the config directory.'
const shownErrors = 50

/** The TypeScript compiler that is installed for the config directory. With `allowsOwn`, the compiler of this package is the fallback. */
function findTypeScript(dir: string, allowsOwn: boolean): typeof TypeScript | undefined {
  for (const from of [join(dir, 'hooks', 'any.js'), ...(allowsOwn ? [import.meta.url] : [])]) {
    try {
      // as: a package with this name is the compiler; if its API is missing, the compiler counts as missing
      const found = createRequire(from)('typescript') as Partial<typeof TypeScript>
      if (typeof found.createProgram === 'function') return found as typeof TypeScript
    } catch {
      // TypeScript is not installed there
    }
  }
  return undefined
}

/** Checks the TypeScript modules and the files that they import. Undefined if `findTypeScript` finds no compiler. */
export function checkTypes({ dir, root, modules }: CheckedModules, allowsOwn = false): TypeReport | undefined {
  const names = modules.filter((module) => /\.m?ts$/.test(module)).map((module) => join(root, module))
  const ts = findTypeScript(dir, allowsOwn)
  if (ts === undefined) return undefined
  if (names.length === 0) return { modules: 0, errors: [] }
  const file = join(dir, 'hooks', 'tsconfig.json')
  const text = existsSync(file) ? undefined : renderEditorConfig()
  const read = text === undefined ? ts.readConfigFile(file, ts.sys.readFile) : ts.parseConfigFileTextToJson(file, text)
  const config = ts.parseJsonConfigFileContent(read.config ?? {}, ts.sys, join(dir, 'hooks'))
  const program = ts.createProgram(names, { ...config.options, noEmit: true })
  const found = [
    ...(read.error === undefined ? [] : [read.error]),
    ...config.errors.filter(({ code }) => code !== noInputs),
    ...ts.getPreEmitDiagnostics(program).filter(({ file: at }) => at === undefined || isOwn(root, at.fileName)),
  ]
  const errors = found.filter(({ category }) => category === ts.DiagnosticCategory.Error)
  return { modules: names.length, errors: errors.map((error) => describeTypeError(ts, error, dir)) }
}

/** The code of "No inputs were found in config file", which is ignored: the modules are the input. */
const noInputs = 18_003

function isOwn(root: string, file: string): boolean {
  const path = relative(root, file)
  return !path.startsWith('..') && !isAbsolute(path) && !path.split(sep).includes('node_modules')
}

function describeTypeError(
  ts: typeof TypeScript,
  { file, start, code, messageText }: TypeScript.Diagnostic,
  dir: string,
): string {
  const message = toPrintableLine(listMessages(messageText).slice(-2).join(' '))
  if (file === undefined) return `TS${code} ${message}`
  const { line, character } = ts.getLineAndCharacterOfPosition(file, start ?? 0)
  return `${relative(dir, file.fileName)}:${line + 1}:${character + 1} TS${code} ${message}`
}

/** The messages of an error, from the outermost type to the place of the mismatch. The last two say what is wrong there. */
function listMessages(message: string | TypeScript.DiagnosticMessageChain): string[] {
  if (typeof message === 'string') return [message]
  const [next] = message.next ?? []
  return [message.messageText, ...(next === undefined ? [] : listMessages(next))]
}

/** The finding of `check --types`. */
export function toTypesFinding(report: TypeReport | undefined): CheckFinding {
  const name = 'types'
  if (report === undefined) return { name, ok: false, severity: 'warning', detail: hint }
  const { modules, errors } = report
  if (errors.length > 0) return buildFailure(name, renderTypeErrors(errors), exitCodes.broken)
  return { name, ok: true, detail: `no type error in ${formatQuantity(modules, 'module')}` }
}

export function renderTypeErrors(errors: readonly string[]): string {
  const more = errors.length - shownErrors
  return [...errors.slice(0, shownErrors), ...(more > 0 ? [`and ${more} more`] : [])].join('\n')
}
