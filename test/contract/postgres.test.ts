import type { Store } from '../../src/store/store.ts'
import { openStores, whyNoPostgres } from './postgres-stage.ts'
import { storeContract } from './store.ts'

storeContract('Postgres', async (clock) => takeTurns(await openStores(1, clock)), whyNoPostgres)

const twoName = 'Postgres of two gateways, whose calls take turns,'
storeContract(twoName, async (clock) => takeTurns(await openStores(2, clock)), whyNoPostgres)

/** One store, whose calls go to these stores in turn. */
function takeTurns(stores: readonly Store[]): Store {
  const [first] = stores
  if (first === undefined) throw new Error('no store was opened')
  let calls = 0
  const close = () => Promise.all(stores.map((store) => store.close()))
  const inTurn =
    (name: keyof Store) =>
    (...given: unknown[]) => {
      calls += 1
      const store = stores[calls % stores.length] ?? first
      return Reflect.apply(store[name], store, given)
    }
  const names = Object.keys(first) as (keyof Store)[] // the keys of a store
  // as: every call of a store, under its name
  return Object.fromEntries(names.map((name) => [name, name === 'close' ? close : inTurn(name)])) as unknown as Store
}
