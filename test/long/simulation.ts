// Three gateways on one store in virtual time, with seeded faults: calls that are lost, unanswered or late, cuts, kills, steps of the clock, runners that
// fail or ignore their end, channels that are slow, throw or answer nothing, and an operator who pauses, ends, drops and retries.
import { vi } from 'vitest'
import type { Channel } from '../../src/model/channel.ts'
import type { Runner } from '../../src/model/runner.ts'
import { toAgent } from '../../src/gateway/jobs/agents.ts'
import { createHeartbeats } from '../../src/gateway/jobs/heartbeats.ts'
import { planJobs, toWakeStep } from '../../src/gateway/jobs/plan.ts'
import { createWorker } from '../../src/gateway/jobs/worker.ts'
import { silentLog } from '../../src/base/log.ts'
import type { PlannedAction } from '../../src/core/model/action.ts'
import type { NewDelivery } from '../../src/store/records.ts'
import { storeUnavailable } from '../../src/store/rules.ts'
import { createMemoryStore } from '../../src/store/sqlite/sqlite.ts'
import type { Store } from '../../src/store/store.ts'
import { createDice } from '../e2e/load.ts'
import { buildConfig, ok, planAgent, planWake } from '../unit/gateway/jobs/stage.ts'
import { createWorld, type Node } from './simulation-world.ts'

/** `twin`: changes the store, as a fault of the product would. The promises must find each. */
type Simulation = { readonly seed: number; readonly steps: number; readonly twin?: (store: Store) => Partial<Store> }

const nodes = 3
const minuteMs = 60_000
const never = new Promise<never>(() => {})
const sleep = (ms: number) => (ms === 0 ? Promise.resolve() : new Promise<void>((resolve) => setTimeout(resolve, ms)))

/** Needs `vi.useFakeTimers()`. Ends at the first broken promise. Returns the promises that were broken, and what happened. */
export async function simulate({ seed, steps, twin }: Simulation) {
  const pick = createDice(seed)
  const chance = (share: number) => pick(10_000) < share * 10_000
  const clock = () => Date.now()
  const store = createMemoryStore({ clock })
  const world = createWorld(store)
  const flawed: Store = { ...store, ...twin?.(store) }
  const config = buildConfig({ agents: { defaults: { heartbeat: { every: '10m' } } } })
  const faults = { lost: 0, unanswered: 0, late: 0, kills: 0, cuts: 0, clockSteps: 0 }
  let areFaulty = true
  let calls = 0
  let ids = 0
  const newId = () => `id-${(ids += 1)}`
  const gateways: ReturnType<typeof startGateway>[] = []

  /** A call reaches the store late, or not, or its answer comes late, or not. */
  async function pass(node: Node, name: string, args: readonly unknown[]): Promise<unknown> {
    calls += 1
    const isLate = areFaulty && chance(0.004)
    const isLost = areFaulty && chance(0.01)
    const isUnanswered = areFaulty && !isLost && chance(0.01)
    const [before, after] = areFaulty && chance(0.2) ? [pick(300), pick(300)] : [0, 0]
    const lateMs = isLate ? 20_000 + pick(40_000) : 0
    faults.late += Number(isLate)
    faults.lost += Number(isLost)
    faults.unanswered += Number(isUnanswered)
    await sleep(before + (chance(0.5) ? lateMs : 0))
    await sleep(Math.max(0, node.cutUntil - clock()))
    if (node.isDead) return never
    if (isLost) throw storeUnavailable('The call was lost.', 1)
    // as: the name is one of a call
    const call = flawed[name as keyof Store] as (...given: readonly unknown[]) => unknown
    const wasHeld = world.isHeld()
    const answer = await call(...args)
    await world.note(node, { name, args, answer, wasHeld })
    await sleep(after + (chance(0.5) ? lateMs : 0))
    if (node.isDead) return never
    if (isUnanswered) throw storeUnavailable('The answer was lost.', 1)
    return answer
  }

  const connect = (node: Node): Store =>
    new Proxy(store, {
      get: (_, name: string) =>
        name === 'claimsAppended' ? () => false : (...args: readonly unknown[]) => pass(node, name, args),
    })

  function createRunner(node: Node): Runner {
    return {
      id: 'simulated',
      async run(request, { signal }) {
        world.noteTurn(node, request)
        const text = `reply ${request.runId} ${newId()}`
        const ignoresEnd = chance(0.2)
        const isAborted = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
        const ms = [0, 40, 2_000, 15_000, 80_000][pick(areFaulty ? 5 : 3)] ?? 0
        await Promise.race([sleep(ms), ...(ignoresEnd ? [] : [isAborted])])
        if (node.isDead) return never
        if (areFaulty && chance(0.1)) throw new Error('the model broke off')
        if (areFaulty && chance(0.05)) return { status: 'error', retryable: chance(0.7), detail: 'The model failed.' }
        if (areFaulty && chance(0.05)) return { status: 'unavailable', detail: 'The model is overloaded.' }
        return ok(text)
      },
    }
  }

  /** What the receiver behind the channel that drops repeats has got. */
  const known = new Set<string>()

  function createChannel(node: Node, id: string, dedupes: boolean): Channel {
    return {
      id,
      dedupes,
      to: undefined,
      whyNot: () => undefined,
      split: (text) => [text],
      async send({ nonce, text, run: { id: jobId } }) {
        await world.notePost(node, { jobId, nonce, text })
        const fate = areFaulty ? pick(20) : 19
        if (fate === 0) return { kind: 'transient', detail: 'It is overloaded.' }
        if (fate === 1) return { kind: 'rate-limited', retryAfterMs: 5_000, detail: 'Too many.' }
        if (fate === 2) throw new Error('the channel broke before')
        await sleep([0, 100, 3_000, 90_000][pick(areFaulty ? 4 : 2)] ?? 0)
        // what was on the wire arrives even if the gateway has died
        if (node.isDead && chance(0.5)) return never
        if (!(dedupes && known.has(nonce))) world.noteArrival(jobId, nonce)
        known.add(nonce)
        if (fate === 3) {
          world.noteDoubt(jobId)
          throw new Error('the channel broke after')
        }
        if (fate === 4) return { kind: 'ambiguous', detail: 'No answer came.' }
        await sleep(areFaulty ? pick(500) : 0)
        return node.isDead ? never : { kind: 'sent', id: nonce }
      },
    }
  }

  function startGateway(name: string) {
    const node: Node = { name, isDead: false, cutUntil: 0 }
    const link = connect(node)
    const channels = new Map(['console', 'webhook'].map((id) => [id, createChannel(node, id, id === 'console')]))
    const runner = createRunner(node)
    const heartbeats = createHeartbeats({
      store: link,
      agents: () => [toAgent(config, 'main', '/')],
      clock,
      newId,
      onAdded: () => worker.lookForTasks(),
      log: silentLog,
    })
    const worker = createWorker({
      store: link,
      clock,
      random: () => pick(1_000) / 1_000,
      meter: () => {},
      log: silentLog,
      onWake: (agentId) => heartbeats.wake(agentId),
      onAlertAttempt: () => {},
      onDeath: () => {},
      onCrowded: () => {},
      onSettled: () => {},
      onBudgetWait: () => {},
      newBoundaryId: () => 'b'.repeat(16),
      readWorkspaceFile: async () => undefined,

      readSourceFiles: () => 'no source',
      settings: () => ({
        config: { ...config, channels: { ...config.channels, default: { channel: 'console' } } },
        agent: (id) => ({ ...toAgent(config, id, '/'), workspace: undefined }),
        runner: () => runner,
        channels,
      }),
    })
    worker.start()
    void heartbeats.start().catch(() => {})
    return { node, link, worker, heartbeats }
  }

  /** A sender tries until it is answered, at any gateway. */
  async function send(key: string, planned: PlannedAction): Promise<void> {
    for (;;) {
      const { node, link, worker, heartbeats } = gateways[pick(nodes)] ?? startGateway('none')
      const jobs = planJobs([planned], { newId, now: clock(), wakeStep: (id) => toWakeStep(config, id, clock()) })
      const dedupe = { hook: 'github', key, bodyHash: 'h' }
      const at = { receivedAt: clock(), hook: 'github', source: undefined, event: undefined }
      const answer = { status: 200, body: '{}' }
      const rest = { state: 'accepted', mappingId: undefined, generation: 'g1', trace: [], log: [] } as const
      const delivery: NewDelivery = { id: newId(), ...at, dedupe, answer, jobs, ...rest }
      stored.set(delivery.id, { key, planned })
      const isAnswered = await Promise.race([
        link.append(delivery).then(
          () => true,
          () => false,
        ),
        sleep(20_000).then(() => false),
      ])
      if (isAnswered && !node.isDead) {
        world.noteAnswer(key)
        worker.lookForJobs()
        if (planned.kind === 'wake' && planned.action.mode === 'now') heartbeats.wake('main')
        return
      }
      await sleep(1_000 + pick(5_000))
    }
  }
  const stored = new Map<string, { key: string; planned: PlannedAction }>()
  const append = flawed.append.bind(flawed)
  flawed.append = async (delivery) => {
    const appended = await append(delivery)
    const request = stored.get(delivery.id)
    if (appended.kind === 'stored' && request !== undefined) world.noteStored(delivery, request)
    return appended
  }

  function planRequest(): PlannedAction {
    const kind = pick(10)
    const mode = chance(0.5) ? 'now' : 'next-heartbeat'
    if (kind < 3) return planWake({ text: `event ${newId()} rang`, mode })
    const channel = chance(0.5) ? 'console' : 'webhook'
    const action = { deliver: chance(0.7), channel, wakeMode: mode } as const
    return planAgent({ action, sessionKey: `hook:${pick(5)}`, sharesSession: kind > 7 })
  }

  async function operate(): Promise<void> {
    const known = [...world.requests.keys()]
    const jobId = known[known.length - 1 - pick(Math.min(known.length, 30))] ?? ''
    const job = await store.job(jobId)
    switch (pick(5)) {
      case 0: {
        const forMs = pick(2 * minuteMs)
        await flawed.hold({ label: 'agent:main', kind: 'pause', reason: 'A test.', author: undefined, forMs })
        return world.noteHold('agent:main', clock() + forMs)
      }
      case 1:
        await store.unhold({ label: 'agent:main', kind: 'pause' })
        return world.noteHold('agent:main', 0)
      case 2:
        if ((await flawed.endJob(jobId, { state: 'cancelled', reason: 'A test.' })) === 'ended') world.noteEnd(jobId)
        return
      case 3:
        if (job?.deliveryId !== undefined && chance(0.2)) await store.drop(job.deliveryId)
        return
      default:
        if (job?.state === 'dead' && (await store.requeue(jobId))) world.noteRequeue(jobId)
        if (job?.deliveryId !== undefined) await store.tryNow(job.deliveryId)
    }
  }

  async function killOne(): Promise<void> {
    const at = pick(nodes)
    const killed = gateways[at]
    if (killed === undefined) return
    faults.kills += 1
    killed.node.isDead = true
    killed.heartbeats.stop()
    void killed.worker.stop({ graceMs: 0 })
    gateways[at] = startGateway(`${killed.node.name}'`)
  }

  /** The network between a gateway and the store stops, often for longer than a lease. */
  function cutOne(): void {
    const { node } = gateways[pick(nodes)] ?? {}
    if (node === undefined) return
    faults.cuts += 1
    node.cutUntil = clock() + pick(90_000)
  }

  for (let at = 0; at < nodes; at += 1) gateways.push(startGateway(`gateway-${at}`))
  const isAtEnd = () => calls >= steps || world.violations.length > 0
  while (!isAtEnd()) {
    for (let count = pick(3); count > 0; count -= 1) void send(newId(), planRequest())
    if (chance(0.02)) await killOne()
    if (chance(0.05)) await operate()
    if (chance(0.02)) cutOne()
    if (chance(0.005)) {
      faults.clockSteps += 1
      world.noteClockStep()
      vi.setSystemTime(Date.now() + (pick(2) === 0 ? 40 * minuteMs : -minuteMs))
      // the store may have forgotten a pause that was over
      world.noteHold('agent:main', 0)
    }
    await vi.advanceTimersByTimeAsync(chance(0.9) ? pick(4_000) : pick(minuteMs))
  }
  areFaulty = false
  await store.unhold({ label: 'agent:main', kind: 'pause' })
  world.noteHold('agent:main', 0)
  for (let round = 0; round < 120 && world.violations.length === 0; round += 1) {
    await vi.advanceTimersByTimeAsync(5 * minuteMs)
    for (const { worker } of gateways) worker.lookForTasks()
    if (round > 24 && (await store.counts()).jobs.queued === 0) break
  }
  if (world.violations.length === 0) await world.close()
  for (const { worker, heartbeats } of gateways) {
    heartbeats.stop()
    const stopped = worker.stop({ graceMs: 0 })
    await vi.advanceTimersByTimeAsync(10_000)
    await stopped
  }
  await store.close()
  return { violations: world.violations, counts: { ...world.counts, calls, ...faults } }
}
