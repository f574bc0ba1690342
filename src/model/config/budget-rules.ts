// Rules of the configuration about budgets: every name must exist, and a budget in dollars needs the prices of its models.
import { builtInRunners, findModelConfig } from './agents-rules.ts'
import { type BudgetConfig, toLimits } from '../budgets.ts'
import { formatSpending } from '../spending.ts'
import type { Config } from './config.ts'
import { type ConfigIssue, type ConfigPath, toIssue } from '../../core/model/issue.ts'
import type { Mapping } from '../../core/model/mapping.ts'
import { findNearest } from '../../base/text.ts'
import { defaultMaxTokens, toMaxNanos } from '../prices.ts'
import { chooseRunner, findDefaultAgentId } from './plan-settings.ts'

type Budgets = Pick<Config['agents']['defaults'], 'budgets' | 'model'>

export function findBudgetIssues(config: Config): ConfigIssue[] {
  const { defaults, list } = config.agents
  return [
    ...findNameIssues(defaults, config, ['agents', 'defaults']),
    ...list.flatMap((agent, index) => findNameIssues(agent, config, ['agents', 'list', index])),
    // without a list, the default agent has the settings of `agents.defaults`
    ...(list.length === 0
      ? findTurnIssues({ agentId: findDefaultAgentId(config) }, config, ['agents', 'defaults'])
      : list.flatMap(({ id }, index) => findTurnIssues({ agentId: id }, config, ['agents', 'list', index]))),
  ]
}

/** `agentId`: the agent that runs the turns of the mapping. */
export function findMappingBudgetIssues(
  mapping: Pick<Mapping, 'budgets' | 'model'>,
  { agentId, config, at }: { agentId: string; config: Config; at: ConfigPath },
): ConfigIssue[] {
  const { budgets, model } = mapping
  if (budgets === undefined && model === undefined) return []
  return [...findNameIssues(mapping, config, at), ...findTurnIssues({ agentId, budgets, model }, config, at)]
}

function findNameIssues({ budgets = [] }: Budgets, config: Config, at: ConfigPath): ConfigIssue[] {
  const known = Object.keys(config.budgets)
  return budgets.flatMap((name, index) => {
    if (Object.hasOwn(config.budgets, name)) return []
    const near = findNearest(name, known)
    const next = near === undefined ? `Add budgets.${name}.` : `Did you mean "${near}"?`
    return [toIssue([...at, 'budgets', index], `names the budget "${name}", which is not in budgets. ${next}`)]
  })
}

type StaticTurn = {
  readonly agentId: string
  readonly budgets?: Budgets['budgets']
  readonly model?: string | undefined
}

/** Reports turns of the runner `ai` that can never start. A request may still name another model. */
function findTurnIssues(turn: StaticTurn, config: Config, at: ConfigPath): ConfigIssue[] {
  const { agents, models } = config
  if (chooseRunner(config, turn.agentId) !== 'ai') return []
  const own = agents.list.find(({ id }) => id === turn.agentId)
  const name = turn.model ?? own?.model ?? agents.defaults.model
  if (name === undefined) return []
  const fallbacks = own?.modelFallbacks ?? agents.defaults.modelFallbacks ?? []
  const place = [...at, turn.budgets === undefined && turn.model !== undefined ? 'model' : 'budgets']
  const names = new Set([...(own?.budgets ?? agents.defaults.budgets ?? []), ...(turn.budgets ?? [])])
  return [...names].flatMap((budget) => {
    const limits = Object.hasOwn(config.budgets, budget) ? config.budgets[budget] : undefined
    const faults = [name, ...fallbacks].map((each) => {
      return limits && findFault({ name: each, budget, limits }, findModelConfig(each, models))
    })
    const why = faults.find((fault) => fault !== undefined)
    return why === undefined ? [] : [toIssue(place, why)]
  })
}

type Limited = { readonly name: string; readonly budget: string; readonly limits: BudgetConfig }

function findFault({ name, budget, limits }: Limited, model: ReturnType<typeof findModelConfig>): string | undefined {
  if (limits.usd !== undefined && model?.cost === undefined) {
    return (
      `has the budget "${budget}" in US dollars, and the model ${name} has no price. Add ` +
      '{ "id": "…", "cost": { "input": …, "output": … } } to models of its provider. A cost of 0 is free.'
    )
  }
  const output = model?.maxTokens ?? defaultMaxTokens
  const most = { nanos: model?.cost === undefined ? 0 : toMaxNanos({ input: 0, output }, model.cost), tokens: output }
  const bounds = toLimits(limits)
  const measure = (['nanos', 'tokens'] as const).find((each) => most[each] > (bounds[each] ?? Number.POSITIVE_INFINITY))
  if (measure === undefined) return undefined
  return (
    `has the budget "${budget}" of ${formatSpending(measure, bounds[measure] ?? 0)}, and one reply of ${name} may use ` +
    `${formatSpending(measure, most[measure])}. Lower maxTokens of the model in models.providers (now ${output}), or raise the budget.`
  )
}

/**
 * Warns about a budget that no agent or mapping uses, and about an agent with a budget of dollars or tokens whose runner reports the usage of a
 * turn only after it, or never.
 */
export function findBudgetWarnings(config: Config): ConfigIssue[] {
  const { agents, budgets, runners } = config
  const named = [agents.defaults, ...agents.list, ...config.hooks.mappings]
  const used = new Set(named.flatMap((section) => section.budgets ?? []))
  const unused = Object.keys(budgets).filter((name) => !used.has(name))
  const ids = agents.list.length === 0 ? [findDefaultAgentId(config)] : agents.list.map(({ id }) => id)
  return [
    ...unused.map((name) =>
      toIssue(
        ['budgets', name],
        'limits nothing: no agent and no mapping names it. Add it to agents.defaults.budgets.',
      ),
    ),
    ...ids.flatMap((id, index) => {
      const at: ConfigPath = agents.list.length === 0 ? ['agents', 'defaults'] : ['agents', 'list', index]
      const names = agents.list[index]?.budgets ?? agents.defaults.budgets ?? []
      const measured = names.filter((name) => {
        const budget = Object.hasOwn(budgets, name) ? budgets[name] : undefined
        return budget?.usd !== undefined || budget?.tokens !== undefined
      })
      const [name] = measured
      const runner = chooseRunner(config, id)
      if (name === undefined || runner === 'ai' || runner === 'echo') return []
      const isKnown = builtInRunners.some((each) => each === runner) && !Object.hasOwn(runners, runner)
      const section = Object.hasOwn(runners, runner) ? runners[runner] : undefined
      const reports = isKnown || (section?.kind === 'command' && section['profile'] !== undefined)
      const what = reports
        ? 'reports its usage only after a turn, so the turns that run together may exceed the budget'
        : 'reports no usage, so only the turns count. Set turns in the budget'
      return [toIssue([...at, 'budgets'], `has the budget "${name}", and the runner "${runner}" ${what}.`)]
    }),
  ]
}
