// The parts of a gateway, the order in which they start, and the same order reversed to stop.
import { rmSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { v7 as newId } from 'uuid'
import { assembleGeneration } from './assemble.ts'
import { createConsoleChannel } from './effects/channels/console.ts'
import { createEchoRunner } from './effects/runners/echo.ts'
import { createWorker } from './effects/worker.ts'
import { loadConfig } from './loader/config.ts'
import type { Config } from './model/config.ts'
import { type Log, silentLog } from './model/log.ts'
import { toGatewayFile, toHandedFile, toStoreFile } from './model/places.ts'
import type { Generation } from './pipeline/generation.ts'
import { createAdminApp } from './server/admin.ts'
import { createPinnedFetch } from './pipeline/verifiers/pinned-fetch.ts'
import { createAdmission } from './server/admission.ts'
import { createHandedSecrets } from './server/handed.ts'
import { createReceiver } from './server/receive.ts'
import { Refusals } from './server/refusals.ts'
import { Rerunner } from './server/rerun.ts'
import { createHookApp, listen } from './server/server.ts'
import { createThrottle } from './server/throttle.ts'
import { createSqliteStore } from './store/sqlite.ts'
import type { Clock, Store } from './store/store.ts'

export type HookloomOptions = {
  /** The config directory. */
  readonly dir: string
  readonly env?: Readonly<Record<string, string | undefined>>
  /** `hookloom dev`: answers show operators' problems, and a sender's redelivery runs again. */
  readonly development?: boolean
  /** Default: the SQLite file of `store.file`. The gateway closes it. */
  readonly store?: Store
  readonly log?: Log
  /** Milliseconds since the epoch. Leases and timers of a store that is handed in go by its own clock. */
  readonly clock?: Clock
  /** Where the console channel writes. */
  readonly write?: (text: string) => void
}

export type Hookloom = {
  /** Base of the hook endpoints, with `hooks.path`. */
  readonly url: string
  readonly adminUrl: string
  readonly generation: () => Generation
  /** Stops listening, finishes or releases what runs, closes the store; each with a limit of time. */
  stop(): Promise<void>
}

const requestGraceMs = 10_000
const jobGraceMs = 10_000
const sweepEveryMs = 3_600_000

/** Throws `config-missing`, `config-invalid` or `store-locked`; a store that cannot be written now is no reason to stay down. */
export async function createHookloom(options: HookloomOptions): Promise<Hookloom> {
  const { dir, env = process.env, development = false, log = silentLog } = options
  const write = options.write ?? ((text: string) => void process.stdout.write(text))
  const clock = options.clock ?? Date.now
  const { config } = loadConfig({ dir, env })
  const handed = createHandedSecrets({ file: toHandedFile(dir), clock })
  const fetchPinned = createPinnedFetch({ now: clock })
  const verifierTools = (id: string) => ({ fetch: fetchPinned, now: clock, handed: () => handed.of(id) })
  const generation = await assembleGeneration({ dir, config, verifierTools })
  const current = () => generation
  for (const { detail, frame } of generation.problems) log.warn({ frame }, detail)

  const store = options.store ?? (await openStore(dir, config, log))
  const worker = createWorker({
    store,
    runner: createEchoRunner(),
    channels: new Map([['console', createConsoleChannel({ write })]]),
    settings: () => toSettings(current().config),
    clock,
    random: Math.random,
    log,
  })
  const accepted = () => worker.poke()
  const refusals = new Refusals()
  const rerunner = new Rerunner({ generation: current, store, clock, newId, accepted, log })
  const admission = createAdmission({ tokens: createThrottle({ clock }), signers: createThrottle({ clock }) })
  const shared = { generation: current, store, refusals, rerunner, handed, newId, accepted }
  const receive = createReceiver({ ...shared, admission, clock, development, log })

  const { host, port, adminPort, bodyTimeoutMs } = config.server
  const edge = { bodyTimeoutMs, log }
  const hooks = await listen(createHookApp({ receive, newId }), { host, port, ...edge })
  const admin = await listen(createAdminApp(shared), { host: '127.0.0.1', port: adminPort, ...edge })
  const url = `http://${toUrlHost(host)}:${hooks.port}${config.hooks.path}`
  const adminUrl = `http://127.0.0.1:${admin.port}`
  const forgetAddress = announce(dir, { pid: process.pid, url, adminUrl, startedAt: new Date(clock()).toISOString() })
  worker.start()
  void rerunner
    .resumePending()
    .catch((error: unknown) => log.error({ err: error }, 'pending deliveries wait for a restart'))
  const sweep = setInterval(() => void sweepOnce(store, config, clock(), log), sweepEveryMs)
  sweep.unref()

  return {
    url,
    adminUrl,
    generation: current,
    async stop() {
      clearInterval(sweep)
      forgetAddress()
      await hooks.close(requestGraceMs)
      await admin.close(0)
      await worker.stop({ graceMs: jobGraceMs })
      await store.close()
    },
  }
}

async function openStore(dir: string, config: Config, log: Log): Promise<Store> {
  const file = toStoreFile(dir, config)
  // what is kept of deliveries is the owner's alone
  await mkdir(dirname(file), { recursive: true, mode: 0o700 }).catch(() => undefined)
  const store = createSqliteStore({ file, clock: Date.now, log })
  try {
    await store.ready()
  } catch (error) {
    await store.close()
    throw error
  }
  const { trouble } = await store.health()
  if (trouble !== undefined) log.error({ trouble }, 'the store cannot be written; hooks answer 503 until it can')
  return store
}

function toSettings({ agents, channels }: Config) {
  return { maxConcurrent: agents.defaults.maxConcurrent, defaultRoute: channels.default }
}

function announce(dir: string, address: object): () => void {
  const file = toGatewayFile(dir)
  try {
    writeFileSync(file, `${JSON.stringify(address)}\n`)
  } catch {
    // a folder that cannot be written is the store's trouble, and told there
  }
  return () => rmSync(file, { force: true })
}

function toUrlHost(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}

async function sweepOnce(store: Store, config: Config, now: number, log: Log): Promise<void> {
  try {
    const deleted = await store.sweep(now - config.store.retainDays * 86_400_000)
    if (deleted > 0) log.info({ deliveries: deleted }, 'deliveries past store.retainDays were deleted')
  } catch (error) {
    log.warn({ err: error }, 'old deliveries could not be deleted; the next hour tries again')
  }
}
