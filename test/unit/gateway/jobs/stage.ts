// A stage for jobs: a store in memory, a scripted runner and channel, and a clock that only the test moves.
import { randomBytes } from 'node:crypto'
import { vi } from 'vitest'
import { planJobs, toWakeStep } from '../../../../src/gateway/jobs/plan.ts'
import { type Alerts, createAlerts } from '../../../../src/gateway/jobs/alerts.ts'
import { createBudgetWatch } from '../../../../src/gateway/jobs/budget-watch.ts'
import { toAgent } from '../../../../src/gateway/jobs/agents.ts'
import type { RetryPolicy } from '../../../../src/gateway/jobs/retry.ts'
import type { DefaultRoute } from '../../../../src/gateway/jobs/route.ts'
import { createHeartbeats, type HeartbeatOptions, type Heartbeats } from '../../../../src/gateway/jobs/heartbeats.ts'
import type { AgentPlan } from '../../../../src/gateway/jobs/plan.ts'
import type { JobDependencies, JobSettings } from '../../../../src/gateway/jobs/step.ts'
import { createWorker, type Worker } from '../../../../src/gateway/jobs/worker.ts'
import { AgentAction, type PlannedAction, WakeAction } from '../../../../src/core/model/action.ts'
import type { Config } from '../../../../src/model/config/config.ts'
import { ConfigSchema } from '../../../../src/gateway/config/keys.ts'
import type { Channel, Outgoing, SendResult } from '../../../../src/model/channel.ts'
import type { Job } from '../../../../src/model/job.ts'
import { silentLog } from '../../../../src/base/log.ts'
import type { RunIO, Runner, RunRequest, RunResult } from '../../../../src/model/runner.ts'
import { createMemoryStore } from '../../../../src/store/sqlite/sqlite.ts'
import type { Store } from '../../../../src/store/store.ts'

export function planAgent({
  action = {},
  ...rest
}: Partial<Omit<AgentPlan, 'action' | 'kind'>> & { action?: Partial<AgentAction> } = {}): AgentPlan {
  return {
    kind: 'agent',
    action: AgentAction.parse({ kind: 'agent', message: 'Look at this', wakeMode: 'next-heartbeat', ...action }),
    agentId: 'main',
    sessionKey: 'hook:a',
    sharesSession: false,
    sessionMode: 'isolated',
    origin: { hook: 'github' },
    ...rest,
  }
}

export function planWake(action: Partial<WakeAction> = {}): PlannedAction {
  return {
    kind: 'wake',
    action: WakeAction.parse({ kind: 'wake', text: 'Somebody rang', mode: 'next-heartbeat', ...action }),
    agentId: 'main',
    sessionKey: 'main',
    origin: { hook: 'doorbell', source: 'ring' },
  }
}

export const ok = (text: string): RunResult => ({ status: 'ok', text })

type Turn = { request: RunRequest; io: RunIO; end(result: RunResult): void; fail(error: unknown): void }

/** A runner whose run ends with the result of `answer`, or when the test ends it. `turns`: the runs that have begun. */
export function scriptRunner(answer: (request: RunRequest) => RunResult | undefined = () => undefined) {
  const turns: Turn[] = []
  const runner: Runner = {
    id: 'scripted',
    run: (request, io) =>
      new Promise((resolve, reject) => {
        turns.push({ request, io, end: resolve, fail: reject })
        const result = answer(request)
        if (result !== undefined) resolve(result)
      }),
  }
  return { runner, turns }
}

type ChannelParts = Partial<Pick<Channel, 'dedupes' | 'repeatsUnknown' | 'to' | 'whyNot'>> & {
  /** The messages of a reply. */
  pieces?: (text: string) => readonly string[]
}

export function scriptChannel(
  answer: (message: Outgoing) => SendResult | Promise<SendResult> = () => ({ kind: 'sent', id: 'p1' }),
  { dedupes = false, pieces = (text: string): readonly string[] => [text], ...own }: ChannelParts = {},
) {
  const sent: Outgoing[] = []
  const channel: Channel = {
    id: 'console',
    dedupes,
    to: undefined,
    whyNot: () => undefined,
    split: pieces,
    ...own,
    async send(message) {
      sent.push(message)
      return await answer(message)
    },
  }
  return { channel, sent }
}

export type StageOptions = Partial<
  Pick<JobDependencies, 'store' | 'log' | 'random' | 'meter' | 'readWorkspaceFile' | 'readSourceFiles'>
> & {
  /** The runner of every agent. */
  runner?: Runner
  channels?: ReadonlyMap<string, Channel>
  /** The worker reads these settings for each job, so a test may change a field. */
  settings?: { defaultRoute?: DefaultRoute | undefined; maxConcurrent?: number; retry?: RetryPolicy }
}

const usualSettings: StageOptions['settings'] & { maxConcurrent: number } = {
  defaultRoute: { channel: 'console' },
  maxConcurrent: 4,
}

/** A configuration with the given keys and the defaults of all others. */
export function buildConfig(parts: object = {}): Config {
  return ConfigSchema.parse(parts)
}

export type Stage = ReturnType<typeof createStage>

/** Needs `vi.useFakeTimers()`, which also sets the clock. */
export function createStage(config: Config = buildConfig()) {
  const clock = () => Date.now()
  const store: Store = createMemoryStore({ clock })
  const workers: Worker[] = []
  let heartbeats: Heartbeats | undefined
  let ids = 0
  let deliveries = 0

  function openAlerts({ meter = () => {}, log = silentLog }: Pick<StageOptions, 'meter' | 'log'> = {}): Alerts {
    const added = () => workers.forEach((worker) => worker.lookForTasks())
    return createAlerts({
      store,
      config: () => config,
      clock,
      newId: () => `alert-${(ids += 1)}`,
      onAdded: added,
      meter,
      log,
    })
  }
  let alerts = openAlerts()

  function openWorker({ runner, channels, settings, ...options }: StageOptions = {}): Worker {
    alerts = openAlerts(options)
    const alert: Alerts['reportBudget'] = (spent) => alerts.reportBudget(spent)
    const watch = createBudgetWatch({ store, config: () => config, clock, alert, log: silentLog })
    const runs = runner ?? scriptRunner(() => ok('Done.')).runner
    const posts = channels ?? new Map([['console', scriptChannel().channel]])
    const worker = createWorker({
      store,
      clock,
      random: () => 0.5,
      meter: () => {},
      log: silentLog,
      onWake: (agentId) => heartbeats?.wake(agentId),
      onAlertAttempt: () => {},
      onDeath: (death) => alerts.reportDeadJob(death),
      onCrowded: (session) => alerts.reportCrowded(session),
      onSettled: (settled) => watch.onSettled(settled.map(({ name }) => name)),
      onBudgetWait: (name) => watch.onWait(name),
      newBoundaryId: () => randomBytes(8).toString('hex'),
      readWorkspaceFile: async () => undefined,
      readSourceFiles: () => 'no source',
      ...options,
      settings: (): JobSettings => {
        const { defaultRoute, maxConcurrent, retry } = { ...usualSettings, ...settings }
        const { agents, channels: sections } = config
        return {
          config: {
            ...config,
            agents: { ...agents, defaults: { ...agents.defaults, maxConcurrent } },
            channels: { ...sections, default: defaultRoute },
          },
          // no folder, because fake timers do not wait until a folder is created
          agent: (id) => ({ ...toAgent(config, id, '/'), workspace: undefined }),
          runner: () => runs,
          channels: posts,
          ...(retry && { retry }),
        }
      },
    })
    worker.start()
    workers.push(worker)
    return worker
  }

  async function accept(...actions: PlannedAction[]): Promise<string[]> {
    deliveries += 1
    const jobs = planJobs(actions, {
      newId: () => `job-${(ids += 1)}`,
      now: clock(),
      wakeStep: (agentId) => toWakeStep(config, agentId, clock()),
    })
    await store.append({
      id: `delivery-${deliveries}`,
      receivedAt: clock(),
      hook: 'github',
      source: undefined,
      event: undefined,
      dedupe: undefined,
      answer: { status: 200, body: '{}' },
      state: 'accepted',
      mappingId: undefined,
      generation: 'g1',
      jobs,
      trace: [],
      log: [],
    })
    for (const worker of workers) worker.lookForTasks()
    for (const { agentId, wakes } of jobs.flatMap(({ events }) => events)) if (wakes) heartbeats?.wake(agentId)
    await pass(0)
    return jobs.map(({ id }) => id)
  }

  async function readJob(id: string | undefined): Promise<Job> {
    const job = await store.job(id ?? '')
    if (job === undefined) throw new Error(`no job ${id}`)
    return job
  }

  async function readEvents(): Promise<string[]> {
    return (await store.events({ limit: 100 })).map(({ text }) => text)
  }

  /** Starts the heartbeats of the agent `main`. */
  async function openHeartbeats(over: Partial<HeartbeatOptions> = {}): Promise<Heartbeats> {
    heartbeats = createHeartbeats({
      store,
      agents: () => [toAgent(config, 'main', '/')],
      clock,
      newId: () => `beat-${(ids += 1)}`,
      onAdded: () => {
        for (const worker of workers) worker.lookForTasks()
      },
      log: silentLog,
      ...over,
    })
    await heartbeats.start()
    return heartbeats
  }

  function lookForJobs(): void {
    for (const worker of workers) worker.lookForJobs()
  }

  return {
    store,
    lookForJobs,
    alerts: () => alerts,
    restartAlerts: () => (alerts = openAlerts()),
    openWorker,
    openHeartbeats,
    accept,
    readJob,
    readEvents,
  }
}

/** Advances the clock and runs everything that is due. */
export async function pass(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms)
}

export function listSteps(job: Job): string[] {
  return job.steps.map(({ name, state }) => `${name} ${state}`)
}
