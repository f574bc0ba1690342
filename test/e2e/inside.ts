// A gateway in the test's own process, on loopback, closed when the test file ends.
import { join } from 'node:path'
import { createHookloom, type HookloomOptions } from '../../src/app.ts'
import { createSqliteReader } from '../../src/store/sqlite/sqlite.ts'
import type { StoreReader } from '../../src/store/store.ts'
import { onFileEnd } from '../file-end.ts'
import { gatewayToken, type GatewayOptions, makeConfigDir, writeFiles } from './gateway.ts'

export type Inside = {
  readonly dir: string
  readonly port: number
  /** Base of the hook endpoints, with the prefix. */
  readonly url: string
  readonly adminUrl: string
  stop(): Promise<void>
}

type InsideOptions = Pick<GatewayOptions, 'config' | 'files' | 'dir'> &
  Partial<
    Pick<HookloomOptions, 'store' | 'leaseTimes' | 'log' | 'write' | 'env' | 'development' | 'makeTransform' | 'clock'>
  >

/** Replies to the console channel are dropped, unless `write` is given. */
export async function startInside({ config, files, dir: given, ...options }: InsideOptions = {}): Promise<Inside> {
  const dir = given ?? makeConfigDir(config === undefined ? {} : { config })
  writeFiles(dir, files ?? {})
  const app = await createHookloom({ dir, env: {}, write: () => {}, ...options })
  let stopping: Promise<void> | undefined
  const stop = () => (stopping ??= app.stop())
  onFileEnd(stop)
  return {
    dir,
    port: Number(new URL(app.url).port),
    url: app.url,
    adminUrl: app.adminUrl,
    stop,
  }
}

/** Reads the store of a gateway that may be running. */
export async function readStore<Found>(dir: string, read: (reader: StoreReader) => Promise<Found>): Promise<Found> {
  const reader = createSqliteReader({ file: join(dir, 'state/hookloom.db') })
  try {
    return await read(reader)
  } finally {
    await reader.close()
  }
}

/** The first job of the newest delivery. */
export async function readNewestJob({ dir }: Pick<Inside, 'dir'>) {
  const records = await readStore(dir, (store) => store.deliveries({ limit: 9 }))
  return records.at(-1)?.jobs[0]
}

/** Why the gateway serves less than is saved, as sentences. */
export async function readDegradedBy({ adminUrl }: Inside): Promise<string[]> {
  const answer = await fetch(`${adminUrl}/readyz`, { headers: { authorization: `Bearer ${gatewayToken}` } })
  const { problems } = (await answer.json()) as { problems: { detail: string }[] }
  return problems.map(({ detail }) => detail)
}
