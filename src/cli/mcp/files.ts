// The files that a tool of `hookloom mcp` may read and write: hookloom.jsonc, and the code below hooks/transforms. `.env` gets placeholders
// only, and is never shown.
import { readdir, readFile, mkdir } from 'node:fs/promises'
import { dirname, extname, join, relative } from 'node:path'
import { parse } from 'jsonc-parser'
import { isJsonObject } from '../../base/json.ts'
import { codeFolderMode, codeMode, privateMode } from '../../base/files.ts'
import { parseConfig } from '../../gateway/config/config.ts'
import { reportUnwritable, writeFileAtomic } from '../../gateway/config/config-file.ts'
import { parseEnv, renderEnvLine } from '../../gateway/config/env.ts'
import { configFile, envFile, readConfigText } from '../../gateway/config/text.ts'
import { Problem } from '../../core/model/problem.ts'
import {
  isInside,
  isMissing,
  moduleExtensions,
  resolveRealPath,
  resolveTransformsRoot,
} from '../../core/transforms/root.ts'
import type { Context } from '../terminal/context.ts'
import { cutLine } from '../terminal/print.ts'
import { addPlaceholderSecrets, generatePlaceholder } from '../scaffold/placeholders.ts'
import { secretMark } from './answer.ts'

const folder = 'hooks/transforms'
const maxFiles = 500
const extensions: readonly string[] = [...moduleExtensions, '.json']

/** The names of the files that can be read, at most `maxFiles`, with `/` between folders. */
export async function listCodeFiles({ dir }: Pick<Context, 'dir'>): Promise<string[]> {
  const root = await resolveTransformsRoot(dir, {})
  const found = await readdir(root, { recursive: true, withFileTypes: true }).catch((error: unknown) => {
    if (isMissing(error)) return []
    throw error
  })
  const names = found
    .filter((entry) => entry.isFile())
    .map((entry) => [folder, ...relative(root, join(entry.parentPath, entry.name)).split(/[/\\]/)].join('/'))
  return [configFile, ...names.filter(isAllowedName).toSorted()].slice(0, maxFiles)
}

/** Reads the text of a file. Throws `usage-invalid` for a file that may not be read, and `not-found`. */
export async function readCodeFile({ dir }: Pick<Context, 'dir'>, name: string): Promise<string> {
  const file = await findFile(dir, name)
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if (!isMissing(error)) throw error
    throw new Problem('not-found', `${cutLine(name, 200)} does not exist. "read" without a file lists the files.`)
  }
}

/** `replaces`: the part of the file that `text` replaces. Undefined: `text` is the whole file, which may be new. */
export type Edit = { readonly file: string; readonly text: string; readonly replaces?: string | undefined }

/** `next`: what the operator must do before the file has its effect. */
type Written = { readonly written: string; readonly next?: string }

/**
 * Writes the whole file, or nothing. Throws `usage-invalid` for a forbidden file, for a text with `secretMark`, and for an edit whose `replaces`
 * is not in the file exactly once. Throws `config-invalid` if hookloom.jsonc would be invalid.
 */
export async function writeCodeFile(context: Pick<Context, 'dir' | 'env'>, edit: Edit): Promise<Written> {
  const { file: name, replaces } = edit
  const file = await findFile(context.dir, name)
  const text = replaces === undefined ? edit.text : replaceOnce(await readCodeFile(context, name), edit)
  if (edit.text.includes(secretMark)) {
    throw new Problem(
      'usage-invalid',
      `The text has ${secretMark}, which "read" shows in place of a secret. Give "replaces", and a part of the file without it.`,
    )
  }
  const variables = name === configFile ? checkEdited(context, text) : []
  await reportUnwritable(dirname(file), () => mkdir(dirname(file), { recursive: true, mode: codeFolderMode }))
  // the secrets first: a gateway that watches must never read an unset variable
  const lines = variables.map((variable) => renderEnvLine(variable, generatePlaceholder()))
  if (lines.length > 0) await addPlaceholderSecrets(context.dir, lines)
  await writeFileAtomic(file, text, name === configFile ? privateMode : codeMode)
  if (variables.length === 0) return { written: name }
  const next = `Your operator sets ${variables.join(' and ')} in .env to the secret that the sender has. Until then, a placeholder is there, which admits no request.`
  return { written: name, next }
}

function replaceOnce(before: string, { file, text, replaces = '' }: Edit): string {
  const parts = before.split(replaces)
  if (replaces !== '' && parts.length === 2) return parts.join(text)
  const found = replaces === '' ? 'it is empty' : parts.length === 1 ? 'it has none' : `it has ${parts.length - 1}`
  throw new Problem(
    'usage-invalid',
    `"replaces" must be a text that ${cutLine(file, 200)} has exactly once; ${found}. "read" shows the file.`,
  )
}

/**
 * Throws if the configuration is invalid: a running gateway would keep the old configuration, but could not start again. Returns the new variables of
 * proofs, which must become placeholders: this tool never gets the secret of a sender.
 */
function checkEdited({ dir, env }: Pick<Context, 'dir' | 'env'>, text: string): string[] {
  const all = { ...parseEnv(readConfigText(dir, envFile) ?? '').values, ...env }
  const { problems } = parseConfig(text, all)
  if (problems.length === 0) return []
  const variables = listProofVariables(text).filter((variable) => all[variable] === undefined)
  const filled = Object.fromEntries(variables.map((variable) => [variable, generatePlaceholder()]))
  if (variables.length > 0 && parseConfig(text, { ...all, ...filled }).problems.length === 0) return variables
  throw new Problem('config-invalid', `${configFile} would be invalid with this text. Nothing was changed.`, {
    frame: problems.join('\n'),
  })
}

/** The variables that the proofs of mappings name, such as `${ACME_WEBHOOK_SECRET}`. */
function listProofVariables(text: string): string[] {
  const root: unknown = parse(text, [], { allowTrailingComma: true })
  const hooks = isJsonObject(root) && isJsonObject(root['hooks']) ? root['hooks'] : {}
  const mappings = Array.isArray(hooks['mappings']) ? hooks['mappings'] : []
  const proofs = JSON.stringify(mappings.map((mapping) => (isJsonObject(mapping) ? mapping['verify'] : undefined)))
  return [...new Set([...proofs.matchAll(/\$\{([A-Z_][A-Z\d_]*)\}/g)].map(([, name = '']) => name))]
}

async function findFile(dir: string, name: string): Promise<string> {
  if (name === configFile) return join(dir, configFile)
  const root = await resolveTransformsRoot(dir, {})
  if (isAllowedName(name)) {
    // a folder in the path may be a symlink
    const file = await resolveRealPath(join(root, name.slice(folder.length + 1)))
    if (isInside(root, file)) return file
  }
  throw new Problem(
    'usage-invalid',
    `file must be ${configFile}, or a path below ${folder}/ that ends in ${extensions.join(', ')}, without "..", hidden folders and packages. Found ${cutLine(JSON.stringify(name), 200)}.`,
  )
}

function isAllowedName(name: string): boolean {
  if (!name.startsWith(`${folder}/`) || /[\\:\0%~]/.test(name)) return false
  const parts = name.split('/')
  return parts.every((part) => /^[^.]/.test(part) && part !== 'node_modules') && extensions.includes(extname(name))
}
