// GET /api/health: what is live, what is broken, what waits, and the last hour.
import type Router from '@koa/router'
import type { Middleware } from 'koa'
import type { ApiParts } from './parts.ts'
import { isWithoutChannels, withoutChannels } from '../../model/agents-rules.ts'
import { toDifferent, toIsoTime } from '../../deliveries/records.ts'
import { toPlaceInFile } from './deliveries.ts'
import { reply } from './reply.ts'
import type { BrokenFields, HealthFields } from '../../model/api-types.ts'

/** The longest queues: an operator looks at few. */
const shownLanes = 20

type HealthParts = Pick<ApiParts, 'store' | 'generation' | 'status' | 'dir' | 'hooksUrl' | 'minutes'>

export function addHealthRoute(router: Router, api: Middleware, parts: HealthParts): void {
  router.get('/api/health', api, async (ctx) => reply(ctx, await toHealth(parts)))
}

async function toHealth({ store, generation, status, dir, hooksUrl, minutes }: HealthParts): Promise<HealthFields> {
  const [{ trouble, warning }, counts, waitingBytes, dueForMs, lanes, nodes] = await Promise.all([
    store.health(),
    store.counts(),
    store.waitingBytes(),
    store.dueForMs(),
    store.lanes({ limit: shownLanes }),
    store.nodes(),
  ])
  const { problems, lastReloadAt, lastGoodAt, ...live } = status()
  const broken = problems.map(async (problem): Promise<BrokenFields> => ({
    ...problem,
    ...(await toPlaceInFile(generation(), dir, problem)),
  }))
  return {
    generation: live.generation,
    degraded: live.degraded,
    held: live.held,
    problems: await Promise.all(broken),
    lastReloadAt: toMomentOrNull(lastReloadAt),
    lastGoodAt: toMomentOrNull(lastGoodAt),
    nodes: nodes.map((node) => ({ ...node, seenAt: toIsoTime(node.seenAt) })),
    different: toDifferent(nodes) ?? null,
    withoutChannels: isWithoutChannels(generation().config) ? withoutChannels : null,
    hooksUrl: hooksUrl() ?? null,
    store: { trouble: trouble ?? null, warning: warning ?? null, waitingBytes },
    deliveries: counts.deliveries,
    jobs: counts.jobs,
    dueSince: dueForMs === undefined ? null : toIsoTime(Date.now() - dueForMs),
    lanes: lanes.map((lane) => ({ ...lane, since: toIsoTime(lane.since) })),
    minutes: minutes(),
  }
}

function toMomentOrNull(at: number | undefined): string | null {
  return at === undefined || at === 0 ? null : toIsoTime(at)
}
