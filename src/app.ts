// The parts of a gateway, the order in which they start, and the same order reversed to stop.
import { randomUUID } from 'node:crypto'
import { createEffects, type EffectsOptions } from './jobs/jobs.ts'
import { createReplayer } from './replay/replayer.ts'
import { createLive } from './reload/reload.ts'
import type { LiveStatus } from './reload/live-types.ts'
import { loadConfig } from './config/config.ts'
import { createConfigMemory } from './config/config-memory.ts'
import { createTransformRuntime } from './transforms/runtime.ts'
import { newId } from './base/id.ts'
import { type Log, silentLog, withLevel, withoutQuotes } from './model/log.ts'
import { toHandedSecretsFile, describeStorePlace, toStorePlace } from './model/places.ts'
import type { Generation } from './pipeline/generation.ts'
import { createPinnedFetch, type Transport } from './pipeline/verifiers/pinned-fetch.ts'
import { writeAddress } from './config/address.ts'
import { createAdminApp } from './http/admin.ts'
import { createAdmission } from './http/admission.ts'
import { createChanges, withChanges } from './http/api/changes.ts'
import { createClientLookup, createPeerLookup, createUnnamedProxies } from './http/client.ts'
import { createMetrics } from './http/metrics.ts'
import { createDrain } from './deliveries/drain.ts'
import { createHandshakeSecrets, withSaveListener } from './http/handshake-secrets.ts'
import { createMailbox } from './deliveries/mailbox.ts'
import { createNode } from './jobs/node.ts'
import { createReadiness } from './http/readiness.ts'
import { createReceiver } from './http/receive.ts'
import { createRepeats } from './deliveries/repeats.ts'
import { createRefusalLog, Refusals } from './http/refusals.ts'
import { Rerunner } from './deliveries/rerun.ts'
import { createHookApp, listen } from './http/server.ts'
import { createSharing, notShared } from './http/shared.ts'
import { createStops, type Stops } from './base/stops.ts'
import { createThrottle } from './http/throttle.ts'
import type { LeaseTimes } from './store/named-leases.ts'
import { openStore } from './store/open.ts'
import { createRetention } from './store/retention.ts'
import type { Clock, OpenedStore, Store } from './store/store.ts'

export type HookloomOptions = {
  /** The config directory. */
  readonly dir: string
  /** Variables for `${NAME}` in the configuration. Default: the environment of the process. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** `hookloom dev`: answers show the problems of operators, and a repeated delivery of a sender runs again. */
  readonly development?: boolean
  /** Default: the store of the configuration. The gateway closes it. */
  readonly store?: Store
  /** Default: nothing is logged. */
  readonly log?: Log
  /** Milliseconds since the epoch. A store that is handed in has its own clock for leases and timers. */
  readonly clock?: Clock
  /** Fetches the certificates and key sets of senders that the rules allow. Default: over HTTPS. */
  readonly transport?: Transport
  /** In place of `server.port`; 0 is any free port. */
  readonly port?: number | undefined
  /** In place of `server.adminPort`; 0 is any free port. */
  readonly adminPort?: number | undefined
  /** The version of the program, which the other gateways of a store show. */
  readonly version?: string
  /** How long the duties of a gateway that died wait for another one. Tests shorten it. */
  readonly leaseTimes?: LeaseTimes
  /** Prints the replies of the console channel. Default: on standard output. */
  readonly write?: EffectsOptions['write']
}

export type Hookloom = {
  /** Base of the hook endpoints, with `hooks.path`. */
  readonly url: string
  /** Base of the admin port, which is on loopback. */
  readonly adminUrl: string
  /** The configuration and the modules that serve new requests. */
  readonly generation: () => Generation
  /** Which generation is live, and which saved files are not. */
  readonly status: () => LiveStatus
  /** Stops listening, finishes or releases the running jobs, and closes the store. Each step has a time limit. */
  stop(): Promise<void>
}

/** The number of kept requests of each mapping if the configuration does not set it. */
const keptInDevelopment = 100
/** A large commit may still be running. */
const storeCloseMs = 30_000

/**
 * Throws `config-missing`, `config-invalid` or `store-locked`. A store that cannot be written now does not prevent the start:
 * hooks answer 503 until it can. In development, a log line may quote a payload.
 */
export async function createHookloom({ log = silentLog, ...rest }: HookloomOptions): Promise<Hookloom> {
  const options = { ...rest, log: rest.development === true ? log : withoutQuotes(log) }
  const stops = createStops(options.log)
  try {
    return { ...(await start(options, stops)), stop: stops.run }
  } catch (error) {
    await stops.run()
    throw error
  }
}

async function start(options: HookloomOptions & { log: Log }, stops: Stops): Promise<Omit<Hookloom, 'stop'>> {
  const { dir, env = process.env, development = false } = options
  const clock = options.clock ?? Date.now
  const { config, env: settings } = loadConfig({ dir, env })
  const { host, bodyTimeoutMs, stopTimeoutMs } = config.server
  stops.within(stopTimeoutMs)
  const graceMs = stopTimeoutMs / 4
  let level = config.server.log
  const log = withLevel(options.log, () => level)

  // 1. The store.
  const place = toStorePlace(dir, config)
  let { maxWaitingBytes } = config.store
  const opened: Store & Partial<OpenedStore> =
    options.store ?? (await openStore(place, { maxWaitingBytes: () => maxWaitingBytes, log }))
  const changes = createChanges()
  const store = withChanges(opened, changes)
  stops.add('the store', () => store.close(), { limitMs: storeCloseMs })
  await store.ready?.()
  const { trouble, engine } = await store.health()
  if (trouble) log.error({ trouble }, 'the store cannot be written; every hook answers 503 until this is fixed')
  let url: string | undefined
  const info = () => ({ version: options.version ?? 'unknown', generation: generation().id, address: url ?? '' })
  const node = createNode({ store, log, leaseTimes: options.leaseTimes, info })
  stops.add('the duties after a failed start', () => node.stop())
  const { duties, leases } = node
  const metrics = createMetrics({ store, clock })
  const { meter } = metrics

  // 2. The first generation: configuration, mappings and modules.
  const runtime = createTransformRuntime({ clock, log })
  stops.add('the threads of the transforms', () => runtime.close())
  const handedHere = createHandshakeSecrets({ file: toHandedSecretsFile(dir), clock })
  const share = engine === 'postgres' ? createSharing({ store, clock, log, generation: () => generation() }) : notShared
  stops.add('what gateways share', () => share.stop())
  const handed = share.handed(handedHere)
  const fetchPinned = createPinnedFetch({ now: clock, ...(options.transport && { transport: options.transport }) })
  const live = createLive({
    dir,
    env,
    load: async (wanted) => ({ transforms: await runtime.load(wanted), inputs: runtime.inputs() }),
    onConfig: createConfigMemory({ dir, env }),
    verifierTools: (secretsName) => ({ fetch: fetchPinned, now: clock, handed: () => handed.find(secretsName) }),
    log,
    clock,
    meter,
    parkedFor: (module) => store.parkedFor(module),
    compareKept: (...generations) => replayer.between(...generations),
  })
  stops.add('the watcher of the configuration', () => live.close())
  await live.start()
  const { current: generation, acquire } = live
  runtime.serve(generation().transforms)

  // 3. What runs jobs, waiting deliveries and the mailbox.
  const effects = createEffects({
    keepsTime: duties.heartbeats.isHeld,
    dir,
    config: () => generation().config,
    ownChannels: live.ownChannels,
    store,
    write: options.write ?? (({ text }) => void process.stdout.write(text)),
    env: settings,
    clock,
    newId,
    meter,
    log,
  })
  const { accepted: onAccepted, parked: onParked, handedOver, lookForJobs } = effects
  const keepByDefault = development ? keptInDevelopment : false
  const stopping = new AbortController()
  const rerunnerParts = { generation, acquire, store, leases, clock, newId, keepByDefault, onAccepted, onParked, log }
  const rerunner = new Rerunner({ ...rerunnerParts, stopping: stopping.signal })
  const replayer = createReplayer({
    dir,
    current: generation,
    edited: live.edited,
    createThreads: runtime.createReplayThreads,
    store,
    newId,
  })
  const drain = createDrain({ store, rerunner, generation, leases, log })
  const signers = share.throttle('signers', createThrottle({ clock }))
  const unnamedProxies = createUnnamedProxies(() => generation().config.server.trustedProxies)
  const repeats = createRepeats({ store, clock, meter, log })
  const inboxParts = { dir, env: settings, generation, store, rerunner, repeats, clock, newId, log }
  const pushGate = (proxies: readonly string[]) => ({ ...signers, clientOf: createClientLookup(proxies) })
  const mailbox = createMailbox({ ...inboxParts, duty: duties.mailbox, pushGate })

  // 4. What follows a new generation, and a module that may be called again.
  runtime.onRetry((module) => void drain.drain([module], { again: true }))
  live.onSwap((next, { retryable, retired }) => {
    level = next.config.server.log
    maxWaitingBytes = next.config.store.maxWaitingBytes
    runtime.serve(next.transforms)
    effects.refresh()
    mailbox.apply(next.config)
    void node.join()
    void drain.drain(retryable)
    // the last requests of the previous generation may have parked deliveries too
    void retired.then(() => drain.drain(retryable))
  })

  // 5. The start: jobs, then the ports, then waiting deliveries.
  effects.start()
  stops.add('the jobs', () => effects.stop({ graceMs }), { limitMs: 2 * graceMs })
  stops.add('the duties of this gateway', () => node.stop())
  stops.add('the parked deliveries', () => drain.stop())
  // stops after the hook port, which records repetitions
  stops.add('what was repeated', () => repeats.stop())
  stops.add('the mailbox', () => mailbox.stop())
  const refusals = new Refusals(development)
  const idOf = (name: string) => generation().mappings.find(({ identity }) => identity.secretsName === name)?.id ?? name
  const known = { refusals, repeats, handed: withSaveListener(handed, (name) => handedOver(idOf(name))) }
  const shared = { generation, acquire, store, rerunner, ...known, newId, onAccepted, onParked, log }
  const { port = config.server.port, adminPort = config.server.adminPort } = options
  const edge = { bodyTimeoutMs, ports: { hooks: port, admin: adminPort }, log }
  const replays = { ...replayer, publish: live.publish }
  const shown = { dir, changes, replayer: replays, minutes: metrics.minutes, hooksUrl: () => url }
  const peerOf = createPeerLookup(() => generation().config.server.trustedProxies)
  const readiness = createReadiness({ store, peerOf, log })
  const watched = { drain, clock, metrics, lookForJobs, unnamedProxies, readiness, status: readStatus }
  const loopback = { host: '127.0.0.1', port: adminPort, ...edge }
  const admin = await listen(createAdminApp({ ...shared, ...shown, ...watched }), loopback)
  stops.add('the admin port', () => admin.close(0))
  const admission = createAdmission({
    tokens: share.throttle('tokens', createThrottle({ clock })),
    signers,
    unnamedProxies,
  })
  const refusalLog = createRefusalLog(log)
  stops.add('the log of refusals', () => refusalLog.stop())
  const receive = createReceiver({ ...shared, keepByDefault, meter, admission, refusalLog, clock, development })
  await node.join()
  const hookApp = createHookApp({ receive, readiness, newId: randomUUID, log })
  const hooks = await listen(hookApp, { host, port, peerOf, ...edge })
  stops.add('the hook port', () => hooks.close(graceMs), { limitMs: 2 * graceMs })
  url = `http://${host.includes(':') ? `[${host}]` : host}:${hooks.port}${config.hooks.path}`
  void node.join()
  const adminUrl = `http://127.0.0.1:${admin.port}`
  const address = { pid: process.pid, url, adminUrl, startedAt: new Date(clock()).toISOString() }
  const storeFile = options.store === undefined ? { store: describeStorePlace(place) } : {}
  stops.add('the address file', await writeAddress(dir, { ...address, ...storeFile }))
  // stops before the hook port, so that interrupted deliveries wait for the next start
  stops.add('the waiting deliveries', () => stopping.abort())
  const days = () => generation().config.store.retainDays
  const retention = createRetention({ store, days, duty: duties.retention, log })
  stops.add('the deletion of old deliveries', () => retention.stop())
  // stops first, because a balancer must know before the hook port closes
  stops.add('the balancers', () => readiness.retire(graceMs), { limitMs: 2 * graceMs })
  void drain.resume()
  node.start({ effects, drain, mailbox: { apply: () => mailbox.apply(generation().config) } })
  await live.watch()
  return { url, adminUrl, generation, status: live.status }

  /** The state of the saved files, with the problems of the mailbox. */
  function readStatus() {
    const [status, troubles] = [live.status(), mailbox.problems()]
    return {
      ...status,
      degraded: status.degraded || troubles.length > 0,
      problems: [...status.problems, ...troubles],
    }
  }
}
