// GET /api/health: the live generation, the problems, the queues, and the last hour. GET /api/senders: the last request of every sender, and
// which senders are refused or silent.
import type { ApiParts } from './parts.ts'
import { hasNoChannel, noChannelWarning } from '../../../model/config/agents-rules.ts'
import { describeGenerationDifference, toIsoTime } from '../../deliveries/records.ts'
import { listSenders } from '../../deliveries/senders/list.ts'
import { findLineInFile } from './deliveries.ts'
import type { Handlers } from './handlers.ts'
import type { Slots } from '../../../model/runner.ts'
import type { ProblemFields, HealthFields, SlotFields } from '../../../model/api/health.ts'

/** The maximum number of queues that are shown, the longest first: an operator looks at only a few. */
const shownLanes = 20

type HealthParts = Pick<
  ApiParts,
  'store' | 'generation' | 'status' | 'dir' | 'hooksUrl' | 'lastHour' | 'hour' | 'slots' | 'sources'
>

export function handleHealth(parts: HealthParts) {
  return {
    'GET /api/health': () => readHealth(parts),
    'GET /api/senders': async () => ({ senders: await listSenders(parts.store, parts.generation().senders) }),
  } satisfies Partial<Handlers>
}

async function readHealth(parts: HealthParts): Promise<HealthFields> {
  const { store, generation, status, dir, hooksUrl, lastHour, hour, slots } = parts
  const [{ trouble, warning }, counts, waitingBytes, dueForMs, lanes, nodes, counted] = await Promise.all([
    store.health(),
    store.counts(),
    store.waitingBytes(),
    store.dueForMs(),
    store.lanes({ limit: shownLanes }),
    store.nodes(),
    hour(),
  ])
  const { problems, lastReloadAt, lastGoodAt, ...live } = status()
  const broken = problems.map(async (problem): Promise<ProblemFields> => ({
    ...problem,
    ...(await findLineInFile(generation(), dir, problem)),
  }))
  return {
    sources: parts.sources().map(({ label, account = null, lastGoodAt, problems: found }) => ({
      name: label,
      account,
      lastGoodAt: toIsoTimeOrNull(lastGoodAt),
      problems: found,
    })),
    generation: live.generation,
    degraded: live.degraded,
    held: live.held,
    problems: await Promise.all(broken),
    lastReloadAt: toIsoTimeOrNull(lastReloadAt),
    lastGoodAt: toIsoTimeOrNull(lastGoodAt),
    // the only gateway on a store rarely joins again, so its `seenAt` is old; but it is alive, because it answers this request
    nodes: nodes.map((node) => ({ ...node, seenAt: toIsoTime(nodes.length === 1 ? Date.now() : node.seenAt) })),
    different: describeGenerationDifference(nodes) ?? null,
    withoutChannels: hasNoChannel(generation().config) ? noChannelWarning : null,
    hooksUrl: hooksUrl() ?? null,
    store: { trouble: trouble ?? null, warning: warning ?? null, waitingBytes },
    deliveries: counts.deliveries,
    jobs: counts.jobs,
    dueSince: dueForMs === undefined ? null : toIsoTime(Date.now() - dueForMs),
    slots: toSlotFields(slots()),
    lanes: lanes.map((lane) => ({ ...lane, since: toIsoTime(lane.since) })),
    minutes: lastHour.minutes(counted),
    minutesSince: { deliveries: toIsoTime(counted.since), others: toIsoTime(lastHour.since()) },
  }
}

/** The slots of this gateway only: another gateway on the store answers for its own runs. */
export function toSlotFields({ used, most, fullSince, turns }: Slots): SlotFields {
  return {
    used,
    most,
    fullSince: toIsoTimeOrNull(fullSince),
    turns: turns.map(({ jobId, since, until }) => ({ jobId, since: toIsoTime(since), until: toIsoTime(until) })),
  }
}

function toIsoTimeOrNull(at: number | undefined): string | null {
  return at === undefined || at === 0 ? null : toIsoTime(at)
}
