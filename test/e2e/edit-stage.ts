// A gateway whose parked deliveries wait for an edit of its mappings, on each engine. Gateway and store are closed after each test.
import { join } from 'node:path'
import { afterEach, expect } from 'vitest'
import { createPostgresStore } from '../../src/store/postgres/postgres.ts'
import { createSqliteStore } from '../../src/store/sqlite/sqlite.ts'
import type { Store } from '../../src/store/store.ts'
import { newSchema, whyNoPostgres } from '../contract/postgres-stage.ts'
import { gatewayToken, makeConfigDir, makeFolder, writeConfig } from './gateway.ts'
import { startInside } from './inside.ts'

let closing: (() => Promise<unknown>)[] = []

/** Call this function once at the top of a test file: after each test, it closes everything that the test started. */
export function closeAfterEach(): void {
  afterEach(async () => {
    for (const close of closing.toReversed()) await close()
    closing = []
  })
}

export const slow = { timeout: 60_000 }

/** A module that fails until the file `door` exists. `message`: the expression that makes its message. */
export const buildWaitingModule = (door: string, message: string) => `import { existsSync } from 'node:fs'
  export default ({ payload }) => {
    if (!existsSync('${door}')) throw new Error('closed')
    return { message: ${message} }
  }`

/** `module`: the code of x.ts. */
export async function startStage(store: Store, module: string, mappings: readonly object[]) {
  const dir = makeConfigDir({ config: { hooks: { mappings } }, files: { 'hooks/transforms/x.ts': module } })
  const lines: string[] = []
  const add = (_fields: object, text: string) => void lines.push(text)
  const log = { debug() {}, info: add, warn: add, error: add }
  const gateway = await startInside({ dir, store, log, leaseTimes: { leaseMs: 2_000, everyMs: 200 } })
  closing.push(gateway.stop)
  return {
    ...gateway,
    lines,
    edit: (next: readonly object[]) => writeConfig(dir, { hooks: { mappings: next } }),
    /** Resolves when the edit is live. */
    editLive: async (next: readonly object[]) => {
      const before = lines.length
      writeConfig(dir, { hooks: { mappings: next } })
      await expect.poll(() => lines.slice(before).join('\n'), slow).toMatch(/hookloom\.jsonc is live/)
    },
    retry: async () => {
      const headers = { authorization: `Bearer ${gatewayToken}` }
      const answer = await fetch(`${gateway.adminUrl}/api/parked/retry`, { method: 'POST', headers })
      return (await answer.json()) as object
    },
  }
}

/** The messages of the agent turns, in the order of the deliveries. */
export const readMessages = async (store: Store) =>
  (await store.deliveries({ limit: 99 })).flatMap(({ jobs }) =>
    jobs.map(({ planned }) => (planned.kind === 'agent' ? planned.action.message : '')),
  )

type Open = () => Store

export async function openPostgres(): Promise<Open> {
  const { url, drop } = await newSchema()
  closing.push(drop)
  return () => createPostgresStore({ url })
}

async function openSqlite(): Promise<Open> {
  const file = join(makeFolder(), 'hookloom.db')
  return () => createSqliteStore({ file, clock: Date.now })
}

/** For each engine: its name, the reason why the machine lacks it, and a function that returns how to open one store repeatedly. */
export const engines = [
  ['SQLite', undefined, openSqlite],
  ['Postgres', whyNoPostgres, openPostgres],
] as const
