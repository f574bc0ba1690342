// `context.state` of transforms: small values that a module keeps from one delivery to the next. A decision depends on the values that the
// code read, so its changes are written, in the transaction of the delivery, only while the store still has these values. Otherwise another
// delivery was first, and the code runs again. So every change is based on the newest value, even with several gateways.
import { stateLimits } from '../../core/model/transform-state.ts'
import type { Log } from '../../base/log.ts'
import type { Decision } from '../../core/mapping/decision.ts'
import type { StateChange, StateName, StateReader } from '../../core/mapping/state.ts'
import { type CursorMove, statePrefix, updateCursor } from '../../store/cursors.ts'
import type { Clock, Store, StoreReader } from '../../store/store.ts'

/** A value as commands show it. Times are milliseconds since the epoch. */
export type StateValue = StateName & { readonly json: string; readonly setAt: number; readonly until: number }

export type ModuleState = {
  readonly read: StateReader
  /** Runs the work while no other work of this gateway uses any of these values. Calls for the same value run in their order. */
  runInTurn<T>(changes: readonly StateName[], work: () => Promise<T>): Promise<T>
  /** The cursor moves that store the changes; undefined if a value has changed since the code read it. */
  planMoves(changes: readonly StateChange[]): Promise<CursorMove[] | undefined>
  /** Must be called when the changes are stored: a module that has too many values loses the oldest. Never rejects. */
  noteStored(changes: readonly StateChange[]): Promise<void>
}

/** Each gateway counts the values of a module at its first change, and then after this many. In between, the module may exceed its limit. */
const changesBetweenCounts = 250
/** When a module has too many values, the oldest are deleted until it uses only this part of its limits. */
const keptPart = 0.9
/** Separates the parts of a cursor's name: keys have no control characters, so the name is unambiguous. */
const separator = '\n'

export function createModuleState({
  store,
  clock,
  log,
}: {
  readonly store: Pick<Store, 'cursor' | 'cursors' | 'appendAll'>
  readonly clock: Clock
  readonly log: Log
}): ModuleState {
  const turns = new Map<string, Promise<unknown>>()
  const changesSince = new Map<string, number>()

  async function enforceLimits(module: string): Promise<void> {
    const values = await listModuleState(store, clock(), module)
    const evicted = selectAboveLimits(values)
    for (const { key } of evicted) await dropState(store, { module, key })
    if (evicted.length === 0) return
    const limits = `${stateLimits.keysOfModule} keys and ${stateLimits.bytesOfModule / 1024} kB`
    log.warn(
      { module, values: evicted.length },
      `${module} has set more than its state can have (${limits}): the values that were set first are deleted. Set a shorter "for".`,
    )
  }

  return {
    read: async ({ module, key }) => {
      const stored = await store.cursor(toCursorName({ module, key }))
      return { stored, json: readStoredValue(stored, clock())?.json }
    },
    runInTurn: (changes, work) => {
      const names = changes.map(toCursorName)
      const mine = Promise.all(names.map((name) => turns.get(name))).then(work)
      // a call enters the queues of all its values at once, so two calls cannot wait for each other
      const end = mine.then(free, free)
      for (const name of names) turns.set(name, end)
      return mine

      function free(): void {
        for (const name of names) if (turns.get(name) === end) turns.delete(name)
      }
    },
    planMoves: async (changes) => {
      const now = clock()
      const moves: CursorMove[] = []
      for (const change of changes) {
        const name = toCursorName(change)
        const from = await store.cursor(name)
        if (change.read !== undefined && change.read.stored !== from) return undefined
        const to = change.json === null ? deleted : `${now + change.forMs} ${now} ${change.json}`
        moves.push({ name, from, to, ifStored: true })
      }
      return moves
    },
    noteStored: async (changes) => {
      const [first] = changes
      if (first === undefined) return
      const { module } = first
      const before = changesSince.get(module)
      const isDue = before === undefined || before + changes.length >= changesBetweenCounts
      changesSince.set(module, isDue ? 0 : before + changes.length)
      if (!isDue) return
      await enforceLimits(module).catch((error: unknown) => {
        log.warn({ err: error, module }, 'the state of a module could not be counted; it is counted again later')
      })
    },
  }
}

/** The state changes of a decision. The decision and its changes are stored together, or neither is. */
export function listStateChanges(decision: Decision): readonly StateChange[] {
  return decision.kind === 'accept' || decision.kind === 'skip' ? (decision.state ?? []) : []
}

/** The values that have not expired, in the order of their names. `module`: only the values of this module. */
export async function listModuleState(
  store: Pick<StoreReader, 'cursors'>,
  now: number,
  module?: string,
): Promise<StateValue[]> {
  const found = await store.cursors(module === undefined ? statePrefix : toCursorName({ module, key: '' }))
  return found.flatMap(({ name, value }) => {
    const at = name.indexOf(separator)
    const stored = readStoredValue(value, now)
    if (stored === undefined || at === -1) return []
    return [{ module: name.slice(statePrefix.length, at), key: name.slice(at + separator.length), ...stored }]
  })
}

/** Deletes a value. Resolves to false if there is none. */
export function dropState(store: Pick<Store, 'cursor' | 'appendAll'>, value: StateName): Promise<boolean> {
  return updateCursor(store, toCursorName(value), (now = deleted) => (now === deleted ? undefined : deleted))
}

/** An expired value, which a sweep removes. */
const deleted = '0 0 '

function toCursorName({ module, key }: StateName): string {
  return `${statePrefix}${module}${separator}${key}`
}

function readStoredValue(
  text: string | undefined,
  now: number,
): Pick<StateValue, 'json' | 'setAt' | 'until'> | undefined {
  const [, until = '0', setAt = '0', json = ''] = /^(\d+) (\d+) (.+)$/s.exec(text ?? '') ?? []
  return Number(until) > now ? { json, setAt: Number(setAt), until: Number(until) } : undefined
}

/** The number of bytes by which a value counts towards the limit. */
export function measureState({ key, json }: Pick<StateValue, 'key' | 'json'>): number {
  return Buffer.byteLength(key) + Buffer.byteLength(json)
}

/** The oldest values, which are deleted if a module is above its limits. */
function selectAboveLimits(values: readonly StateValue[]): StateValue[] {
  const { keysOfModule, bytesOfModule } = stateLimits
  let bytes = values.reduce((total, value) => total + measureState(value), 0)
  if (values.length <= keysOfModule && bytes <= bytesOfModule) return []
  let left = values.length
  return values
    .toSorted((one, other) => one.setAt - other.setAt)
    .filter((value) => {
      if (left <= keysOfModule * keptPart && bytes <= bytesOfModule * keptPart) return false
      left -= 1
      bytes -= measureState(value)
      return true
    })
}
