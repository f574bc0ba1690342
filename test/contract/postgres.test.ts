import { openStores, takeTurns, whyNoPostgres } from './postgres-stage.ts'
import { storeContract } from './store.ts'

storeContract('Postgres', async (clock) => takeTurns(await openStores(1, clock)), whyNoPostgres)
