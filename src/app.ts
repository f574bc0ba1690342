// The parts of a gateway, the order in which they start, and the same order reversed to stop.
import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { createEffects } from './effects/effects.ts'
import { createLive, type LiveStatus } from './live/live.ts'
import { loadConfig } from './loader/config.ts'
import { writeStateFile } from './loader/config-file.ts'
import { pickEnv } from './loader/config/env.ts'
import { createTransformRuntime } from './loader/runtime.ts'
import { newId } from './base/id.ts'
import { type Log, silentLog } from './model/log.ts'
import { toGatewayFile, toHandedFile, toStoreFile } from './model/places.ts'
import type { Generation } from './pipeline/generation.ts'
import { createPinnedFetch, type Transport } from './pipeline/verifiers/pinned-fetch.ts'
import { createAdminApp } from './server/admin.ts'
import { createAdmission } from './server/admission.ts'
import { createPeerOf } from './server/client.ts'
import { createMetrics } from './server/metrics.ts'
import { createDrain } from './server/drain.ts'
import { createHandedSecrets } from './server/handed.ts'
import { createMailbox } from './server/mailbox.ts'
import { createReceiver } from './server/receive.ts'
import { Refusals } from './server/refusals.ts'
import { Rerunner } from './server/rerun.ts'
import { createHookApp, listen } from './server/server.ts'
import { createStops, type Stops } from './server/stops.ts'
import { createThrottle } from './server/throttle.ts'
import { createRetention } from './store/retention.ts'
import { createSqliteStore } from './store/sqlite/sqlite.ts'
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
  /** How the certificates and key sets of senders are fetched, behind the rules that say which. Default: over HTTPS. */
  readonly transport?: Transport
  /** Where the console channel writes. */
  readonly write?: (text: string) => void
}

export type Hookloom = {
  /** Base of the hook endpoints, with `hooks.path`. */
  readonly url: string
  readonly adminUrl: string
  readonly generation: () => Generation
  /** What is live, and what was saved and is not. */
  readonly status: () => LiveStatus
  /** Stops listening, finishes or releases what runs, closes the store; each with a limit of time. */
  stop(): Promise<void>
}

const requestGraceMs = 10_000
const jobGraceMs = 10_000
/** A large commit may be under way. */
const storeCloseMs = 30_000

/** Throws `config-missing`, `config-invalid` or `store-locked`; a store that cannot be written now is no reason to stay down. */
export async function createHookloom(options: HookloomOptions): Promise<Hookloom> {
  const stops = createStops(options.log ?? silentLog)
  try {
    return { ...(await start(options, stops)), stop: stops.run }
  } catch (error) {
    await stops.run()
    throw error
  }
}

async function start(options: HookloomOptions, stops: Stops): Promise<Omit<Hookloom, 'stop'>> {
  const { dir, env = process.env, development = false, log = silentLog } = options
  const write = options.write ?? ((text: string) => void process.stdout.write(text))
  const clock = options.clock ?? Date.now
  const { config, env: settings } = loadConfig({ dir, env })

  const file = options.store === undefined ? toStoreFile(dir, config) : undefined
  let { maxWaitingBytes } = config.store
  const opening = { file: toStoreFile(dir, config), maxWaitingBytes: () => maxWaitingBytes, log }
  const store = options.store ?? (await openStore(opening))
  stops.add('the store', () => store.close(), { limitMs: storeCloseMs })
  await ready(store, log)

  const handed = createHandedSecrets({ file: toHandedFile(dir), clock })
  const fetchPinned = createPinnedFetch({ now: clock, ...(options.transport && { transport: options.transport }) })
  let given = { limits: config.hooks.transforms, env: pickEnv(config.hooks.transforms.env, settings) }
  const runtime = createTransformRuntime({
    limits: () => given.limits,
    env: () => given.env,
    clock,
    log,
    onHalfOpen: (module) => void drain.drain([module], { again: true }),
    onRecovered: (module) => void drain.drain([module], { again: true }),
  })
  stops.add('the threads of the transforms', () => runtime.close())
  const metrics = createMetrics({ store, clock })
  const { meter } = metrics
  const live = createLive({
    dir,
    env,
    load: async ({ root, refs, config: { hooks }, env: own }) => {
      given = { limits: hooks.transforms, env: own }
      return { transforms: await runtime.load({ root, refs }), inputs: runtime.inputs() }
    },
    verifierTools: (id) => ({ fetch: fetchPinned, now: clock, handed: () => handed.of(id) }),
    log,
    clock,
    meter,
  })
  stops.add('the reload of the configuration', () => live.close())
  await live.start()
  const current = () => live.current()

  const effects = createEffects({
    dir,
    config: () => current().config,
    ownChannels: live.ownChannels,
    store,
    write,
    env: settings,
    clock,
    newId,
    meter,
    log,
  })
  const { accepted, poke } = effects
  const refusals = new Refusals()
  const stopping = new AbortController()
  const rerunner = new Rerunner({
    generation: current,
    hold: live.hold,
    store,
    clock,
    newId,
    accepted,
    stopping: stopping.signal,
    log,
  })
  const drain = createDrain({ store, rerunner, generation: current, log })
  const signers = createThrottle({ clock })
  const mailbox = createMailbox({
    dir,
    env: settings,
    generation: current,
    store,
    rerunner,
    signers,
    clock,
    newId,
    log,
  })
  const admission = createAdmission({ tokens: createThrottle({ clock }), signers })
  const shared = { generation: current, hold: live.hold, store, refusals, rerunner, handed, newId, accepted, log }
  const receive = createReceiver({ ...shared, meter, admission, clock, development })
  live.onSwap((generation, { mended, retired }) => {
    maxWaitingBytes = generation.config.store.maxWaitingBytes
    effects.refresh()
    mailbox.apply(generation.config)
    void drain.drain(mended)
    // what the generation before parked while it ended may fare better now, too
    void retired.then(() => drain.drain(mended))
  })

  const startedAt = clock()
  effects.start()
  stops.add('the jobs', () => effects.stop({ graceMs: jobGraceMs }), { limitMs: 2 * jobGraceMs })
  stops.add('the parked deliveries', () => drain.stop())
  stops.add('the mailbox', () => mailbox.stop())
  const { host, port, adminPort, bodyTimeoutMs } = config.server
  const edge = { bodyTimeoutMs, log }
  const admin = await listen(createAdminApp({ ...shared, clock, metrics, poke, status: toStatus }), {
    host: '127.0.0.1',
    port: adminPort,
    key: 'server.adminPort',
    ...edge,
  })
  stops.add('the admin port', () => admin.close(0))
  const hookApp = createHookApp({ receive, newId: randomUUID, log })
  const peerOf = createPeerOf(() => current().config.server.trustedProxies)
  const hooks = await listen(hookApp, { host, port, peerOf, ...edge })
  stops.add('the hook port', () => hooks.close(requestGraceMs), { limitMs: 2 * requestGraceMs })
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${hooks.port}${config.hooks.path}`
  const adminUrl = `http://127.0.0.1:${admin.port}`
  stops.add(
    'the address file',
    await announce(dir, { pid: process.pid, url, adminUrl, store: file, startedAt: new Date(startedAt).toISOString() }),
  )

  // first of all: from here on, what is cut off is left for the next start
  stops.add('the waiting deliveries', () => stopping.abort())

  const retention = createRetention({ store, days: () => current().config.store.retainDays, clock, log })
  stops.add('the retention', () => retention.stop())
  void resume()
  mailbox.apply(config)
  await live.watch()
  return { url, adminUrl, generation: current, status: live.status }

  /** What is live, and what of the mailbox does not work. */
  function toStatus() {
    const [status, troubles] = [live.status(), mailbox.problems()]
    return {
      ...status,
      degraded: status.degraded || troubles.length > 0,
      problems: [...status.problems, ...troubles],
    }
  }

  /** What the process before this one left behind, and what it could not do with its code. */
  async function resume(): Promise<void> {
    try {
      await rerunner.resumePending()
      const sound = [...current().transforms.values()].filter(({ problem }) => problem === undefined)
      await drain.drain(
        sound.map(({ module }) => module),
        { again: true },
      )
    } catch (error) {
      log.error({ err: error }, 'what was left waiting could not be read; it waits for the next start')
    }
  }
}

async function openStore(options: { file: string; maxWaitingBytes: () => number; log: Log }): Promise<Store> {
  // what is kept of deliveries is the owner's alone; a folder that cannot be made is told by the store
  await mkdir(dirname(options.file), { recursive: true, mode: 0o700 }).catch(() => undefined)
  return createSqliteStore({ ...options, clock: Date.now })
}

/** Throws `store-locked`; what merely cannot be written now is told, and tried again with each delivery. */
async function ready(store: Store & { ready?: () => Promise<void> }, log: Log): Promise<void> {
  await store.ready?.()
  const { trouble } = await store.health()
  if (trouble !== undefined) log.error({ trouble }, 'the store cannot be written; hooks answer 503 until it can')
}

/** For commands: how the gateway is reached. Gives back what takes the file away. */
async function announce(dir: string, address: object): Promise<() => void> {
  const file = toGatewayFile(dir)
  try {
    await writeStateFile(file, `${JSON.stringify(address)}\n`)
  } catch {
    // a folder that cannot be written is the store's trouble, and told there
  }
  return () => rmSync(file, { force: true })
}
