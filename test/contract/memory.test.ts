import { createMemoryStore } from '../../src/store/memory.ts'
import { storeContract } from './store.ts'

storeContract('memory', async (clock) => createMemoryStore({ clock }))
