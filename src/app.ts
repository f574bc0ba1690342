// The parts of a gateway, and the order in which they start. They stop in the reverse order.
import { randomBytes, randomUUID } from 'node:crypto'
import { createJobs, type JobsOptions } from './jobs/jobs.ts'
import { buildPrompt } from './jobs/prompt.ts'
import { createHookBench, type MakeTransform } from './replay/bench.ts'
import { createMappingWarner } from './replay/path-warnings.ts'
import { createReplayer } from './replay/replayer.ts'
import { createShadows } from './replay/shadow.ts'
import { createReload } from './reload/reload.ts'
import { rememberSaves } from './reload/saves.ts'
import type { Live } from './reload/live-types.ts'
import { loadConfig } from './config/config.ts'
import { createConfigMemory } from './config/config-memory.ts'
import { createTransformRuntime } from './transforms/runtime.ts'
import { toLocalUrl } from './base/http.ts'
import { newId } from './base/id.ts'
import { type Log, silentLog, withLevel, withoutQuotes } from './model/log.ts'
import { toHandedSecretsFile, describeStorePlace, toStorePlace } from './model/places.ts'
import type { Generation } from './pipeline/generation.ts'
import type { StateReader } from './pipeline/state.ts'
import { createPinnedFetch, type Transport } from './pipeline/verifiers/pinned-fetch.ts'
import { writeAddress } from './config/address.ts'
import { createAdminApp } from './http/admin.ts'
import { openAccess } from './http/stored-tokens.ts'
import { createAuditor, noteStartAndSaves, noteSecret, noteStop } from './http/audit.ts'
import { createAdmission } from './http/admission.ts'
import { createChanges, withChanges } from './store/changes.ts'
import { createClientLookup, createPeerLookup, createUnnamedProxies } from './http/client.ts'
import { createMetrics } from './http/metrics.ts'
import { createDrain } from './deliveries/drain.ts'
import { createHandshakeSecrets, withSaveListener } from './http/handshake-secrets.ts'
import { createMailbox } from './deliveries/mailbox.ts'
import { createNode } from './jobs/node.ts'
import { createReadiness } from './http/readiness.ts'
import { createRecovery } from './deliveries/recovery/recovery.ts'
import { createReceiver } from './http/receive.ts'
import { createRepeats } from './deliveries/repeats.ts'
import { createQuarantine } from './deliveries/refused/quarantine.ts'
import { createRefusedCalls } from './deliveries/refused/calls.ts'
import { createSealKeys } from './deliveries/refused/seal.ts'
import { createRefusalLog, Refusals } from './http/refusals.ts'
import { createSenderWatch } from './deliveries/senders/watch.ts'
import { createShapeLearner } from './deliveries/shapes/learner.ts'
import { Rerunner } from './deliveries/rerun.ts'
import { createHookApp, listen } from './http/server.ts'
import { createSharing, noSharing } from './http/shared.ts'
import { createStops, type Stops } from './base/stops.ts'
import { createThrottle } from './http/throttle.ts'
import type { LeaseTimes } from './store/named-leases.ts'
import { openStore } from './store/open.ts'
import { createRetention } from './store/retention.ts'
import type { Clock, OpenedStore, Store } from './store/store.ts'

export type HookloomOptions = {
  /** The config directory. */
  readonly dir: string
  /** The variables for `${NAME}` in the configuration. Default: the environment of the process. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** True for `hookloom dev`: answers show the problems of operators, and a repeated delivery of a sender runs again. */
  readonly development?: boolean
  /** The store, which the gateway closes. Default: the store of the configuration. */
  readonly store?: Store
  /** Default: logs nothing. */
  readonly log?: Log
  /** Returns milliseconds since the epoch. The store uses its own clock for leases and timers. */
  readonly clock?: Clock
  /** Fetches the certificates and key sets of senders, from the URLs that the rules allow. Default: over HTTPS. */
  readonly transport?: Transport
  /** Replaces `server.port`. 0 is any free port. */
  readonly port?: number | undefined
  /** Replaces `server.adminPort`. 0 is any free port. */
  readonly adminPort?: number | undefined
  /** The version of the program, which other gateways on the same store show. */
  readonly version?: string
  /** How long the duties of a dead gateway wait before another gateway takes them. Tests shorten this time. */
  readonly leaseTimes?: LeaseTimes
  /** Called when the stored shapes of a hook's payloads have changed. */
  readonly onShapeWritten?: ((hook: string) => void) | undefined
  /** Makes a transform from a request, for the page. Default: the page makes no transforms. */
  readonly makeTransform?: MakeTransform | undefined
  /** Prints the replies of the console channel. Default: on standard output. */
  readonly write?: JobsOptions['write']
}

export type Hookloom = Pick<Live, 'status' | 'reload'> & {
  /** The base URL of the hook endpoints, including `hooks.path`. */
  readonly url: string
  /** The base URL of the admin port, with an address that this machine can call. */
  readonly adminUrl: string
  /** The live generation: the configuration and the modules that serve new requests. */
  readonly generation: () => Generation
  /** Stops listening, finishes or releases the running jobs, and closes the store, each within a time limit. `signal`: the cause. */
  stop(signal?: string): Promise<void>
}

/** The number of kept requests of each mapping in development, if the configuration does not set it. */
const keptInDevelopment = 100
/** The time limit for closing the store, because a large commit may still be running. */
const storeCloseMs = 30_000

/**
 * Throws `config-missing`, `config-invalid` or `store-locked`. A store that cannot be written does not prevent the start: hooks answer 503
 * until it can be written. Only in development may a log line quote a payload.
 */
export async function createHookloom({ log = silentLog, ...rest }: HookloomOptions): Promise<Hookloom> {
  const options = { ...rest, log: rest.development === true ? log : withoutQuotes(log) }
  const stops = createStops(options.log)
  try {
    return await start(options, stops)
  } catch (error) {
    await stops.run()
    throw error
  }
}

async function start(options: HookloomOptions & { log: Log }, stops: Stops): Promise<Hookloom> {
  const { dir, env = process.env, development = false, clock = Date.now, onShapeWritten, makeTransform } = options
  const { config, env: settings } = loadConfig({ dir, env })
  const { host, adminHost, bodyTimeoutMs, keepAliveTimeoutMs, stopTimeoutMs } = config.server
  stops.setTotalLimitMs(stopTimeoutMs)
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
  const auditor = createAuditor({ store, gateway: node.id, isLoggedAsInfo: !development, log })
  stops.add('the audit log', () => auditor.stop())
  const metrics = createMetrics({ store, config: () => generation().config, clock, version: options.version })
  const { meter, minutes, hookCounts } = metrics

  // 2. The first generation: configuration, mappings and modules.
  const runtime = createTransformRuntime({ clock, log })
  stops.add('the threads of the transforms', () => runtime.close())
  const share = engine === 'postgres' ? createSharing({ store, clock, log, generation: () => generation() }) : noSharing
  stops.add('what gateways share', () => share.stop())
  const handed = share.handed(createHandshakeSecrets({ file: toHandedSecretsFile(dir), clock }))
  const fetchPinned = createPinnedFetch({ now: clock, ...(options.transport && { transport: options.transport }) })
  const live = createReload({
    dir,
    env,
    load: async (wanted) => ({ transforms: await runtime.load(wanted), inputs: runtime.inputs() }),
    onConfig: createConfigMemory({ dir, env }),
    verifierTools: (secretsName) => ({ fetch: fetchPinned, now: clock, handed: () => handed.find(secretsName) }),
    log,
    clock,
    meter,
    parkedFor: (module) => store.countParkedFor(module),
    compareKept: (...generations) => replayer.compareGenerations(...generations),
    onReload: () => void shadows.refresh(),
  })
  stops.add('the watcher of the configuration', () => live.close())
  await live.start()
  const { current: generation, acquire } = live
  stops.add('the remembered saves', rememberSaves(live, { dir, clock, log }))
  runtime.serve(generation().transforms)

  // 3. The parts that run jobs, waiting deliveries and the mailbox.
  const jobs = createJobs({
    duties,
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
  const { onAccepted, onParked, reportSecret, alert, testAlert, lookForJobs, slots } = jobs
  const keepByDefault = development ? keptInDevelopment : false
  const stopping = new AbortController()
  const readState: StateReader = (name) => rerunner.state.read(name)
  const shadows = createShadows({ dir, generation, readState, clock, newId, meter, log })
  stops.add('the shadows of the transforms', () => shadows.stop())
  const stored = { generation, acquire, store, leases, clock, newId, keepByDefault, log }
  const rerunnerParts = { ...stored, lookForNew: jobs.lookForNew, onAccepted, onParked, onDecided: shadows.note }
  const rerunner = new Rerunner({ ...rerunnerParts, stopping: stopping.signal })
  const { createReplayThreads: createThreads } = runtime
  const disk = { current: generation, edited: live.requireEdited, reload: live.reload }
  const replayParts = { dir, ...disk, createThreads, store, newId }
  const replayer = createReplayer(replayParts)
  // one id for all prompts, so that a shown prompt does not change at each keystroke; no agent reads these prompts
  const boundaryId = randomBytes(8).toString('hex')
  const { capture } = replayer
  const benchParts = { ...replayParts, env, savesTemplates: development, makeTransform, capture, clock }
  const bench = createHookBench({
    ...benchParts,
    renderPrompt: (planned) =>
      planned.kind === 'agent' ? buildPrompt({ planned, newBoundaryId: () => boundaryId }) : undefined,
  })
  stops.add('the bench', () => bench.close())
  const drain = createDrain({ store, rerunner, generation, leases, log })
  const throttle = (scope: string) => share.throttle(scope, createThrottle({ clock }))
  const signers = throttle('signers')
  const unnamedProxies = createUnnamedProxies(() => generation().config.server.trustedProxies)
  const repeats = createRepeats({ store, clock, meter, log })
  const senders = createSenderWatch({ store, generation, clock, duty: duties.senders, alert, log })
  const shapes = createShapeLearner({ store, development, watched: { generation, alert }, onShapeWritten, log })
  const inboxParts = { dir, env: settings, generation, store, rerunner, repeats, clock, newId, log }
  const pushGate = (proxies: readonly string[]) => ({ ...signers, clientOf: createClientLookup(proxies) })
  const recovery = createRecovery({ ...inboxParts, duty: duties.recovery, alert: jobs.reportRecovery })
  const mailbox = createMailbox({ ...inboxParts, duty: duties.mailbox, pushGate })

  // 4. The work when a new generation goes live, and when a module may be called again.
  live.onSwap(createMappingWarner({ dir, store, log }))
  runtime.onRetry((module) => void drain.drain([module], { again: true }))
  live.onSwap((next, { retryable, retired }) => {
    level = next.config.server.log
    maxWaitingBytes = next.config.store.maxWaitingBytes
    runtime.serve(next.transforms)
    jobs.refresh()
    mailbox.apply(next.config)
    recovery.apply()
    void node.join()
    void drain.drain(retryable)
    // the last requests of the previous generation may have parked deliveries too
    void retired.then(() => drain.drain(retryable))
  })

  // 5. The start: first jobs, then the ports, then waiting deliveries.
  jobs.start()
  stops.add('the jobs', () => jobs.stop({ graceMs }), { limitMs: 2 * graceMs })
  stops.add('the duties of this gateway', () => node.stop())
  stops.add('the parked deliveries', () => drain.stop())
  // the next two stop after the hook port, which records repetitions and refusals
  stops.add('what was repeated and learnt', () => Promise.all([repeats.stop(), shapes.stop()]))
  stops.add('the watch of the senders', senders.start())
  stops.add('the mailbox', () => mailbox.stop())
  stops.add('the questions to senders', () => recovery.stop())
  const [refusals, keys] = [new Refusals(development), createSealKeys()]
  const quarantine = createQuarantine({ store, generation, keys, clock, log })
  stops.add('the refused requests that are kept', () => quarantine.stop())
  const saved = withSaveListener(handed, (name) => reportSecret(noteSecret(auditor, generation(), name)))
  const known = { refusals, repeats, quarantine, handed: saved }
  const shared = { ...rerunnerParts, rerunner, ...known, senders, shapes, lookForJobs, auditor }
  const { port = config.server.port, adminPort = config.server.adminPort } = options
  const edge = { bodyTimeoutMs, keepAliveTimeoutMs, ports: { hooks: port, admin: adminPort }, log }
  const replays = { ...replayer, publish: live.publish, shadows: shadows.list }
  const shown = { dir, testAlert, changes, replayer: replays, bench, minutes, hookCounts, slots, hooksUrl: () => url }
  const peerOf = createPeerLookup(() => generation().config.server.trustedProxies)
  const readiness = createReadiness({ store, peerOf, log })
  const watched = { drain, recovery, metrics, unnamedProxies, readiness, status: readStatus }
  const access = await openAccess({ store, clock, log })
  stops.add('the tokens of the store', () => access.tokens.stop())
  const admission = createAdmission({ access, tokens: throttle('tokens'), signers, unnamedProxies })
  const refusalLog = createRefusalLog(log)
  stops.add('the log of refusals', () => refusalLog.stop())
  const receiver = createReceiver({ ...shared, access, meter, admission, refusalLog, development })
  const token = () => generation().config.gateway.token
  const refused = createRefusedCalls({ store, keys, token, quarantine, receiveRefused: receiver.receiveRefused })
  const adminApp = createAdminApp({ ...shared, ...shown, ...watched, access, refused, adminHost })
  const admin = await listen(adminApp, { host: adminHost, port: adminPort, ...edge })
  stops.add('the admin port', () => admin.close(0))
  await node.join()
  const hookApp = createHookApp({ receive: receiver.receive, readiness, newId: randomUUID, log })
  const hooks = await listen(hookApp, { host, port, peerOf, ...edge })
  stops.add('the hook port', () => hooks.close(graceMs), { limitMs: 2 * graceMs })
  url = `http://${host.includes(':') ? `[${host}]` : host}:${hooks.port}${config.hooks.path}`
  void node.join()
  const adminUrl = toLocalUrl(adminHost, admin.port)
  const address = { pid: process.pid, url, adminUrl, startedAt: new Date(clock()).toISOString() }
  const storeFile = options.store === undefined ? { store: describeStorePlace(place) } : {}
  stops.add('the address file', await writeAddress(dir, { ...address, ...storeFile }))
  // added after the hook port, so stopped before it: interrupted deliveries wait for the next start
  stops.add('the waiting deliveries', () => stopping.abort())
  const retention = createRetention({ store, days: () => generation().config.store, duty: duties.retention, log })
  stops.add('the deletion of old deliveries', () => retention.stop())
  // added last, so stopped first: a balancer must know of the stop before the hook port closes, and no waiting request may delay it
  stops.add('the balancers', () => readiness.retire(graceMs), { limitMs: 2 * graceMs })
  stops.add('the requests that wait', receiver.stopWaiting)
  void drain.resume()
  node.start({ jobs, drain, recovery, mailbox: { apply: () => mailbox.apply(generation().config) } })
  noteStartAndSaves(auditor, info(), live)
  await live.watch()
  const { status, reload } = live
  return { url, adminUrl, generation, status, reload, stop: (signal) => noteStop(auditor, signal, stops.run) }

  /** The state of the saved files, and the problems of the mailbox. */
  function readStatus() {
    const [status, troubles] = [live.status(), mailbox.problems()]
    return { ...status, degraded: status.degraded || troubles.length > 0, problems: [...status.problems, ...troubles] }
  }
}
