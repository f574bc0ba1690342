// What an engine of stores declares. The list of engines is in engines.ts.
import type { Log } from '../base/log.ts'
import type { StorePlace } from '../model/places.ts'
import type { CopySource, CopyTarget } from './copy.ts'
import type { Clock, OpenedStore, StoreReader } from './store.ts'

export type OpenOptions = {
  /** The maximum number of bytes that may wait in the store. It is read for each delivery. */
  readonly maxWaitingBytes: () => number
  readonly log: Log
  /** The clock of an engine with one owner. An engine with several owners has the clock of its server. */
  readonly clock: Clock
}

type Kind = StorePlace['kind']

/** An engine. It loads its code when it is first called: a gateway needs one of them. */
export type StoreDefinition<Place extends StorePlace = StorePlace> = {
  /** The places of the configuration that it takes: `store.file`, or `store.url`. */
  readonly takes: Kind
  open(place: Place, options: OpenOptions): OpenedStore | Promise<OpenedStore>
  /** Opens a store for reading, whether gateways run or not. It never migrates the store. */
  openReader(place: Place): StoreReader | Promise<StoreReader>
  /** Reads all rows at one moment, for a copy. Throws `store-locked` if a gateway uses the store. */
  readAll<Result>(place: Place, run: (source: CopySource) => Promise<Result>): Promise<Result>
  /** Fills an empty store, all or nothing. Throws `conflict` if it is not empty. */
  fill<Result>(place: Place, run: (target: CopyTarget) => Promise<Result>): Promise<Result>
}

/** Declares an engine. */
export function defineStore<Of extends Kind>(
  store: StoreDefinition<Extract<StorePlace, { kind: Of }>> & { readonly takes: Of },
): StoreDefinition<Extract<StorePlace, { kind: Of }>> {
  return store
}
