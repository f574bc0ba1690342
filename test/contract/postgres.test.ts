import { openStores, takeTurns, whyNoPostgres } from './postgres-stage.ts'
import { storeContract } from './store.ts'

storeContract('Postgres', async (clock) => takeTurns(await openStores(1, clock)), whyNoPostgres)

const twoName = 'Postgres of two gateways, whose calls take turns,'
storeContract(twoName, async (clock) => takeTurns(await openStores(2, clock)), whyNoPostgres)
