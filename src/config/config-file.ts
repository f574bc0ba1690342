// Writes hookloom.jsonc and .env: completely or not at all, readable by the owner only. Keeps every comment of an edited file.
import { randomUUID } from 'node:crypto'
import { constants, copyFile, link, mkdir, open, realpath, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { applyEdits, type JSONPath, modify } from 'jsonc-parser'
import { Problem } from '../model/problem.ts'
import { configFile } from './text.ts'
import { toEnvLine } from './env.ts'
import { parseJsonc } from './jsonc.ts'

/** Mode of files that may hold a secret. */
export const privateMode = 0o600

/** Modes of modules and their folders: anyone who could write them could run code here, so no umask may allow it. */
export const codeMode = 0o644
export const codeFolderMode = 0o755

/**
 * The text of a new hookloom.jsonc: the recommended configuration, with its tokens in `.env`. `schema` is the path of the
 * JSON Schema for editors, if one is written next to it.
 */
export function renderNewConfig({ schema }: { schema?: string } = {}): string {
  return `// Configuration of Hookloom. Comments and trailing commas are welcome; an unknown key is an error.
// \${NAME} reads the environment, or .env beside this file; \${file:/path} reads a file. "hookloom check" checks all of it.
{${schema === undefined ? '' : `\n  "$schema": ${JSON.stringify(schema)},\n`}
  "server": {
    // Loopback: put a reverse proxy or a tunnel in front, and name it in "trustedProxies".
    "host": "127.0.0.1",
    "port": 8790,
    // Health pages and commands, on loopback only.
    "adminPort": 8791,
  },

  // Opens the admin port to commands. Never the hook token.
  "gateway": { "token": "\${HOOKLOOM_GATEWAY_TOKEN}" },

  "hooks": {
    "enabled": true,
    // What callers send: Authorization: Bearer <token>
    "token": "\${HOOKLOOM_TOKEN}",

    // The session of runs that do not name one. Requests cannot choose a session;
    // mappings and transforms can use only sessions with these prefixes.
    "defaultSessionKey": "hook:inbox",
    "allowRequestSessionKey": false,
    "allowedSessionKeyPrefixes": ["hook:"],

    // Bundled mapping packs by name, such as "gmail".
    "presets": [],

    // POST /hooks/<path>. The first mapping whose conditions are all true takes the delivery.
    "mappings": [
      {
        "id": "deploy",
        "match": { "path": "deploy" },
        "name": "Deploy",
        // Your words. The message below them is marked as untrusted.
        "instructions": "Say in one sentence what was deployed, and where.",
        "messageTemplate": "{{service}} {{version}} went to {{target | default: \\"production\\"}}",
      },
      {
        "id": "github",
        "match": { "path": "github" },
        "name": "GitHub",
        "instructions": "Say what the pull request changes, and whether it is risky.",
        // hooks/transforms/github-pull-request.ts
        "transform": { "module": "github-pull-request.ts" },
      },
    ],
  },

  // Without a model, runs call none, and their replies say so. For example, with Ollama on this machine:
  // "models": { "providers": { "local": { "kind": "openai-compatible", "baseUrl": "http://127.0.0.1:11434/v1" } } },
  // "agents": { "defaults": { "model": "local/llama3.3" } },

  "channels": {
    // Where replies go by default. "console" prints them in the terminal of "hookloom dev".
    "default": { "channel": "console" },
  },
}
`
}

export function renderEnv({ token, gatewayToken }: { token: string; gatewayToken: string }): string {
  return [
    '# Secrets of hookloom.jsonc. The environment wins over this file.\n',
    toEnvLine('HOOKLOOM_TOKEN', token),
    toEnvLine('HOOKLOOM_GATEWAY_TOKEN', gatewayToken),
  ].join('')
}

/**
 * The text with the value at the path set, or removed if it is undefined. Index -1 appends to an array. The rest of the text
 * does not change, including comments and trailing commas. Throws `config-invalid` for a text that does not parse.
 */
export function editConfig(text: string, path: JSONPath, value: unknown): string {
  const { problems } = parseJsonc(text, configFile)
  if (problems.length > 0) {
    throw new Problem('config-invalid', `${configFile} does not parse, so it was not changed`, {
      frame: problems.join('\n'),
    })
  }
  const mark = text.startsWith('\uFEFF') ? '\uFEFF' : ''
  const source = text.slice(mark.length)
  const eol = source.includes('\r\n') ? '\r\n' : '\n'
  const indent = /^([ \t]+)\S/m.exec(source)?.[1] ?? '  '
  const formattingOptions = { insertSpaces: !indent.startsWith('\t'), tabSize: indent.length, eol }
  const edited = applyEdits(source, modify(source, path, value, { formattingOptions }))
  if (parseJsonc(edited, configFile).problems.length > 0) {
    throw new Problem('config-invalid', `${configFile} would not parse after this change, so it was not changed`)
  }
  return mark + edited
}

/**
 * Replaces a file in one step: a reader sees the old text or the new one, also after a power cut. The mode is exact and does
 * not depend on the umask. A symlink stays, and its target is replaced. The folder must exist.
 */
export async function writeFileAtomic(file: string, text: string, mode: number): Promise<void> {
  await reportUnwritable(dirname(file), async () => replaceFile(await realpath(file).catch(() => file), text, mode))
}

/** Like `writeFileAtomic`, but replaces nothing: false if a file has the name, or a symlink, also one that leads nowhere. */
export async function createFileAtomic(file: string, text: string, mode: number): Promise<boolean> {
  let isNew = false
  const put = async (draft: string) => {
    isNew = await linkNew(draft, file)
    await rm(draft)
  }
  await reportUnwritable(dirname(file), () => writeDraft(file, { text, mode, put }))
  return isNew
}

async function linkNew(draft: string, file: string): Promise<boolean> {
  // some file systems have no hard links
  const create = () =>
    link(draft, file).catch((error: unknown) => {
      if (!['EPERM', 'ENOTSUP', 'ENOSYS'].includes(toCode(error))) throw error
      return copyFile(draft, file, constants.COPYFILE_EXCL)
    })
  try {
    await create()
    return true
  } catch (error) {
    if (toCode(error) === 'EEXIST') return false
    throw error
  }
}

function toCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

const unwritable: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  ENOTDIR: 'a part of its path is a file',
  EEXIST: 'a file has its name',
}

/** Runs code that writes below a folder of the configuration. Throws `config-invalid` if the system does not allow the write. */
export async function reportUnwritable<Result>(folder: string, write: () => Promise<Result>): Promise<Result> {
  try {
    return await write()
  } catch (error) {
    const code = toCode(error)
    const why = unwritable[code]
    if (why === undefined) throw error
    const next = 'Change its owner or its mode, or choose another folder with --config-dir.'
    throw new Problem('config-invalid', `${folder} cannot be written: ${why} (${code}). ${next}`, { cause: error })
  }
}

/**
 * Replaces a file that belongs to the gateway itself, such as those in state/: readable by the owner only, in one step like
 * `writeFileAtomic`. A symlink in its place is replaced too, because only an attacker would create one. Creates the folder.
 */
export async function writeStateFile(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  await replaceFile(file, text, privateMode)
}

function replaceFile(target: string, text: string, mode: number): Promise<void> {
  return writeDraft(target, { text, mode, put: (draft) => rename(draft, target) })
}

/** `put` gives the complete file its name. */
async function writeDraft(
  target: string,
  { text, mode, put }: { text: string; mode: number; put: (draft: string) => Promise<void> },
): Promise<void> {
  const folder = dirname(target)
  const draft = join(folder, `.${basename(target)}.${randomUUID()}.tmp`)
  try {
    // created without permissions for others: nobody can open it before its mode is set
    const handle = await open(draft, 'wx', privateMode)
    try {
      await handle.writeFile(text)
      await handle.chmod(mode)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await put(draft)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
  await syncFolder(folder)
}

/** Makes the new name durable. Windows cannot open a folder, and needs no such step. */
async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
