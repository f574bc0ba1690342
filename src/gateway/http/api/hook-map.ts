// What the map of the hooks shows: the last day of a hook, what needs a person there, its senders, and where each mapping leads.
import type { HookFields, HooksFields } from '../../../model/api/bench.ts'
import { findDefaultAgentId, type PlanSettings } from '../../../model/config/plan-settings.ts'
import type { CompiledMapping } from '../../../core/mapping/compile.ts'
import type { AttentionGroup, SenderFields } from '../../../model/api/operations.ts'
import { toIsoTime } from '../../deliveries/records.ts'
import type { Case } from './attention.ts'
import type { HourOfStore } from './hour-of-store.ts'
import { findModel } from './outlets.ts'

const hourMs = 3_600_000
const hoursOfDay = 24
const kinds = ['parked', 'dead', 'failing', 'refused'] as const

type MapFacts = {
  readonly now: number
  readonly day: HourOfStore
  readonly cases: readonly Case[]
  readonly senders: readonly SenderFields[]
  /** The hooks that have a row. All others are those of the row without a name. */
  readonly names: ReadonlySet<string>
}

export function toMapFields(
  name: string | undefined,
  { now, day, cases, senders, names }: MapFacts,
): Pick<HookFields, 'day' | 'open' | 'senders'> {
  const isOwn = (hook: string) => (name === undefined ? !names.has(hook) : hook === name)
  const last = Math.floor(now / hourMs)
  const deliveries = Array.from({ length: hoursOfDay }, () => 0)
  const parked = Array.from({ length: hoursOfDay }, () => 0)
  for (const { at, hook, state, count } of day.tallies) {
    const place = hoursOfDay - 1 - (last - Math.floor(at / hourMs))
    if (!isOwn(hook) || deliveries[place] === undefined) continue
    deliveries[place] += count
    if (state === 'parked') parked[place] = (parked[place] ?? 0) + count
  }
  const own = cases.filter(({ hook }) => isOwn(hook))
  const countKind = (kind: AttentionGroup['kind']) =>
    own.reduce((sum, each) => sum + (each.kind === kind ? each.count : 0), 0)
  return {
    day: { since: toIsoTime(day.since), deliveries, parked },
    // as: `kinds` has each of them once
    open: Object.fromEntries(kinds.map((kind) => [kind, countKind(kind)])) as HookFields['open'],
    senders: senders
      .filter(({ hook }) => isOwn(hook))
      .map(({ source, sourceName, lastAt, usualMs, silentSince }) => ({
        source,
        sourceName,
        lastAt,
        usualMs,
        silentSince,
      })),
  }
}

type Route = Pick<HooksFields['hooks'][number]['mappings'][number], 'agentId' | 'model' | 'to'>

/** The agent, its model or else its runner, and the recipients. Code may choose others. */
export function toRoute({ mapping }: Pick<CompiledMapping, 'mapping'>, config: PlanSettings): Route {
  const { action, deliver, channel, to } = mapping
  const targets = Array.isArray(to) ? to : [{ channel, to }]
  const shown = action === 'wake' || (action === 'agent' && !deliver) ? [] : targets
  const recipients = shown.map((target) => {
    const { default: usual } = config.channels
    const { channel: name, to: recipient } =
      target.channel === 'last' && target.to === undefined && usual !== undefined ? usual : target
    return [name, recipient].filter((part) => part !== undefined).join(' ')
  })
  if (action === 'deliver') return { agentId: null, model: null, to: recipients }
  const agentId = (action === 'agent' ? mapping.agentId : undefined) ?? findDefaultAgentId(config)
  return { agentId, model: findModel(agentId, config, mapping.model).name, to: recipients }
}
