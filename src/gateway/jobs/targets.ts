// Where the text of an action goes: now, for people who look at it, and when it is delivered.
import { type Alert, type EventPlace, mainSessionKey, type PlannedAction } from '../../core/model/action.ts'
import type { Config } from '../../model/config/config.ts'
import type { TargetFields } from '../../model/api/bench.ts'
import type { StoreReader } from '../../store/store.ts'
import { findTarget, listSteps, toStepKind } from './plan.ts'
import { resolveRoute, type Route } from './route.ts'
import type { RunnersAndChannels } from './runners-and-channels.ts'

export type TargetParts = Pick<RunnersAndChannels, 'channels'> & {
  readonly store: Pick<StoreReader, 'session'>
  readonly config: Config
}

/** The route of a recipient. `agentId`: the agent whose last recipient the channel `last` means. */
export async function findRoute(
  { channel = 'last', to }: Pick<Alert, 'channel' | 'to'>,
  { agentId, place }: { readonly agentId: string; readonly place: EventPlace | undefined },
  { store, channels, config }: TargetParts,
): Promise<Route> {
  const main = await store.session({ agentId, sessionKey: mainSessionKey })
  return resolveRoute(
    { channel, to },
    { last: main?.recipient, defaultRoute: config.channels.default, channels, place },
  )
}

/** The recipients of an action. Empty if its text goes to nobody. */
export function findTargets(planned: PlannedAction, parts: TargetParts): Promise<TargetFields[]> {
  if (planned.kind === 'wake') return Promise.resolve([])
  const { agentId, origin } = planned
  const steps = listSteps(planned).filter((name) => toStepKind(name) === 'deliver')
  return Promise.all(
    steps.map(async (name) => {
      const route = await findRoute(findTarget(planned, name), { agentId, place: origin.place }, parts)
      return route.kind === 'none'
        ? { channel: null, to: null, problem: route.detail }
        : { channel: route.name, to: route.to ?? null, problem: null }
    }),
  )
}
