// Chooses the engine of a store by its place in the configuration.
import type { StorePlace } from '../model/places.ts'
import { copyRows } from './copy.ts'
import type { OpenOptions, StoreDefinition } from './definition.ts'
import { engines } from './engines.ts'
import type { PostgresFacts } from './postgres/facts.ts'
import type { OpenedStore, StoreReader } from './store.ts'

export async function openStore(place: StorePlace, options: Omit<OpenOptions, 'clock'>): Promise<OpenedStore> {
  return await findEngine(place).open(place, { ...options, clock: Date.now })
}

/** Opens a store for reading, whether gateways run or not. It never migrates the store. */
export async function openReader(place: StorePlace): Promise<StoreReader> {
  return await findEngine(place).openReader(place)
}

/**
 * The facts that `hookloom doctor` shows about a database. Throws `store-unavailable`, with the reason and the next step, if it does not
 * answer.
 */
export async function readDatabaseFacts(url: string): Promise<PostgresFacts> {
  const { readPostgresFacts } = await import('./postgres/facts.ts')
  return readPostgresFacts(url)
}

/**
 * Copies a store into an empty store of any engine, all or nothing, and returns the number of rows of each table. Throws `store-locked`
 * if a gateway uses one of the stores, and `conflict` if the target is not empty.
 */
export async function copyStore(
  { from, to }: { from: StorePlace; to: StorePlace },
  report: (table: string, rows: number) => unknown,
): Promise<Readonly<Record<string, number>>> {
  return await findEngine(to).fill(to, (target) =>
    findEngine(from).readAll(from, (source) => copyRows(source, target, report)),
  )
}

function findEngine({ kind }: StorePlace): StoreDefinition {
  const engine = engines.find(({ takes }) => takes === kind)
  if (engine === undefined) throw new Error(`no engine takes a store at a ${kind}`)
  return engine
}
