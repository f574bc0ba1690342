// Reads the store of a config directory, with or without a running gateway.
import { accessSync, constants } from 'node:fs'
import { findErrorCode } from '../../base/exceptions.ts'
import { type StorePlace, describeStorePlace, toStorePlace } from '../../model/places.ts'
import { Problem } from '../../core/model/problem.ts'
import type { SlotFields } from '../../model/api/health.ts'
import type { Job } from '../../model/job.ts'
import { openReader } from '../../store/open.ts'
import type { StoreReader } from '../../store/store.ts'
import type { Waits } from '../../gateway/deliveries/waits.ts'
import type { Context } from '../terminal/context.ts'
import { recallStore } from '../../gateway/config/recall.ts'
import { findRunning } from './running.ts'

/** The result of `read`; `empty` if there is no store yet. Throws `store-unreadable` if this user may not read the store. */
export async function readStore<T>(context: Context, empty: T, read: (reader: StoreReader) => Promise<T>): Promise<T> {
  const place = await findStorePlace(context)
  if (place.kind === 'file' && !isExistingFile(place.file)) return empty
  const reader = await openReader(place)
  try {
    return await read(reader)
  } catch (error) {
    if (place.kind === 'url' && error instanceof Problem && error.code === 'config-missing') return empty
    throw error
  } finally {
    await reader.close()
  }
}

/** Why jobs wait, by job id. Empty if the configuration, which has the limits, cannot be read. */
export async function readWaitsOf(context: Context, store: StoreReader, jobs: readonly Job[]): Promise<Waits> {
  if (!jobs.some(({ state }) => state === 'queued')) return new Map()
  const [{ loadConfig }, { readWaits }] = await Promise.all([
    import('../../gateway/config/config.ts'),
    import('../../gateway/deliveries/waits.ts'),
  ])
  try {
    return await readWaits(jobs, { store, config: loadConfig(context).config, now: Date.now() })
  } catch (error) {
    if (error instanceof Problem && error.code.startsWith('config-')) return new Map()
    throw error
  }
}

export type Turn = SlotFields['turns'][number]

/** The turns, by job id. */
export type Turns = ReadonlyMap<string, Turn>

/** All turns that the gateway of this directory runs. Empty if none of the jobs runs, or if the gateway does not answer. */
export async function fetchTurns(context: Context, jobs: readonly Job[]): Promise<Turns> {
  if (!jobs.some(({ state }) => state === 'running') || findRunning(context.dir) === undefined) return new Map()
  const { askAdmin } = await import('./gateway.ts')
  try {
    const { slots } = await askAdmin(context, 'GET /api/health')
    return new Map(slots.turns.map((each) => [each.jobId, each]))
  } catch (error) {
    if (error instanceof Problem) return new Map()
    throw error
  }
}

/**
 * The place of the running gateway's store, or of the configured one. Throws `config-missing` if there is neither a configuration nor a
 * store. Throws the problem of an invalid configuration only if it hides where the store is.
 */
async function findStorePlace(context: Context): Promise<StorePlace> {
  const known = recallStore(context)
  const running = findRunning(context.dir)?.store
  if (known !== undefined) return chooseStorePlace(running, { kind: 'file', file: known })
  // imported late, because the schema of the configuration takes as long to load as the whole rest of a command
  const { findConfigParts } = await import('./gateway.ts')
  const parts = findConfigParts(context)
  if (!parts.isStoreKnown && parts.problem !== undefined) throw parts.problem
  const place = chooseStorePlace(running, toStorePlace(context.dir, parts))
  const isThere = place.kind === 'url' || isExistingFile(place.file)
  if (parts.problem?.code === 'config-missing' && !isThere) throw parts.problem
  return place
}

/**
 * `running`: the store that the gateway's address file names. The file has no password, so the URL of a database comes from the
 * configuration. Throws `conflict` if the configuration now names another database.
 */
export function chooseStorePlace(running: string | undefined, configured: StorePlace): StorePlace {
  if (running === undefined || running === describeStorePlace(configured)) return configured
  if (!running.startsWith('postgres://')) return { kind: 'file', file: running }
  throw new Problem(
    'conflict',
    `The running gateway uses ${running}, and the configuration names ${describeStorePlace(configured)} now. Restart the gateway.`,
  )
}

/** Whether there is such a file. Throws `store-unreadable` if there is one that this user may not read. */
function isExistingFile(file: string): boolean {
  try {
    accessSync(file, constants.R_OK)
    return true
  } catch (error) {
    const code = findErrorCode(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return false
    const next = 'Run the command as the user of the gateway, for example with sudo -u.'
    throw new Problem('store-unreadable', `The store ${file} cannot be read: permission denied (${code}). ${next}`)
  }
}
