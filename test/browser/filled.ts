// Gateways whose store already has deliveries, as after a restart, on each engine.
import { join } from 'node:path'
import { describe } from 'vitest'
import { createRecord, updateRecord } from '../../src/gateway/deliveries/senders/record.ts'
import { createPostgresStore } from '../../src/store/postgres/postgres.ts'
import { createSqliteStore } from '../../src/store/sqlite/sqlite.ts'
import type { NewDelivery } from '../../src/store/records.ts'
import type { Store } from '../../src/store/store.ts'
import { newSchema, whyNoPostgres } from '../contract/postgres-stage.ts'
import { makeConfigDir } from '../e2e/gateway.ts'
import { onFileEnd } from '../file-end.ts'
import { hasBrowser, mappings } from './stage.ts'

const hourMs = 3_600_000

/** GitHub sent to the hook `code` for a week, and nothing in the last two days. */
export async function addSilentSender(store: Store): Promise<void> {
  const now = Date.now()
  const name = { hook: 'code', source: 'github' }
  await updateRecord(store, name, () => ({
    ...createRecord(name, now - 9 * 24 * hourMs),
    last: now - 48 * hourMs,
    requests: 400,
    hours: { from: Math.floor(now / hourMs) - 9 * 24, counts: Array.from({ length: 168 }, () => 3) },
    silent: { since: now - 48 * hourMs, toldAt: now - 24 * hourMs },
  }))
}

/** `dir`: a config directory for the store. `another`: makes one for a second gateway on the same store, on Postgres only. */
export type Filled = { readonly dir: string; readonly another: (() => string) | undefined }

type FillOptions = {
  readonly config?: object
  readonly deliveries?: readonly NewDelivery[]
  /** Called with the store before a gateway starts. */
  readonly work?: (store: Store) => Promise<void>
}

/** Calls `describe` for each engine. */
export function describeFilled(title: string, tests: (fill: (options: FillOptions) => Promise<Filled>) => void): void {
  describe.skipIf(!hasBrowser)(`${title}, on SQLite`, () => {
    tests(async (options) => {
      const dir = makeConfigDir({ config: options.config ?? { hooks: { mappings } } })
      await fillStore(createSqliteStore({ file: join(dir, 'state/hookloom.db'), clock: Date.now }), options)
      return { dir, another: undefined }
    })
  })
  const reason = whyNoPostgres === undefined ? '' : ` (skipped: ${whyNoPostgres})`
  describe.skipIf(!hasBrowser || whyNoPostgres !== undefined)(`${title}, on Postgres${reason}`, () => {
    tests(async (options) => {
      const { url, drop } = await newSchema()
      onFileEnd(drop)
      const another = () =>
        makeConfigDir({ config: { ...(options.config ?? { hooks: { mappings } }), store: { url } } })
      await fillStore(createPostgresStore({ url }), options)
      return { dir: another(), another }
    })
  })
}

async function fillStore(store: Store, { deliveries = [], work }: FillOptions): Promise<void> {
  for (let at = 0; at < deliveries.length; at += 500) await store.appendAll(deliveries.slice(at, at + 500), [])
  await work?.(store)
  await store.close()
}
