// The functions and types that a program imports to run a gateway in its own process. No other file of `src/` imports this file.
export { createHookloom, type Hookloom, type HookloomOptions } from './app.ts'
export * from './define.ts'
export { createMemoryStore, createSqliteStore } from './store/sqlite/sqlite.ts'
export type { Store } from './store/store.ts'
