// Holds turns back for all gateways: those of a session with too many turns in an hour, because an agent that wakes itself must not cost money
// all night, and those of a provider that asks to wait. Also calls the fallbacks of a model that is not available, and makes the span of a
// model call.
import { formatQuantity } from '../../base/text.ts'
import { runInSpan } from '../../base/trace.ts'
import type { Config } from '../../model/config/config.ts'
import type { ClaimedJob, Usage } from '../../model/job.ts'
import type { Log } from '../../base/log.ts'
import type { Runner, RunIO, RunRequest, RunResult } from '../../model/runner.ts'
import { toSessionLabel } from '../../store/rules.ts'
import type { Store } from '../../store/store.ts'
import type { Agent } from './agents.ts'
import { type AgentPlan, readPlannedHops } from './plan.ts'
import { clampAskedMs } from './retry.ts'

/** The longest pause after one answer of a provider. If the provider still asks to wait after it, the next answer renews the pause. */
const maxPauseMs = 900_000

/** A session that is held back, because its hour is full. `jobId`: the run that found this. `hops`: the hops of this run. */
export type CrowdedSession = {
  readonly jobId: string
  readonly agentId: string
  readonly sessionKey: string
  readonly label: string
  readonly turns: number
  readonly forMs: number
  readonly hops: number
}

/**
 * Counts the turn, or holds its session back on all gateways if the session has had its turns of this hour. The limit ends a loop. So it counts only the
 * turns of a key that a mapping, a transform or a request chose: runs that share the default key have nothing to do with each other. Heartbeats have an
 * interval of their own, and the runner echo calls no model. Undefined: the turn may start.
 */
export async function holdIfCrowded(
  { id: jobId, planned, agent }: { readonly id: string; readonly planned: AgentPlan; readonly agent: Agent },
  store: Pick<Store, 'startTurn' | 'hold'>,
): Promise<CrowdedSession | undefined> {
  const { agentId, sessionKey, isKeyChosen = false } = planned
  const { maxTurnsPerHour: turns, runner } = agent
  if (!isKeyChosen || turns === 0 || runner === 'echo') return undefined
  const label = toSessionLabel(planned)
  const forMs = await store.startTurn({ jobId, label, limit: turns })
  if (forMs === undefined) return undefined
  const reason = `it had ${formatQuantity(turns, 'turn')} within an hour, the most that ${nameTurnsKey(agentId)} allows`
  await store.hold({ label, kind: 'turns', reason, author: undefined, forMs })
  return { jobId, agentId, sessionKey, label, turns, forMs, hops: readPlannedHops(planned) }
}

/** The key of the configuration that limits the turns of an agent, for people. */
function nameTurnsKey(agentId: string): string {
  return `maxTurnsPerHour of the agent "${agentId}"`
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
