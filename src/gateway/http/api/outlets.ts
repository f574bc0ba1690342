// GET /api/outlets: the models and channels, each with its last success among the newest deliveries and all its failures, and what heartbeats
// used. POST /api/doctor: the findings of `hookloom doctor`.
import { execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { z } from 'zod'
import { tryParseJson } from '../../../base/json.ts'
import { readHeartbeatUsage } from '../../deliveries/heartbeats.ts'
import { isFailing, readFirstLine, toIsoTime } from '../../deliveries/records.ts'
import type { FindingFields, OutletFields } from '../../../model/api/health.ts'
import type { Planned } from '../../../core/model/action.ts'
import { listChannelNames } from '../../../model/config/agents-rules.ts'
import type { Config } from '../../../model/config/config.ts'
import { resolveModelName } from '../../../model/config/permission.ts'
import type { Job } from '../../../model/job.ts'
import { Problem } from '../../../core/model/problem.ts'
import type { DeliveryRecord } from '../../../store/records.ts'
import type { Handlers } from './handlers.ts'
import type { ApiParts } from './parts.ts'
import { chooseRunner, type PlanSettings } from '../../../model/config/plan-settings.ts'

/** The number of newest deliveries whose runs are read. */
const maxRead = 200
/** The number of different errors whose newest run shows what failed. */
const maxErrors = 100

type OutletParts = Pick<ApiParts, 'store' | 'generation' | 'dir'>

export function handleOutlets({ store, generation, dir }: OutletParts) {
  let examining: Promise<FindingFields[]> | undefined
  return {
    'GET /api/outlets': async () => {
      const { config } = generation()
      const [records, troubles, heartbeats] = await Promise.all([
        store.deliveries({ limit: maxRead }),
        store.troubles({ limit: maxErrors, each: 1 }),
        readHeartbeatUsage(store, config),
      ])
      const failures = await Promise.all(
        troubles.map(async ({ deliveryId, count }) => ({ record: await store.delivery(deliveryId), count })),
      )
      return { heartbeats, read: records.length, outlets: listOutlets(records, failures, config) }
    },
    'POST /api/doctor': async () => {
      examining ??= runDoctor(dir).finally(() => (examining = undefined))
      return { findings: await examining }
    },
  } satisfies Partial<Handlers>
}

type Outlet = Pick<OutletFields, 'kind' | 'name'>

/** A delivery with a run that failed, and how many have the same error. */
type Failure = { readonly record: DeliveryRecord | undefined; readonly count: number }

/** The outlets of the configuration, and those that the deliveries name. `records`: in the order of their arrival. `failures`: the newest first. */
function listOutlets(
  records: readonly Pick<DeliveryRecord, 'jobs'>[],
  failures: readonly Failure[],
  config: Config,
): OutletFields[] {
  const found = new Map<string, OutletFields>()
  const find = ({ kind, name }: Outlet) =>
    found.get(`${kind} ${name}`) ?? { kind, name, lastAt: null, failed: 0, failedId: null, error: null }
  const set = (outlet: OutletFields) => void found.set(`${outlet.kind} ${outlet.name}`, outlet)
  for (const name of listAgentIds(config)) set(find(findModel(name, config)))
  for (const name of listChannelNames(config)) set(find({ kind: 'channel', name }))
  for (const job of records.flatMap(({ jobs }) => jobs)) {
    for (const { outlet, at } of listSuccesses(job, config)) {
      const before = find(outlet)
      const lastAt = toIsoTime(at)
      set({ ...before, lastAt: before.lastAt !== null && before.lastAt > lastAt ? before.lastAt : lastAt })
    }
  }
  for (const { record, count } of failures) {
    const job = record?.jobs.findLast((each) => each.state === 'dead' || isFailing(each))
    const failed = job && findFailedOutlet(job, config)
    if (job === undefined || failed === undefined) continue
    const before = find(failed)
    const newest =
      before.failed > 0 ? before : { failedId: job.deliveryId ?? null, error: readFirstLine(job.lastError ?? '') }
    set({ ...before, failed: before.failed + count, failedId: newest.failedId, error: newest.error })
  }
  return [...found.values()]
}

function listAgentIds({ agents: { list } }: Config): readonly string[] {
  return list.length === 0 ? [''] : list.map(({ id }) => id)
}

/**
 * The model that a mapping asks for, or else that of the agent. A command or another gateway chooses its own model, so the name of the runner is
 * shown instead.
 */
export function findModel(agentId: string, config: PlanSettings, asked?: string): Outlet {
  const runner = chooseRunner(config, agentId)
  const { list, defaults } = config.agents
  const model = asked ?? list.find(({ id }) => id === agentId)?.model ?? defaults.model
  if (runner !== 'ai' || model === undefined) return { kind: 'runner', name: runner }
  return { kind: 'model', name: resolveModelName(model, config.models.aliases) }
}

function listSuccesses({ planned, steps, posts }: Job, config: Config): { outlet: Outlet; at: number }[] {
  const run = steps.find(({ name, state }) => name === 'run' && state === 'done')
  return [
    ...(run === undefined ? [] : [{ outlet: findUsedModel(planned, config, run.model), at: run.at }]),
    ...posts.flatMap(({ state, channel, at }) =>
      state === 'sent' ? [{ outlet: { kind: 'channel' as const, name: channel }, at }] : [],
    ),
  ]
}

function findUsedModel(planned: Planned, config: Config, model?: string): Outlet {
  return model === undefined ? findModel(findAgentId(planned), config) : { kind: 'model', name: model }
}

const findAgentId = (planned: Planned): string => ('agentId' in planned ? planned.agentId : '')

/** The outlet that made a run fail: its channel if the run has a reply, otherwise its model. */
function findFailedOutlet({ planned, steps, posts }: Job, config: Config): Outlet | undefined {
  if (!steps.some(({ name }) => name === 'run')) return findUsedModel(planned, config)
  const name = posts.find(({ state }) => state !== 'sent')?.channel
  return name === undefined ? undefined : { kind: 'channel', name }
}

const maxDoctorMs = 60_000
const maxBytes = 2_000_000
const Finding = z.object({
  name: z.string(),
  ok: z.boolean(),
  severity: z.enum(['warning', 'failure']).optional(),
  detail: z.string(),
})

/** Runs `doctor` in a separate process, because its checks load all modules and read the whole store. Throws `conflict`. */
async function runDoctor(dir: string): Promise<FindingFields[]> {
  const file = createRequire(import.meta.url).resolve('#main')
  const { error, stdout } = await new Promise<{ error: Error | null; stdout: string }>((resolve) => {
    const options = { timeout: maxDoctorMs, maxBuffer: maxBytes, windowsHide: true }
    const args = [file, '--config-dir', dir, 'doctor', '--json']
    execFile(process.execPath, args, options, (failure, output) => resolve({ error: failure, stdout: output }))
  })
  const findings = stdout.split('\n').flatMap((line): FindingFields[] => {
    const { data } = Finding.safeParse(tryParseJson(line))
    return data === undefined
      ? []
      : [{ name: data.name, severity: data.ok ? null : (data.severity ?? 'failure'), detail: data.detail }]
  })
  if (findings.length > 0) return findings
  const why = error === null ? 'it printed nothing' : 'it did not run'
  throw new Problem('conflict', `"hookloom doctor" gave no result: ${why}. Run it in a terminal.`, { cause: error })
}
