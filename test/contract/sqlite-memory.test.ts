import { createMemoryStore } from '../../src/store/sqlite/sqlite.ts'
import { storeContract } from './store.ts'

storeContract('in-memory SQLite', async (clock) => createMemoryStore({ clock }))
