// GET /api/health: the live generation, the problems, the queues, and the last hour.
import type Router from '@koa/router'
import type { Middleware } from 'koa'
import type { ApiParts } from './parts.ts'
import { hasNoChannel, noChannelWarning } from '../../model/agents-rules.ts'
import { describeDifference, toIsoTime } from '../../deliveries/records.ts'
import { findLineInFile } from './deliveries.ts'
import { reply } from './reply.ts'
import type { ProblemFields, HealthFields } from '../../model/api-types.ts'

/** The number of longest queues that are shown: an operator looks at few. */
const shownLanes = 20

type HealthParts = Pick<ApiParts, 'store' | 'generation' | 'status' | 'dir' | 'hooksUrl' | 'minutes'>

export function addHealthRoute(router: Router, api: Middleware, parts: HealthParts): void {
  router.get('/api/health', api, async (ctx) => reply(ctx, await readHealth(parts)))
}

async function readHealth({ store, generation, status, dir, hooksUrl, minutes }: HealthParts): Promise<HealthFields> {
  const [{ trouble, warning }, counts, waitingBytes, dueForMs, lanes, nodes] = await Promise.all([
    store.health(),
    store.counts(),
    store.waitingBytes(),
    store.dueForMs(),
    store.lanes({ limit: shownLanes }),
    store.nodes(),
  ])
  const { problems, lastReloadAt, lastGoodAt, ...live } = status()
  const broken = problems.map(async (problem): Promise<ProblemFields> => ({
    ...problem,
    ...(await findLineInFile(generation(), dir, problem)),
  }))
  return {
    generation: live.generation,
    degraded: live.degraded,
    held: live.held,
    problems: await Promise.all(broken),
    lastReloadAt: toIsoTimeOrNull(lastReloadAt),
    lastGoodAt: toIsoTimeOrNull(lastGoodAt),
    // the only gateway on a store rarely joins again, so its `seenAt` is old; but it answers now
    nodes: nodes.map((node) => ({ ...node, seenAt: toIsoTime(nodes.length === 1 ? Date.now() : node.seenAt) })),
    different: describeDifference(nodes) ?? null,
    withoutChannels: hasNoChannel(generation().config) ? noChannelWarning : null,
    hooksUrl: hooksUrl() ?? null,
    store: { trouble: trouble ?? null, warning: warning ?? null, waitingBytes },
    deliveries: counts.deliveries,
    jobs: counts.jobs,
    dueSince: dueForMs === undefined ? null : toIsoTime(Date.now() - dueForMs),
    lanes: lanes.map((lane) => ({ ...lane, since: toIsoTime(lane.since) })),
    minutes: minutes(),
  }
}

function toIsoTimeOrNull(at: number | undefined): string | null {
  return at === undefined || at === 0 ? null : toIsoTime(at)
}
