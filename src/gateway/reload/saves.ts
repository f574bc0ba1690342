// Remembers the files of each save that went live, so that "hookloom bisect" can find the save that changed an outcome. One file for each save, in
// state/saves/: the configuration with its `${NAME}` and without its secrets, and the code, without `.env` and without packages.
import { hash } from 'node:crypto'
import { readdir, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { applyEdits, type Edit, parse, visit } from 'jsonc-parser'
import { findErrorCode } from '../../base/exceptions.ts'
import { writeStateFile } from '../../base/files.ts'
import { isJsonObject, tryParseJson } from '../../base/json.ts'
import { createSerialQueue } from '../../base/serial.ts'
import { configFile } from '../config/text.ts'
import { listConfigSecrets } from '../../model/config/secrets.ts'
import type { Log } from '../../base/log.ts'
import { toSavesFolder } from '../../model/places.ts'
import type { Live } from './live-types.ts'
import type { RecentChange, RecentChanges } from './recent.ts'

/** `at`: the time when the save went live. `files`: the texts, by their paths in the config directory. */
export type Save = {
  readonly at: number
  /** The generation that the save made; undefined if an earlier version remembered it. */
  readonly generation: string | undefined
  readonly files: Readonly<Record<string, string>>
  /** What became different for recent deliveries, by the label of each change. Undefined if they were not compared. */
  readonly changes: RecentChanges | undefined
}

/** The limits of all saves together: enough for weeks of edits. A save of fifty modules has 40 kB. */
const maxSaves = 200
const maxBytes = 16_000_000
/** The limits of one save. A larger save is not remembered. */
const maxFiles = 2_000
const maxSaveBytes = 8_000_000

/** The folder whose files are remembered, with the configuration. `state/` is left out: it is the folder of the store. */
const folder = 'hooks'
const isLeftOut = (name: string) => name === 'node_modules' || name.startsWith('.') || name.endsWith('.fixtures')

export type SaveMemory = {
  /** Remembers the files on disk, if all of them are live. Call it at the start and after each swap. */
  remember(): void
  /** Adds to the last save what it changed for recent deliveries, unless the generation is of another save. */
  noteChanges(generation: string, changes: RecentChanges): void
  /** Resolves when the last save is written. */
  stop(): Promise<void>
}

export function createSaveMemory(
  live: Pick<Live, 'current' | 'status'>,
  { dir, clock, log }: { dir: string; clock: () => number; log: Log },
): SaveMemory {
  const inOrder = createSerialQueue()
  let isSaid = false
  function warn(error: unknown): void {
    if (!isSaid) log.warn({ err: error }, 'a save could not be remembered for "hookloom bisect"')
    isSaid = true
  }
  function remember(): void {
    // while a module keeps its last good version, the serving code is not that of the files on disk
    if (live.status().degraded) return
    const { id, config, mappings } = live.current()
    const own = mappings.map(({ mapping }) => mapping)
    void inOrder(async () => addSave(dir, { at: clock(), generation: id }, listConfigSecrets(config, own))).catch(warn)
  }
  return {
    remember,
    noteChanges: (generation, changes) => void inOrder(() => addChanges(dir, generation, changes)).catch(warn),
    stop: () => inOrder(() => {}),
  }
}

/** The remembered saves, the oldest first. A file that cannot be read is left out. */
export async function readSaves(dir: string): Promise<Save[]> {
  const names = await listSaves(dir)
  const saves = await Promise.all(names.map((name) => readSave(join(toSavesFolder(dir), name))))
  return saves.flatMap((save) => save ?? [])
}

/** A save that went live about at this moment, the save before it, and whether it is the last one. */
export type FoundSave = { readonly save: Save; readonly before: Save | undefined; readonly isLast: boolean }

/** A save is remembered when its files were read again, after the gateway noted in the audit log that it is live. */
const nearMs = 60_000

export async function findSave(
  dir: string,
  { at, generation }: { readonly at: number; readonly generation: string },
): Promise<FoundSave | undefined> {
  const names = await listSaves(dir)
  const read = async (name: string | undefined) =>
    name === undefined ? undefined : readSave(join(toSavesFolder(dir), name))
  for (const [index, name] of names.entries()) {
    if (Math.abs(Number(name.slice(0, 15)) - at) > nearMs) continue
    const save = await read(name)
    if (save?.generation !== generation) continue
    return { save, before: await read(names[index - 1]), isLast: index === names.length - 1 }
  }
  return undefined
}

async function addSave(
  dir: string,
  { at, generation }: Pick<Save, 'at' | 'generation'>,
  secrets: readonly string[],
): Promise<void> {
  const read = await readFiles(dir)
  if (read === undefined) return
  const config = read[configFile] ?? ''
  const files = { ...read, [configFile]: removeSecrets(config, [...secrets, ...listTextSecrets(config)]) }
  const text = JSON.stringify(files)
  const digest = hash('sha256', text, 'hex').slice(0, 16)
  const names = await listSaves(dir)
  if (names.at(-1)?.includes(digest) === true) return
  const place = toSavesFolder(dir)
  await writeSave(join(place, `${String(at).padStart(15, '0')}-${digest}`), {
    at,
    generation,
    files,
    changes: undefined,
  })
  await dropOldest(place, await listSaves(dir))
}

async function addChanges(dir: string, generation: string, changes: RecentChanges): Promise<void> {
  const name = (await listSaves(dir)).at(-1)
  const file = join(toSavesFolder(dir), name ?? '')
  const save = name === undefined ? undefined : await readSave(file)
  if (save?.generation === generation) await writeSave(file, { ...save, changes })
}

async function writeSave(file: string, { changes, ...save }: Save): Promise<void> {
  const text = JSON.stringify({ ...save, ...(changes !== undefined && { changes: [...changes] }) })
  await writeStateFile(file, gzipSync(text).toString('base64'))
}

/** The secrets in a text of the configuration. A newer save may have replaced the text that the serving generation was made from. */
function listTextSecrets(text: string): string[] {
  const config: unknown = parse(text, [], { allowTrailingComma: true })
  if (typeof config !== 'object' || config === null) return []
  // a reference to a variable is not a secret
  return listConfigSecrets(config, []).filter((secret) => !secret.includes('${'))
}

/**
 * Replaces the secrets with variables that nobody sets: the remembered saves must not keep a secret that the operator has replaced. `hookloom
 * bisect` accepts a missing variable. A URL stays a URL.
 */
function removeSecrets(text: string, secrets: readonly string[]): string {
  const names = new Map([...new Set(secrets)].map((secret, at) => [secret, `\${REMOVED_SECRET_${at + 1}}`]))
  const edits: Edit[] = []
  visit(text, {
    onLiteralValue(value: unknown, offset, length) {
      const name = typeof value === 'string' ? names.get(value) : undefined
      if (name === undefined) return
      const [, scheme] = /^([a-z][a-z\d+.-]*:\/\/)/i.exec(String(value)) ?? []
      edits.push({ offset, length, content: JSON.stringify(scheme === undefined ? name : `${scheme}removed.invalid`) })
    },
  })
  return applyEdits(text, edits)
}

/** Deletes the oldest saves above the limit. The newest save stays, however large it is. */
async function dropOldest(place: string, names: readonly string[]): Promise<void> {
  let bytes = 0
  for (const [index, name] of names.toReversed().entries()) {
    bytes += (await stat(join(place, name))).size
    if (index > 0 && (index >= maxSaves || bytes > maxBytes)) await rm(join(place, name), { force: true })
  }
}

async function listSaves(dir: string): Promise<string[]> {
  try {
    return (await readdir(toSavesFolder(dir))).filter((name) => /^\d{15}-[\da-f]{16}$/.test(name)).toSorted()
  } catch (error) {
    if (findErrorCode(error) === 'ENOENT') return []
    throw error
  }
}

async function readSave(file: string): Promise<Save | undefined> {
  try {
    const packed = Buffer.from(await readFile(file, 'utf8'), 'base64')
    const save = tryParseJson(gunzipSync(packed, { maxOutputLength: 2 * maxSaveBytes }).toString())
    if (!isJsonObject(save) || typeof save['at'] !== 'number') return undefined
    const files = Object.entries(isJsonObject(save['files']) ? save['files'] : {})
    const generation = typeof save['generation'] === 'string' ? save['generation'] : undefined
    const texts = Object.fromEntries(files.map(([name, text]) => [name, String(text)]))
    // as: only this file writes the changes
    const changes = Array.isArray(save['changes']) ? new Map(save['changes'] as [string, RecentChange][]) : undefined
    return { at: save['at'], generation, files: texts, changes }
  } catch {
    return undefined
  }
}

/** The files of a save; undefined if they are too many or too large. Links in `hooks/` are left out, because they may lead out of the directory. */
async function readFiles(dir: string): Promise<Record<string, string> | undefined> {
  const names = [configFile, ...(await listFiles(dir, folder))].toSorted()
  if (names.length > maxFiles) return undefined
  const files: Record<string, string> = {}
  let bytes = 0
  for (const name of names) {
    const { size } = await stat(join(dir, name))
    bytes += size
    if (bytes > maxSaveBytes) return undefined
    files[name] = await readFile(join(dir, name), 'utf8')
  }
  return files
}

async function listFiles(dir: string, below: string): Promise<string[]> {
  const entries = await readdir(join(dir, below), { withFileTypes: true }).catch(() => [])
  const found: string[] = []
  for (const entry of entries) {
    if (isLeftOut(entry.name)) continue
    const name = `${below}/${entry.name}`
    if (entry.isDirectory()) found.push(...(await listFiles(dir, name)))
    else if (entry.isFile()) found.push(name)
    if (found.length > maxFiles) break
  }
  return found
}
