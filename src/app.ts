// The parts of a gateway, and the order in which they start. They stop in the reverse order.
import { randomBytes, randomUUID } from 'node:crypto'
import { createJobs, type JobsOptions } from './gateway/jobs/jobs.ts'
import { buildPrompt } from './gateway/jobs/prompt.ts'
import { createHookBench, type MakeTransform } from './gateway/replay/bench.ts'
import { createWarner } from './gateway/replay/path-warnings.ts'
import { createReplayer } from './gateway/replay/replayer.ts'
import { createShadows } from './gateway/replay/shadow.ts'
import { createReload } from './gateway/reload/reload.ts'
import { createSaveMemory, findSave } from './gateway/reload/saves.ts'
import type { Live, SwapListener } from './gateway/reload/live-types.ts'
import { loadConfig } from './gateway/config/config.ts'
import { createConfigMemory } from './gateway/config/config-memory.ts'
import { createTransformRuntime } from './core/transforms/runtime.ts'
import { toLocalUrl } from './base/http.ts'
import { newId } from './base/id.ts'
import { notifyAll } from './base/listeners.ts'
import { type Log, silentLog, withLevel, withoutQuotes } from './base/log.ts'
import { toHandedSecretsFile, describeStorePlace, toStorePlace } from './model/places.ts'
import type { Generation } from './gateway/generation/generation.ts'
import { createPinnedFetch, type Transport } from './gateway/proofs/verifiers/pinned-fetch.ts'
import { writeAddress } from './gateway/config/address.ts'
import { createAdminApp } from './gateway/http/admin.ts'
import { openAccess } from './gateway/http/stored-tokens.ts'
import { createAuditor, noteReload, noteStart, noteSecret, noteStop } from './gateway/http/audit.ts'
import { createAdmission } from './gateway/http/admission.ts'
import { createChanges, withChanges } from './store/changes.ts'
import { createClientLookup, createPeerLookup, createUnnamedProxies } from './gateway/http/client.ts'
import { createDayOfStore, createHourOfStore } from './gateway/http/api/hour-of-store.ts'
import { createMetrics } from './gateway/http/metrics.ts'
import { createOthers } from './gateway/http/api/others.ts'
import { createMount, type HookHandler } from './gateway/http/mount.ts'
import { createArrivals } from './gateway/deliveries/arrivals.ts'
import { createDrain } from './gateway/deliveries/drain.ts'
import {
  countStored,
  type OnDecided,
  type OnRepeated,
  type OnStored,
  reportParked,
} from './gateway/deliveries/listeners.ts'
import { logStored } from './gateway/deliveries/log-lines.ts'
import { createModuleState } from './gateway/deliveries/module-state.ts'
import { createSettler } from './gateway/deliveries/settle.ts'
import { createHandshakeSecrets, withSaveListener } from './gateway/http/handshake-secrets.ts'
import { createSourceReader } from './gateway/deliveries/source-files.ts'
import { createRunnerPasses } from './gateway/deliveries/runner-passes.ts'
import { createSources } from './gateway/deliveries/sources.ts'
import { createNode } from './gateway/jobs/node.ts'
import { createReadiness } from './gateway/http/readiness.ts'
import { outboxes } from './plugins/outboxes/index.ts'
import { createRecovery } from './gateway/deliveries/recovery/recovery.ts'
import { createEntry } from './gateway/http/entry.ts'
import { createReceiver } from './gateway/http/receive.ts'
import { createRefuser, describeRefusal, logInternalError, type OnRefused } from './gateway/http/refuse.ts'
import { createRuns } from './gateway/http/runs.ts'
import { createAwaits } from './gateway/http/awaits.ts'
import { createServed } from './gateway/http/served.ts'
import { createWaiters } from './gateway/http/waiters.ts'
import { recordRefusal } from './gateway/http/spans.ts'
import { createRepeats, toRepeatedDelivery } from './gateway/deliveries/repeats.ts'
import { createQuarantine } from './gateway/deliveries/refused/quarantine.ts'
import { createRefusedCalls } from './gateway/deliveries/refused/calls.ts'
import { createQuarantineKeys } from './gateway/deliveries/refused/seal.ts'
import { createRefusalLog, Refusals } from './gateway/http/refusals.ts'
import { createSenderWatch } from './gateway/deliveries/senders/watch.ts'
import { createShapeLearner } from './gateway/deliveries/shapes/learner.ts'
import { Rerunner } from './gateway/deliveries/rerun.ts'
import { createHookApp, listen } from './gateway/http/server.ts'
import { createSharing, noSharing } from './gateway/http/shared.ts'
import { createStops, type Stops } from './base/stops.ts'
import { createThrottle } from './gateway/http/throttle.ts'
import type { LeaseTimes } from './store/named-leases.ts'
import { openStore } from './store/open.ts'
import { createRetention } from './store/retention.ts'
import { createRunnerState } from './store/runner-state.ts'
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
  /** The base URL of a server that calls `handler`, such as `http://127.0.0.1:3000`. The gateway then opens no hook port. */
  readonly mountedAt?: string | undefined
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

export type Hookloom = Pick<Live, 'status' | 'reload' | 'describeThrower'> & {
  /** The base URL of the hook endpoints, including `hooks.path`. */
  readonly url: string
  /** The base URL of the admin port, with an address that this machine can call. */
  readonly adminUrl: string
  /** The hooks as a part of a server of the host, beside the hook port or, with `mountedAt`, in place of it. */
  readonly handler: HookHandler
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
  const { meter } = metrics

  // 2. The first generation: configuration, mappings and modules.
  const runtime = createTransformRuntime({
    clock,
    log,
    onRetry: (module) => void drain.drain([module], { again: true }),
  })
  stops.add('the threads of the transforms', () => runtime.close())
  const share = engine === 'postgres' ? createSharing({ store, clock, log, generation: () => generation() }) : noSharing
  stops.add('what gateways share', () => share.stop())
  const sharedSecrets = share.handed(createHandshakeSecrets({ file: toHandedSecretsFile(dir), clock }))
  const fetchPinned = createPinnedFetch({ now: clock, ...(options.transport && { transport: options.transport }) })
  const live = createReload({
    dir,
    env,
    load: async (wanted) => ({ transforms: await runtime.load(wanted), inputs: runtime.inputs() }),
    onConfig: createConfigMemory({ dir, env }),
    verifierTools: (secretsName) => ({ fetch: fetchPinned, now: clock, handed: () => sharedSecrets.find(secretsName) }),
    log,
    clock,
    meter,
    parkedFor: (module) => store.countParkedFor(module),
    compareKept: (...generations) => replayer.compareGenerations(...generations),
    onReload: () => void shadows.refresh(),
    onSwap: (next, swap) => onSwap(next, swap),
    onCompared: (...found) => saves.noteChanges(...found),
    onReport: (report) => noteReload(auditor, report),
  })
  stops.add('the watcher of the configuration', () => live.close())
  await live.start()
  const { current: generation, acquire } = live
  const saves = createSaveMemory(live, { dir, clock, log })
  stops.add('the remembered saves', () => saves.stop())
  saves.remember()
  runtime.serve(generation().transforms)

  // 3. The parts that run jobs, and those that are told of deliveries.
  const sourceFiles = createSourceReader({ dir, generation, own: () => live.ownParts().sources, clock })
  stops.add('the files of the sources', sourceFiles.stop)
  const jobs = createJobs({
    duties,
    dir,
    config: () => generation().config,
    ownParts: live.ownParts,
    readSourceFiles: sourceFiles.read,
    noteAct: auditor.note,
    openState: (id) => createRunnerState({ store, id, clock }),
    store,
    write: options.write ?? (({ text }) => void process.stdout.write(text)),
    env: settings,
    clock,
    newId,
    meter,
    log,
  })
  const { alert, lookForJobs } = jobs
  const state = createModuleState({ store, clock, log })
  const shadows = createShadows({ dir, generation, readState: state.read, clock, newId, meter, log })
  stops.add('the shadows of the transforms', () => shadows.stop())
  const repeats = createRepeats({ store, clock, meter, log })
  const senders = createSenderWatch({ store, generation, clock, duty: duties.senders, alert, log })
  const shapes = createShapeLearner({ store, development, watched: { generation, alert }, onShapeWritten, log })
  const refusals = new Refusals(development)
  const refusalLog = createRefusalLog(log)

  // 4. The listeners, in the order of their calls. Those of the stop are in `stops`, in the reverse order.
  const onStored: OnStored = notifyAll(log, [
    (stored) => countStored(stored, meter),
    (stored) => logStored(stored, log),
    (stored) => reportParked(stored, jobs.onParked),
    senders.onStored,
    ({ kind, delivery, hook }) => kind === 'new' && shapes.note(delivery, hook),
    ({ settlement }) => jobs.onAccepted(settlement.jobs),
  ])
  const onDecided: OnDecided = notifyAll(log, [shadows.note])
  const onRepeated: OnRepeated = notifyAll(log, [
    senders.onRepeated,
    ({ delivery, hook, first }) => repeats.note(toRepeatedDelivery(delivery, hook, first)),
  ])
  const onRefused: OnRefused = notifyAll(log, [
    ({ problem, label }) => meter('refusals', { code: problem.code, hook: label }),
    recordRefusal,
    ({ refusal }) => refusals.add(refusal),
    ({ refusal, headers, generation: current }) => senders.noteRefused(refusal, headers, current),
    (refused) => (development ? log.info({}, describeRefusal(refused)) : refusalLog.count(refused.refusal)),
    (refused) => logInternalError(refused, log),
  ])
  const warn = createWarner({ dir, store, log })
  const onSwap = notifyAll<Parameters<SwapListener>>(log, [
    saves.remember,
    warn,
    (next) => {
      level = next.config.server.log
      maxWaitingBytes = next.config.store.maxWaitingBytes
    },
    (next) => runtime.serve(next.transforms),
    jobs.refresh,
    (next) => sources.apply(next.config),
    () => recovery.apply(),
    () => runnerPasses.apply(),
    () => served.end(),
    () => void node.join(),
    (_next, { retryable, retired }) => {
      void drain.drain(retryable)
      // the last requests of the previous generation may have parked deliveries too
      void retired.then(() => drain.drain(retryable))
    },
  ])

  // 5. The parts that settle deliveries, also those that wait or come from elsewhere.
  const stopping = new AbortController()
  const settler = createSettler({
    store,
    state,
    clock,
    newId,
    keepByDefault: development ? keptInDevelopment : false,
    lookForNew: jobs.lookForNew,
    onStored,
    onRepeated,
    onDecided,
  })
  const rerunner = new Rerunner({
    generation,
    acquire,
    store,
    settler,
    leases,
    clock,
    newId,
    stopping: stopping.signal,
    log,
  })
  const drain = createDrain({ store, rerunner, generation, leases, log })
  const signers = share.throttle('signers', createThrottle({ clock }))
  const recovery = createRecovery({
    generation,
    outboxes: () => [...outboxes, ...live.ownParts().outboxes],
    store,
    rerunner,
    duty: duties.recovery,
    alert: jobs.reportRecovery,
    clock,
    newId,
    log,
  })
  const sources = createSources({
    dir,
    env: settings,
    generation,
    store,
    rerunner,
    repeats,
    own: () => live.ownParts().sources,
    duty: duties.mailbox,
    gate: (proxies) => ({
      clientOf: createClientLookup(proxies),
      readLockSeconds: signers.readLockSeconds,
      fail: signers.fail,
    }),
    receive: (request) => handler.receive(request),
    clock,
    newId,
    log,
  })

  const runnerPasses = createRunnerPasses({
    runners: () => Object.keys(generation().config.runners).flatMap((name) => jobs.findRunner(name) ?? []),
    duty: duties.runners,
    clock,
    log,
  })

  // 6. The parts that run code without effects.
  const createThreads = runtime.createReplayThreads
  const edited = live.requireEdited
  const replayer = createReplayer({
    dir,
    current: generation,
    edited,
    reload: live.reload,
    createThreads,
    store,
    newId,
  })
  // one id for all prompts, so that a shown prompt does not change at each keystroke; no agent reads these prompts
  const boundaryId = randomBytes(8).toString('hex')
  const bench = createHookBench({
    dir,
    env,
    current: generation,
    edited,
    createThreads,
    store,
    development,
    makeTransform,
    replayer,
    findTargets: jobs.findTargets,
    renderPrompt: (planned) =>
      planned.kind === 'agent' ? buildPrompt({ planned, newBoundaryId: () => boundaryId }) : undefined,
    clock,
    newId,
  })
  stops.add('the bench', () => bench.close())

  // 7. The start: first jobs, then the ports, then waiting deliveries.
  jobs.start()
  stops.add('the jobs', () => jobs.stop({ graceMs }), { limitMs: 2 * graceMs })
  stops.add('the duties of this gateway', () => node.stop())
  stops.add('the parked deliveries', () => drain.stop())
  // the next two stop after the hook port, which records repetitions and refusals
  stops.add('what was repeated and learnt', () => Promise.all([repeats.stop(), shapes.stop()]))
  stops.add('the watch of the senders', senders.start())
  stops.add('the sources', () => sources.stop())
  stops.add('the passes of the runners', () => runnerPasses.stop())
  stops.add('the questions to senders', () => recovery.stop())
  const keys = createQuarantineKeys()
  const quarantine = createQuarantine({ store, generation, keys, clock, log })
  stops.add('the refused requests that are kept', () => quarantine.stop())
  const handed = withSaveListener(sharedSecrets, (name) => jobs.reportSecret(noteSecret(auditor, generation(), name)))
  const access = await openAccess({ store, clock, log })
  stops.add('the tokens of the store', () => access.tokens.stop())
  const tokens = share.throttle('tokens', createThrottle({ clock }))
  const unnamedProxies = createUnnamedProxies(() => generation().config.server.trustedProxies)
  const admission = createAdmission({ access, tokens, signers, unnamedProxies })
  stops.add('the log of refusals', () => refusalLog.stop())
  const waiters = createWaiters({ store, access, generation, log })
  const served = createServed(admission)
  const receiver = createReceiver({
    generation,
    acquire,
    entry: createEntry({ admission, handed, refusals, quarantine, findRunner: jobs.findRunner }),
    arrivals: createArrivals({ store, settler, rerunner, onRepeated, clock, newId, development }),
    runs: createRuns({ store, access, auditor, waiters, generation, lookForJobs, clock, log }),
    awaits: createAwaits({ store, waiters, clock }),
    served,
    refuse: createRefuser({ admission, quarantine, onRefused, clock, development }),
    refusals,
    quarantine,
  })
  const peerOf = createPeerLookup(() => generation().config.server.trustedProxies)
  const readiness = createReadiness({ store, peerOf, log })
  const adminApp = createAdminApp({
    dir,
    adminHost,
    generation,
    status: readStatus,
    store,
    changes,
    others: createOthers({ store, changes }),
    slots: jobs.slots,
    sources: sources.list,
    replySoFar: jobs.replySoFar,
    lastHour: metrics.lastHour,
    hour: createHourOfStore({ store, clock }),
    findSave: (wanted) => findSave(dir, wanted),
    day: createDayOfStore({ store, clock }),
    metrics,
    hooksUrl: () => url,
    refusals,
    refused: createRefusedCalls({
      store,
      keys,
      token: () => generation().config.gateway.token,
      quarantine,
      receiveRefused: receiver.receiveRefused,
    }),
    rerunner,
    drain,
    recovery,
    access,
    auditor,
    handed,
    unnamedProxies,
    readiness,
    replayer: {
      replay: replayer.replay,
      decideLive: replayer.decideLive,
      capture: replayer.capture,
      updateFixtures: replayer.updateFixtures,
      coverage: replayer.coverage,
      publish: live.publish,
      shadows: shadows.list,
    },
    bench,
    testAlert: jobs.testAlert,
    lookForJobs,
    clock,
    newId,
    log,
  })
  const ports = { hooks: options.port ?? config.server.port, admin: options.adminPort ?? config.server.adminPort }
  const admin = await listen(adminApp, {
    host: adminHost,
    port: ports.admin,
    ports,
    bodyTimeoutMs,
    keepAliveTimeoutMs,
    log,
  })
  stops.add('the admin port', () => admin.close(0))
  await node.join()
  const hookApp = createHookApp({ receive: receiver.receive, readiness, newId: randomUUID, log })
  const handler = createMount({ listener: hookApp, path: () => generation().config.hooks.path })
  stops.add('the hooks in a server of the host', () => handler.close(graceMs), { limitMs: 2 * graceMs })
  let at = options.mountedAt?.replace(/\/+$/, '')
  if (at === undefined) {
    const hooks = await listen(hookApp, {
      host,
      port: ports.hooks,
      ports,
      peerOf,
      bodyTimeoutMs,
      keepAliveTimeoutMs,
      log,
    })
    stops.add('the hook port', () => hooks.close(graceMs), { limitMs: 2 * graceMs })
    at = `http://${host.includes(':') ? `[${host}]` : host}:${hooks.port}`
  }
  url = `${at}${config.hooks.path}`
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
  stops.add('the requests that wait', waiters.stop)
  stops.add('the streams of the runners', served.end)
  void drain.resume()
  noteStart(auditor, info())
  await live.watch()
  void warn(generation())
  // last: from now on the caller can name the plugin whose timer throws
  node.start({
    jobs,
    drain,
    recovery,
    runners: runnerPasses,
    mailbox: { apply: () => sources.apply(generation().config) },
  })
  const { status, reload, describeThrower } = live
  const stop = (signal?: string) => noteStop(auditor, signal, stops.run)
  return { url, adminUrl, handler, generation, status, reload, describeThrower, stop }

  /** The state of the saved files, and the problems of the mailbox. */
  function readStatus() {
    const saved = live.status()
    const troubles = [...sources.list(), ...runnerPasses.list()].flatMap(({ label, problems }) =>
      problems.map((problem) => ({ detail: `${label}: ${problem}` })),
    )
    return { ...saved, degraded: saved.degraded || troubles.length > 0, problems: [...saved.problems, ...troubles] }
  }
}
