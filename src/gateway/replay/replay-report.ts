// The report of a replay for `--json` and the admin port: counts, groups with one example each, and a line for each delivery.
import { type ShownChange, groupChanges, listPaths } from './comparison.ts'
import { describeOutcome } from './outcome.ts'
import { cutFrom, findDivergence, takeStart } from '../../base/text.ts'
import type * as api from '../../model/api/replay.ts'
import type { GenerationParts } from './fixtures.ts'
import { toIsoTime } from '../deliveries/records.ts'
import type { Replay, ReplayedDelivery } from './replay.ts'

/** The maximum number of characters of a value, and how many of them are shown before the first difference. */
const shownPart = { max: 2_000, lead: 200 }

export function toReplayReport(
  { deliveries, tooLarge, notRun, notLoaded }: Replay,
  { compared, transforms }: Pick<api.ReplayReport, 'compared'> & Pick<GenerationParts, 'transforms'>,
): api.ReplayReport {
  const total = deliveries.length
  const changed = deliveries.filter((one) => one.class !== 'same')
  const drifted = deliveries.flatMap((one): ReplayedDelivery[] => {
    const { recorded = one.before, before, drift } = one
    return drift.length === 0 ? [] : [{ ...one, class: 'changed', before: recorded, after: before, changes: drift }]
  })
  return {
    compared,
    total,
    counts: countClasses(deliveries),
    groups: groupChanges(changed).map((group) => ({ class: group.class, ...toGroup(group, total) })),
    unstable: countPaths(deliveries),
    drift: groupChanges(drifted).map((group) => toGroup(group, total)),
    tooLarge,
    notRun,
    problems: listProblems(transforms, notLoaded),
    deliveries: deliveries.map(toLine),
  }
}

function listProblems(
  transforms: GenerationParts['transforms'],
  notLoaded: Replay['notLoaded'],
): api.ReplayReport['problems'] {
  const problems = new Map(
    [...transforms.values()].flatMap(({ module, problem }) => (problem === undefined ? [] : [[module, problem]])),
  )
  return [...problems].map(([module, { detail, frame = null }]) => {
    const notCompared = notLoaded.filter((other) => other === module).length
    return { module, detail, frame, notCompared }
  })
}

function countClasses(deliveries: readonly ReplayedDelivery[]): Record<api.ReplayClass, number> {
  const counts: Record<api.ReplayClass, number> = {
    same: 0,
    changed: 0,
    'now skipped': 0,
    'now refused': 0,
    'now parks': 0,
    'now works': 0,
    'another mapping': 0,
  }
  for (const one of deliveries) counts[one.class] += 1
  return counts
}

function countPaths(deliveries: readonly ReplayedDelivery[]): api.ReplayReport['unstable'] {
  const counts = new Map<string, number>()
  for (const { unstable } of deliveries) {
    for (const path of listPaths(unstable.map((one) => ({ path: one })))) counts.set(path, (counts.get(path) ?? 0) + 1)
  }
  return [...counts].map(([path, count]) => ({ path, count }))
}

function toGroup(
  { paths, members }: ReturnType<typeof groupChanges<ReplayedDelivery>>[number],
  total: number,
): api.GroupFields {
  const [example] = members
  const deliveryIds = members.map(({ deliveryId }) => deliveryId)
  const percent = toPercent(members.length, total)
  return { paths, count: members.length, percent, deliveryIds, example: toExample(example) }
}

/** A percentage with at most one decimal. */
function toPercent(count: number, total: number): number {
  return total === 0 ? 0 : Math.round((count / total) * 1_000) / 10
}

function toExample({ deliveryId, hook, before, after, changes }: ReplayedDelivery) {
  const describe = (outcome: typeof before) => takeStart(describeOutcome(outcome), shownPart.max)
  return { deliveryId, hook, before: describe(before), after: describe(after), changes: changes.map(toChangeFields) }
}

/** Cuts long texts to a part that begins shortly before the first difference. */
function toChangeFields({ path, before, after, recorded }: ShownChange): api.ChangeFields {
  const from = typeof before === 'string' && typeof after === 'string' ? findDivergence(before, after, shownPart) : 0
  const cutValue = (value: unknown) =>
    typeof value === 'string' ? cutFrom(value, from, shownPart.max) : (value ?? null)
  return {
    path,
    before: cutValue(before),
    after: cutValue(after),
    ...(recorded === undefined ? {} : { recorded: cutValue(recorded) }),
  }
}

function toLine(one: ReplayedDelivery): api.ReplayReport['deliveries'][number] {
  return {
    deliveryId: one.deliveryId,
    receivedAt: toIsoTime(one.receivedAt),
    hook: one.hook,
    source: one.source ?? null,
    event: one.event ?? null,
    class: one.class,
    paths: listPaths(one.changes),
    unstable: one.unstable,
    drift: listPaths(one.drift),
  }
}
