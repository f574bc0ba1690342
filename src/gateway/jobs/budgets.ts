// Reserves the cost of a turn before its model is called, and settles it in the commit that records the turn.
import type { Heartbeat } from '../../core/model/action.ts'
import { type BudgetConfig, findPeriod, toLimits } from '../../model/budgets.ts'
import { addSpendings, noSpending, type Spending, toUsd } from '../../model/spending.ts'
import { findModelConfig } from '../../model/config/agents-rules.ts'
import type { Config } from '../../model/config/config.ts'
import { toKnownUsage, type Usage } from '../../model/job.ts'
import { resolveModelName } from '../../model/config/permission.ts'
import { defaultMaxTokens, type ModelConfig, toMaxNanos, toTurnNanos } from '../../model/prices.ts'
import type { Runner, RunRequest, RunResult } from '../../model/runner.ts'
import { cut, toWellFormed } from '../../base/text.ts'
import { toLine } from '../../boundary/boundary.ts'
import type { Reservation, SettledTurn } from '../../store/budgets.ts'
import { type Agent, listAgentIds } from './agents.ts'
import type { AgentPlan } from './plan.ts'
import { repairChars } from './prompt.ts'
import type { Failure, StepOutcome } from './retry.ts'
import type { JobContext } from './step.ts'

/** The request of a turn, before it is sent. */
type Draft = Pick<RunRequest, 'model' | 'system' | 'history' | 'prompt' | 'verdicts'>

type Turn = { readonly planned: AgentPlan | Heartbeat; readonly agent: Agent; readonly draft: Draft }

export type TurnBudget = {
  readonly kind: 'reserved'
  /** A runner that limits the output of each call to the reservation, and notes the usage of the calls. */
  meter(runner: Runner): Runner
  /** The usage of the calls, for each budget. Undefined without a budget. */
  settle(): readonly SettledTurn[] | undefined
}

/** A model that the turn may call. */
type Candidate = {
  readonly name: string | undefined
  readonly cost: ModelConfig['cost']
  /** The maximum number of output tokens of a call; undefined: the limit of the provider. */
  readonly maxOutputTokens: number | undefined
  readonly most: Spending
}

/** The tokens that a chat template adds to each message, with a margin. */
const tokensPerMessage = 32

/** The maximum number of tokens of the schema or the tool for a verdict, with ten words of 40 characters. */
const formTokens = 4_000
/** The maximum number of input tokens of the second question for a verdict, with the end of the reply. A UTF-16 unit has at most three bytes. */
const repairTokens = formTokens + 3 * repairChars

/** Reserves the maximum cost of a turn in each of its budgets. If that fails, returns the outcome of the step. */
export async function reserveTurn(turn: Turn, context: JobContext): Promise<TurnBudget | StepOutcome> {
  const { config, clock, lease } = context
  const budgets = listBudgets(turn, config)
  const candidates = listCandidates(turn, { config, budgets })
  const calls: Spending[] = []
  const meter = (runner: Runner) => createMeteredRunner(runner, { turn, candidates, calls, context })
  if (budgets.length === 0) return { kind: 'reserved', meter, settle: () => undefined }
  const inUsd = budgets.find(([, { usd }]) => usd !== undefined)
  const unpriced = candidates.find(({ cost }) => cost === undefined)
  if (turn.agent.runner === 'ai' && inUsd !== undefined && unpriced !== undefined) {
    return failWithoutPrice(unpriced.name, inUsd[0])
  }
  const now = clock()
  const most = { ...addSpendings(candidates.map((candidate) => candidate.most)), turns: 1 }
  const reservations = budgets.map(([name, budget]): Reservation => {
    return { name, ...findPeriod(budget, now), limits: toLimits(budget), most }
  })
  const ifUnknown = turn.agent.runner === 'ai' ? most : oneTurn
  const reserved = await lease.reserve({ reservations, ifUnknown })
  if (reserved.kind === 'lost') return { kind: 'aborted' }
  if (reserved.kind === 'waits') return { kind: 'waits', reason: reserved.reason, budget: reserved.budget }
  if (reserved.kind === 'never') return { kind: 'permanent', status: 'error', detail: reserved.reason }
  return {
    kind: 'reserved',
    meter,
    settle() {
      const sum = addSpendings(calls)
      const used = { ...sum, turns: Math.min(1, sum.turns) }
      return reservations.map(({ name, startsAt }) => ({ name, startsAt, used }))
    },
  }
}

/** The budgets of the agent and of the mapping, each once. A budget that the configuration no longer has limits nothing. */
function listBudgets({ planned, agent }: Turn, { budgets }: Config): [string, BudgetConfig][] {
  const names = new Set([...agent.budgets, ...(planned.kind === 'agent' ? (planned.budgets ?? []) : [])])
  return [...names].flatMap((name): [string, BudgetConfig][] => {
    const budget = Object.hasOwn(budgets, name) ? budgets[name] : undefined
    return budget === undefined ? [] : [[name, budget]]
  })
}

const oneTurn: Spending = { ...noSpending, turns: 1 }

/** The model of the turn, and the models that are called while it is not available. */
function listCandidates(
  { agent, draft }: Turn,
  { config, budgets }: { config: Config; budgets: readonly [string, BudgetConfig][] },
): Candidate[] {
  const names = agent.runner === 'ai' ? [...new Set([draft.model, ...agent.modelFallbacks])] : [draft.model]
  const isMeasured = budgets.some(([, { usd, tokens }]) => usd !== undefined || tokens !== undefined)
  return names.map((name) => {
    const model = agent.runner === 'ai' ? findModelConfig(name, config.models) : undefined
    const maxOutputTokens = model?.maxTokens ?? (isMeasured ? defaultMaxTokens : undefined)
    return {
      name,
      cost: model?.cost,
      maxOutputTokens,
      most: computeMaxSpending({ agent, draft }, { model, maxOutputTokens }),
    }
  })
}

/**
 * The maximum usage of a turn. There are never more tokens than bytes. The usage of a command or of OpenClaw is not known in advance, so its
 * turn starts if anything is left of the budget.
 */
function computeMaxSpending(
  { agent, draft: { system = '', history, prompt, verdicts } }: Omit<Turn, 'planned'>,
  { model, maxOutputTokens = 0 }: { model: ModelConfig | undefined; maxOutputTokens: number | undefined },
): Spending {
  if (agent.runner === 'echo') return oneTurn
  if (agent.runner !== 'ai') return { nanos: 1, tokens: 1, turns: 1 }
  const texts = [system, ...history.map(({ text }) => text), prompt]
  const input = texts.reduce((sum, text) => sum + Buffer.byteLength(text) + tokensPerMessage, 0)
  const first = { input, output: maxOutputTokens }
  const calls =
    verdicts === undefined
      ? [first]
      : [
          { ...first, input: input + formTokens },
          { ...first, input: repairTokens },
        ]
  const { cost } = model ?? {}
  const sum = (read: (call: typeof first) => number) => calls.reduce((total, call) => total + read(call), 0)
  const nanos = cost === undefined ? 0 : sum((call) => toMaxNanos(call, cost))
  return { nanos, tokens: sum((call) => call.input + call.output), turns: 1 }
}

function failWithoutPrice(model: string | undefined, budget: string): Failure {
  const shown = model === undefined ? 'The turn names no model' : `The model "${cut(toLine(model), 100)}" has no price`
  const detail =
    `${shown}, and the budget "${budget}" limits US dollars. Add the model with its cost to models of its provider in ` +
    'models.providers. A cost of 0 is free.'
  return { kind: 'permanent', status: 'error', detail }
}

type MeterParts = {
  readonly turn: Turn
  readonly candidates: readonly Candidate[]
  /** The spending of each call, in order. */
  readonly calls: Spending[]
  readonly context: JobContext
}

function createMeteredRunner(runner: Runner, { turn, candidates, calls, context }: MeterParts): Runner {
  return {
    id: runner.id,
    async run(request, io) {
      const candidate = candidates.find(({ name }) => name === request.model)
      const ifUnknown = turn.agent.runner === 'ai' ? (candidate?.most ?? oneTurn) : oneTurn
      const call = calls.push(ifUnknown) - 1
      // the history and the files of a workspace may have half characters too, and so may runs that earlier versions stored
      const { prompt, system, history } = request
      const texts = toWellFormed({ prompt, system, history })
      const sent = { ...request, ...texts, maxOutputTokens: candidate?.maxOutputTokens }
      const result = withKnownUsage(await runner.run(sent, io))
      calls[call] = toSpending(result, { cost: candidate?.cost, ifUnknown })
      meterCall(result, { turn, model: request.model, cost: candidate?.cost }, context)
      return result
    },
  }
}

/** The result without counts that cannot be true, so that metering never fails a turn whose reply is there. */
function withKnownUsage(result: RunResult): RunResult {
  if (!('usage' in result) || result.usage === undefined) return result
  const { usage: reported, ...rest } = result
  const usage = toKnownUsage(reported)
  return { ...rest, ...(usage === undefined ? {} : { usage }) }
}

/** The spending of a call. A provider does not charge a call that it refused or that never reached it. */
function toSpending(
  result: RunResult,
  { cost, ifUnknown }: { cost: ModelConfig['cost']; ifUnknown: Spending },
): Spending {
  const usage = 'usage' in result ? result.usage : undefined
  if (usage !== undefined) return { nanos: toTurnNanos(usage, cost), tokens: countTokens(usage), turns: 1 }
  switch (result.status) {
    case 'unavailable':
      return result.mayCost === true ? ifUnknown : noSpending
    case 'too-long':
      return noSpending
    case 'forwarded':
      return oneTurn
    case 'error':
      return result.retryable ? ifUnknown : oneTurn
    case 'ok':
    case 'timeout':
      return ifUnknown
  }
}

function countTokens({ inputTokens, outputTokens }: Usage): number {
  return inputTokens + outputTokens
}

type MeteredCall = { readonly turn: Turn; readonly model: string | undefined; readonly cost: ModelConfig['cost'] }

/** Counts the tokens and the cost of a call for the metrics. No label comes from a request: other agents and models are `*`. */
function meterCall(
  result: RunResult,
  { turn: { agent }, model, cost }: MeteredCall,
  { config, meter }: JobContext,
): void {
  const labels = {
    agent: listAgentIds(config).includes(agent.id) ? agent.id : '*',
    model: toModelLabel(model, config),
  }
  const usage = 'usage' in result ? result.usage : undefined
  if (usage === undefined) return
  meter('tokens', { ...labels, direction: 'input' }, usage.inputTokens)
  meter('tokens', { ...labels, direction: 'output' }, usage.outputTokens)
  const nanos = toTurnNanos(usage, cost)
  if (nanos > 0) meter('cost_usd', labels, toUsd(nanos))
}

function toModelLabel(model: string | undefined, config: Config): string {
  if (model === undefined) return 'none'
  const { agents, hooks, models } = config
  const sections = [agents.defaults, ...agents.list]
  const named = [...sections, ...hooks.mappings].map((section) => section.model)
  const priced = Object.entries(models.providers).flatMap(([name, provider]) =>
    provider.models.map(({ id }) => `${name}/${id}`),
  )
  const fallbacks = sections.flatMap(({ modelFallbacks = [] }) => modelFallbacks)
  const known = [...named, ...fallbacks, ...(agents.defaults.models ?? []), ...priced, ...Object.values(models.aliases)]
  const resolve = (name: string) => resolveModelName(name, models.aliases)
  return known.some((name) => name !== undefined && resolve(name) === resolve(model)) ? resolve(model) : '*'
}
