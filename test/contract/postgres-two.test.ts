import { openStores, takeTurns, whyNoPostgres } from './postgres-stage.ts'
import { storeContract } from './store.ts'

const name = 'Postgres of two gateways, whose calls take turns,'
storeContract(name, async (clock) => takeTurns(await openStores(2, clock)), whyNoPostgres)
