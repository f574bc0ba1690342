// Holds turns back for all gateways: those of a session with too many turns in an hour, because an agent that wakes itself must not cost money
// all night, and those of a provider that asks to wait. Also calls the fallbacks of a model that is not available, and makes the span of a
// model call.
import { runInSpan } from '../base/trace.ts'
import type { Config } from '../model/config/config.ts'
import type { ClaimedJob, Usage } from '../model/job.ts'
import type { Log } from '../model/log.ts'
import type { Runner, RunIO, RunRequest, RunResult } from '../model/runner.ts'
import { toResumedLabel } from '../store/rules.ts'
import type { Store } from '../store/store.ts'
import type { Agent } from './agents.ts'
import { type AgentPlan, toSessionLabel } from './plan.ts'
import { clampAskedMs } from './retry.ts'

const hourMs = 3_600_000
/** The longest pause after one answer of a provider. If the provider still asks to wait after it, the next answer renews the pause. */
const maxPauseMs = 900_000

/** A session that is held back. `hops`: the hops of the run that has to wait. */
export type CrowdedSession = {
  readonly agentId: string
  readonly sessionKey: string
  readonly label: string
  readonly turns: number
  readonly forMs: number
  readonly hops: number
}

/**
 * Holds the session back if it had too many turns in the last hour, until the oldest of them is over an hour old. Its jobs wait on all
 * gateways. Turns that still run do not count, but in one session only runs that share the default key run at the same time. Undefined: the
 * turn may start.
 */
export async function holdIfCrowded(
  planned: AgentPlan,
  { maxTurnsPerHour: maxTurns, runner }: Agent,
  store: Pick<Store, 'turnAgesMs' | 'holds' | 'hold'>,
): Promise<Omit<CrowdedSession, 'hops'> | undefined> {
  // the runner echo calls no model
  if (maxTurns === 0 || runner === 'echo') return undefined
  const { agentId, sessionKey } = planned
  const ages = await store.turnAgesMs({ agentId, sessionKey, limit: maxTurns, withinMs: hourMs })
  const oldestMs = ages.length < maxTurns ? undefined : ages.at(-1)
  if (oldestMs === undefined) return undefined
  const label = toSessionLabel(planned)
  // turns from before an operator resumed the session do not count
  const resumed = (await store.holds()).find((hold) => hold.label === toResumedLabel(label))
  if (resumed?.forMs !== undefined && oldestMs > hourMs - resumed.forMs) return undefined
  const reason = `a session may have at most ${maxTurns} turns in an hour (maxTurnsPerHour of its agent)`
  const forMs = hourMs - oldestMs
  await store.hold({ label, kind: 'turns', reason, author: undefined, forMs })
  return { agentId, sessionKey, label, turns: maxTurns, forMs }
}

type Pacing = {
  readonly store: Pick<Store, 'holds' | 'hold'>
  readonly config: Pick<Config, 'limits'>
  readonly log: Log
}

/** A runner that pauses the shared limit of a model whose provider asks to wait, so that no other turn is refused during the wait. */
export function createPacedRunner(
  runner: Runner,
  { agent, context }: { readonly agent: Pick<Agent, 'runner'>; readonly context: Pacing },
): Runner {
  return {
    ...runner,
    async run(request, io) {
      const result = await runner.run(request, io)
      const askedMs = result.status === 'unavailable' ? clampAskedMs(result.retryAfterMs) : undefined
      const limit = findProviderLimit({ model: request.model, runner: agent.runner }, context)
      if (askedMs !== undefined && limit !== undefined)
        await pauseLimit(limit, { forMs: Math.min(askedMs, maxPauseMs), context })
      return result
    },
  }
}

type CalledModel = { readonly model: string | undefined; readonly runner: string }

/** A runner that records each call of a model as a span, with its tokens. The name of a model is left out if a request may have named it. */
export function createTracedRunner(
  runner: Runner,
  { agent, job }: { readonly agent: Pick<Agent, 'runner'>; readonly job: ClaimedJob },
): Runner {
  if (agent.runner !== 'ai') return runner
  const { planned, deliveryId: traceId = job.id } = job
  const isModelShown = planned.kind !== 'agent' || planned.action.model === undefined
  const describeModel = (key: string, model: string | undefined) => (isModelShown ? { [key]: model } : {})
  return {
    ...runner,
    run: (request, io) =>
      runInSpan(
        'model call',
        {
          traceId,
          kind: 'client',
          describeStart: () => ({
            'hookloom.job': job.id,
            'gen_ai.operation.name': 'chat',
            ...describeModel('gen_ai.request.model', request.model),
          }),
          describeResult: (result) => ({
            attributes: {
              'hookloom.outcome': result.status,
              ...('model' in result ? describeModel('gen_ai.response.model', result.model) : {}),
              ...('usage' in result ? toTokenAttributes(result.usage) : {}),
            },
            isFailed: result.status !== 'ok',
          }),
        },
        () => runner.run(request, io),
      ),
  }
}

/** The attributes of a span. The span leaves out undefined values. */
function toTokenAttributes(usage: Usage | undefined) {
  return {
    'gen_ai.usage.input_tokens': usage?.inputTokens,
    'gen_ai.usage.output_tokens': usage?.outputTokens,
    'gen_ai.usage.cache_read.input_tokens': usage?.cachedInputTokens,
    'gen_ai.usage.cache_creation.input_tokens': usage?.cacheWriteTokens,
  }
}

/** Finds the limit of a turn, by the name of its model or of its provider; for a runner other than `ai`, by the name of the runner. */
function findProviderLimit(
  { model = '', runner }: CalledModel,
  { config }: Pick<Pacing, 'config'>,
): string | undefined {
  const names = runner === 'ai' ? [model, model.slice(0, Math.max(0, model.indexOf('/')))] : [runner]
  return names.find((name) => Object.hasOwn(config.limits, name))
}

/** Pauses a limit. A later answer that asks for a shorter wait does not shorten the pause. */
async function pauseLimit(
  limit: string,
  { forMs, context: { store, log } }: { readonly forMs: number; readonly context: Pacing },
): Promise<void> {
  const label = `limit:${limit}`
  const known = (await store.holds()).find((hold) => hold.label === label && hold.kind === 'provider')
  if ((known?.forMs ?? 0) >= forMs) return
  const reason = 'the provider asked to wait'
  await store.hold({ label, kind: 'provider', reason, author: undefined, forMs })
  log.warn({ limit }, `the limit ${limit} is paused for ${Math.ceil(forMs / 1_000)} s, because ${reason}`)
}

/**
 * Asks the next model if one is not available. If none is available, the result of the first model counts: it says when to try again, and the
 * failure of a fallback must not end a job.
 */
export async function runWithFallbacks(
  runner: Runner,
  request: RunRequest,
  { models, ...io }: RunIO & { readonly models: readonly string[] },
): Promise<RunResult> {
  const first = await runner.run(request, io)
  if (first.status !== 'unavailable') return first
  for (const model of models.filter((name) => name !== request.model)) {
    if (io.signal.aborted) break
    io.log(`The model of the turn is not available. ${model} of modelFallbacks is asked.`)
    const next = await runner.run({ ...request, model }, io)
    if (next.status === 'ok' || next.status === 'forwarded') return next
    io.log(`${model} failed too${next.quotes === true ? '.' : `: ${next.detail}`}`)
  }
  return first
}
