// GET /api/attention: problems that need a person, grouped by cause.
import { describeContent, isFailing, readFirstLine, toIsoTime } from '../../deliveries/records.ts'
import type { AttentionFields, AttentionGroup } from '../../../model/api/operations.ts'
import { isStranger } from '../refusals.ts'
import { findReason } from '../../deliveries/refused/reasons.ts'
import type { ApiParts } from './parts.ts'
import type { Handlers } from './handlers.ts'
import { findPlace } from './rows.ts'

/** The maximum number of parked deliveries that are read for one answer, and of dead jobs. */
const maxRead = 500
/** The number of newest deliveries that are searched for failing runs. */
const maxNewest = 200
const maxGroups = 50
const maxIds = 200
/** Refusals older than this are left out. */
const refusalMs = 3_600_000

type AttentionParts = Pick<ApiParts, 'store' | 'refusals' | 'clock'>

/** One delivery or refusal. Cases with the same `cause` are one group. */
export type Case = Pick<AttentionGroup, 'kind' | 'title' | 'place' | 'code'> & {
  readonly id: string
  readonly at: number
  readonly hook: string
  readonly cause: string
}

export function handleAttention(parts: AttentionParts) {
  return { 'GET /api/attention': async () => groupCases(await readCases(parts)) } satisfies Partial<Handlers>
}

/** Deliveries and refusals that need a person, not sorted. */
export async function readCases({ store, refusals, clock }: AttentionParts): Promise<Case[]> {
  const [parked, dead, newest] = await Promise.all([
    store.deliveries({ limit: maxRead, state: 'parked' }),
    store.deadJobs({ limit: maxRead }),
    store.deliveries({ limit: maxNewest }),
  ])
  const since = clock() - refusalMs
  return [
    ...parked.map((record): Case => {
      const { deliveryId: id, receivedAt: at, hook, problem } = record
      const [code, place, title] = [problem?.code ?? null, findPlace(problem?.frame), describeContent(record)]
      // a message may have text of the payload, so the line of the code is the cause
      const cause = `${code} ${place ?? title}`
      return { kind: 'parked', id, at, hook, code, place, title, cause }
    }),
    ...dead.flatMap((job): Case[] => {
      const { deliveryId: id, createdAt: at, lastError = '', planned } = job
      const hook = 'origin' in planned ? planned.origin.hook : planned.kind
      // a heartbeat has no delivery, so there is nothing to show
      return id === undefined ? [] : [{ kind: 'dead', id, at, hook, ...buildErrorCase(lastError) }]
    }),
    ...newest.flatMap(({ deliveryId: id, receivedAt: at, hook, jobs }): Case[] => {
      const failing = jobs.find(isFailing)
      return failing === undefined
        ? []
        : [{ kind: 'failing', id, at, hook, ...buildErrorCase(failing.lastError ?? '') }]
    }),
    ...refusals.list().flatMap((refusal): Case[] => {
      const { requestId: id, receivedAt: at, path, code } = refusal
      if (at < since || isStranger(refusal)) return []
      const hook = refusal.hook ?? path
      const title = findReason(refusal)
      return [{ kind: 'refused', id, at, hook, code, place: null, title, cause: `${hook} ${title}` }]
    }),
  ]
}

/** Errors that differ only in a number, such as a recipient, have one cause. The three digits of a status are kept. */
function buildErrorCase(error: string): Pick<Case, 'title' | 'place' | 'code' | 'cause'> {
  const title = readFirstLine(error)
  const cause = title.replaceAll(/\d+/g, (digits) => (digits.length === 3 ? digits : '#'))
  return { title, place: null, code: null, cause }
}

/** Parked deliveries come first, refusals last; within a kind, the newest group first. */
function groupCases(cases: readonly Case[]): AttentionFields {
  const groups = new Map<string, Case[]>()
  for (const one of cases.toSorted((a, b) => b.at - a.at)) {
    const name = `${one.kind} ${one.cause}`
    const group = groups.get(name)
    if (group === undefined) groups.set(name, [one])
    else group.push(one)
  }
  const order = ['parked', 'dead', 'failing', 'refused']
  const inOrder = [...groups.values()].toSorted(
    ([a], [b]) => order.indexOf(a?.kind ?? '') - order.indexOf(b?.kind ?? ''),
  )
  const shown = inOrder.slice(0, maxGroups).flatMap((group): AttentionGroup[] => {
    const [newest] = group
    if (newest === undefined) return []
    const { kind, title, place, code } = newest
    // a delivery with several dead runs is one case
    const ids = [...new Set(group.map(({ id }) => id))]
    return [
      {
        kind,
        title,
        place,
        code,
        hooks: [...new Set(group.map(({ hook }) => hook))].slice(0, 5),
        count: ids.length,
        since: toIsoTime(group.at(-1)?.at ?? newest.at),
        ids: ids.slice(0, maxIds),
      },
    ]
  })
  return { count: new Set(cases.map(({ id }) => id)).size, groups: shown }
}
