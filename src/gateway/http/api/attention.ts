// GET /api/attention: problems that need a person, grouped by cause.
import { groupBy } from '../../../base/group.ts'
import { describeContent, readFirstLine, toIsoTime } from '../../deliveries/records.ts'
import type { AttentionFields, AttentionGroup, SenderFields } from '../../../model/api/operations.ts'
import { Problem, type ProblemCode, problems } from '../../../core/model/problem.ts'
import type { DeliveryRecord } from '../../../store/records.ts'
import type { Trouble } from '../../../store/troubles.ts'
import { isStranger, type Refusal } from '../refusals.ts'
import { findReason } from '../../deliveries/refused/reasons.ts'
import { endRefusals, isEnded, listOpenRefusals } from '../../deliveries/senders/ended.ts'
import { describeMs } from '../../deliveries/senders/judge.ts'
import { toSenderList } from '../../deliveries/senders/list.ts'
import { readRecords, type SenderRecord, toCauseName } from '../../deliveries/senders/record.ts'
import type { ApiParts } from './parts.ts'
import type { Handlers } from './handlers.ts'
import { readParameter } from './query.ts'
import { findPlace } from './rows.ts'
import { readKeptGroups } from './wait-ends.ts'

/** The maximum number of parked deliveries that are read for one answer. */
const maxParked = 500
/** The maximum number of deliveries with dead or failing runs that are read. Their causes come first, so none is hidden by another one. */
const maxTroubles = 2_000
const maxGroups = 50
const maxIds = 200
/** Refusals that are only in memory and older than this are left out. */
const refusalMs = 3_600_000

type CaseParts = Pick<ApiParts, 'store' | 'refusals' | 'clock'>
type AttentionParts = CaseParts & Pick<ApiParts, 'generation'>

/** Deliveries or refusals of one hook that are alike. All with the same `cause` are one group. `ids`: the newest first, perhaps not all. */
export type Case = Pick<AttentionGroup, 'title' | 'place' | 'code'> & {
  readonly kind: Exclude<AttentionGroup['kind'], 'waiting' | 'silent'>
  readonly ids: readonly string[]
  readonly count: number
  /** The times of the newest and of the oldest. */
  readonly at: number
  readonly since: number
  readonly hook: string
  readonly cause: string
}

export function handleAttention(parts: AttentionParts) {
  const { store, clock } = parts
  return {
    'GET /api/attention': async () => {
      const records = await readRecords(store)
      const [cases, kept] = await Promise.all([readCases(parts, records), readKeptGroups(parts, maxIds)])
      const { count, groups } = groupCases(cases)
      const silent = toSenderList(records, parts.generation().senders).flatMap(toSilentGroup)
      return { count: count + silent.length, groups: [...groups, ...silent, ...kept] }
    },
    'POST /api/attention/end': async ({ query }) => {
      const hook = readParameter(query, 'hook')
      const code = readParameter(query, 'code')
      if (hook === undefined || !isCode(code))
        throw new Problem('usage-invalid', 'Name the hook and the code of the refusals: ?hook=<name>&code=<code>.')
      return { ended: await endRefusals(store, { hook, code, at: clock() }) }
    },
  } satisfies Partial<Handlers>
}

const isCode = (code: string | undefined): code is ProblemCode => code !== undefined && Object.hasOwn(problems, code)

/** What needs a person, not sorted: no run that only waits. */
export async function readCases(
  { store, refusals, clock }: CaseParts,
  senders: readonly SenderRecord[],
): Promise<Case[]> {
  const [parked, troubles] = await Promise.all([
    store.deliveries({ limit: maxParked, state: 'parked' }),
    store.troubles({ limit: maxTroubles, each: maxIds }),
  ])
  const since = clock() - refusalMs
  const remembered = refusals.list().filter((refusal) => refusal.receivedAt >= since && !isStranger(refusal))
  return [...parked.map(toParkedCase), ...listTroubleCases(troubles), ...listRefusedCases(remembered, senders)]
}

function toParkedCase(record: DeliveryRecord): Case {
  const { deliveryId, receivedAt: at, hook, problem } = record
  const code = problem?.code ?? null
  const place = findPlace(problem?.frame)
  const title = describeContent(record)
  // a message may have text of the payload, so the line of the code is the cause
  const cause = `${code} ${place ?? title}`
  return { kind: 'parked', ids: [deliveryId], count: 1, at, since: at, hook, code, place, title, cause }
}

/** `troubles`: the newest of each error first. */
function listTroubleCases(troubles: readonly Trouble[]): Case[] {
  const cases = new Map<string, Case>()
  for (const { state, error, hook, deliveryId, at, count, since } of troubles) {
    const name = JSON.stringify([state, error, hook])
    const known = cases.get(name)
    const kind = state === 'dead' ? 'dead' : 'failing'
    const first: Case = known ?? { kind, ids: [], count, at, since, hook, ...buildErrorCase(error) }
    cases.set(name, { ...first, ids: [...first.ids, deliveryId] })
  }
  return [...cases.values()]
}

/** The refusals of known senders are in the store; `remembered` has the newest ones, and those of other clients with a token. */
function listRefusedCases(remembered: readonly Refusal[], senders: readonly SenderRecord[]): Case[] {
  const toName = ({ hook, code }: { hook: string; code: ProblemCode }) => `${hook} ${toCauseName(code)}`
  const cases = new Map<string, Case>()
  for (const { hook, code, why, count, requestId, last, since } of listOpenRefusals(senders)) {
    const name = toName({ hook, code })
    const { ids = [], count: others = 0, at = last } = cases.get(name) ?? {}
    const found = { ids: [...ids, requestId], count: others + count, at: Math.max(at, last), since }
    cases.set(name, { kind: 'refused', hook, code, place: null, title: why, cause: name, ...found })
  }
  for (const refusal of remembered) {
    const { requestId, receivedAt: at, path, code } = refusal
    const hook = refusal.hook ?? path
    if (isEnded({ hook, code, at }, senders)) continue
    const title = findReason(refusal)
    const stored = cases.get(toName({ hook, code }))
    const name = stored?.cause ?? `${hook} ${title}`
    const { ids = [], count = 0, since = at } = stored ?? cases.get(name) ?? {}
    const all = ids.includes(requestId) ? ids : [requestId, ...ids]
    const counted = { ids: all, count: Math.max(count, all.length), since: Math.min(since, at) }
    cases.set(name, { kind: 'refused', hook, code, place: null, title, cause: name, at, ...counted })
  }
  return [...cases.values()]
}

/** A sender that sent nothing for an unusually long time, until it sends again. */
function toSilentGroup({ hook, source, sourceName, silentSince: since, usualMs }: SenderFields): AttentionGroup[] {
  if (since === null) return []
  const usual = usualMs === null ? '' : `, usually once in ${describeMs(usualMs)}`
  const title = `${sourceName ?? source ?? 'The sender'} has sent nothing since ${since.replace(/\.\d+Z$/, 'Z')}${usual}.`
  return [{ kind: 'silent', title, place: null, code: null, hooks: [hook], count: 1, since, at: since, ids: [] }]
}

/** Errors that differ only in a number, such as a recipient, have one cause. The three digits of a status are kept. */
function buildErrorCase(error: string): Pick<Case, 'title' | 'place' | 'code' | 'cause'> {
  const title = readFirstLine(error)
  const cause = title.replaceAll(/\d+/g, (digits) => (digits.length === 3 ? digits : '#'))
  return { title, place: null, code: null, cause }
}

/** Parked deliveries come first, refusals last; within a kind, the newest group first. */
function groupCases(cases: readonly Case[]): AttentionFields {
  const newestFirst = cases.toSorted((a, b) => b.at - a.at)
  const groups = groupBy(newestFirst, ({ kind, cause }) => `${kind} ${cause}`)
  const order = ['parked', 'dead', 'failing', 'refused']
  const inOrder = [...groups.values()].toSorted(([a], [b]) => order.indexOf(a.kind) - order.indexOf(b.kind))
  const all = inOrder.map((group): AttentionGroup => {
    const [{ kind, title, place, code }] = group
    // a delivery with several runs that failed is one case
    const ids = [...new Set(group.flatMap((each) => each.ids))]
    const hidden = group.reduce((sum, each) => sum + each.count - each.ids.length, 0)
    return {
      kind,
      title,
      place,
      code,
      hooks: [...new Set(group.map(({ hook }) => hook))].slice(0, 5),
      count: ids.length + hidden,
      since: toIsoTime(Math.min(...group.map(({ since }) => since))),
      at: toIsoTime(Math.max(...group.map(({ at }) => at))),
      ids: ids.slice(0, maxIds),
    }
  })
  const count = all.reduce((sum, group) => sum + group.count, 0)
  return { count, groups: all.slice(0, maxGroups) }
}
