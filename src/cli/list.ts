// Lists the newest deliveries, the newest last; or the dead jobs; or the refusals that the running gateway remembers.
import type { DeliveryState } from '../core/model/delivery.ts'
import type { Job } from '../model/job.ts'
import { Problem } from '../core/model/problem.ts'
import { toPrintable } from '../base/text.ts'
import type { NodeRecord } from '../store/owners.ts'
import type { DeliveryRecord } from '../store/records.ts'
import type { Context } from './terminal/context.ts'
import { printOlder, cutLine, describeRepetitions, printTable, formatTime } from './terminal/print.ts'
import {
  describeContent,
  isFailing,
  toDeliveryFields,
  describeGenerationDifference,
  toJobFields,
  toIsoTime,
} from '../gateway/deliveries/records.ts'
import { findId, findIdAmong, maxIdsRead } from './gateway/ids.ts'
import { readStore, readWaitsOf } from './gateway/stored.ts'
import type { Waits } from '../gateway/deliveries/waits.ts'

/** `before`: the id of a delivery; with `dead`, the id of a run; with `refused`, the id of a request. */
export type ListOptions = {
  limit: number
  before?: string
  state?: DeliveryState
  dead?: boolean
  refused?: boolean
  follow?: boolean
  hook?: string
  source?: string
  search?: string
  /** In milliseconds since the epoch, like `until`. */
  since?: number
  until?: number
}

export async function list(context: Context, options: ListOptions): Promise<number> {
  const { limit, state, dead, refused, hook, source, search: text, since, until } = options
  if (refused === true) return printRefused(context, options)
  if (dead === true) return printDead(context, options)
  const before = options.before && (await findId(context, options.before))
  // the stream is opened before the store is read, because a delivery that comes between the two would be in neither of them
  const follow =
    options.follow === true ? await (await import('./gateway/follow.ts')).openFollow(context, options) : undefined
  const none = { records: [], nodes: [], waits: new Map() }
  const { records, nodes, waits } = await readStore<{ records: DeliveryRecord[]; nodes: NodeRecord[]; waits: Waits }>(
    context,
    none,
    async (store) => {
      if (before !== undefined && (await store.delivery(before)) === undefined)
        throw toUnknownIdProblem('delivery', before)
      const found = await store.deliveries({ limit, before, state, hook, source, text, since, until })
      const jobs = found.flatMap((record) => record.jobs.find((job) => job.state === 'queued') ?? [])
      return { records: found, nodes: await store.nodes(), waits: await readWaitsOf(context, store, jobs) }
    },
  )
  const times = { since: toOptionTime(since), until: toOptionTime(until) }
  const command = ['list', ...listFilterArguments({ state, hook, source, search: text, ...times })]
  if (context.json)
    for (const record of records) context.printJson({ ...toDeliveryFields(record), waits: findWait(record, waits) })
  else if (records.length === 0) context.print(await describeEmptyList(context, { hook, command, before }))
  else {
    const header = ['received', 'state', 'runs', 'hook', 'from', 'mapping', 'about', 'id']
    const rows = records.map((record) => listCells(record, waits))
    printTable(context, header, rows)
    if (follow === undefined)
      printOlder(context, command, { found: records, limit, cursor: ({ deliveryId }) => deliveryId })
  }
  const different = describeGenerationDifference(nodes)
  if (different !== undefined) context.note(toPrintable(different))
  await follow?.()
  return 0
}

function listFilterArguments(filters: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(filters).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, value]))
}

const toOptionTime = (at: number | undefined) => (at === undefined ? undefined : toIsoTime(at))

async function describeEmptyList(
  context: Context,
  {
    hook,
    command: [, ...filters],
    before,
  }: { hook: string | undefined; command: readonly string[]; before: string | undefined },
): Promise<string> {
  const unknown = hook === undefined ? undefined : await (await import('./types.ts')).findUnknownHook(context, hook)
  if (unknown !== undefined) return unknown
  if (filters.length > 0)
    return `No ${before === undefined ? '' : 'older '}delivery matches ${cutLine(filters.join(' '), 200)}.`
  return before === undefined ? 'No delivery yet.' : 'No delivery is older.'
}

function toUnknownIdProblem(what: string, id: string): Problem {
  return new Problem(
    'not-found',
    `No ${what} has the id "${cutLine(id, 60)}". --before needs the id of an existing one.`,
  )
}

function listCells(record: DeliveryRecord, waits: Waits): string[] {
  const { receivedAt, state, hook, source, event, mappingId, deliveryId } = record
  const from = [source, event].filter((word) => word !== undefined).join(' ')
  const runs = describeRuns(record.jobs)
  return [formatTime(receivedAt), state, runs, hook, from, mappingId ?? '', describeOutcome(record, waits), deliveryId]
}

function describeOutcome(record: DeliveryRecord, waits: Waits): string {
  const repeated = describeRepetitions(record)
  const wait = findWait(record, waits)
  const notes = [
    ...(record.recovered ? ['recovered'] : []),
    ...(record.edited ? ['edited'] : []),
    ...(wait === undefined ? [] : [toPrintable(wait)]),
    ...(repeated === '' ? [] : [`repeated ${repeated}`]),
  ]
  return `${describeContent(record)} ${notes.length === 0 ? '' : `(${notes.join(', ')})`}`.trim()
}

/** Why the first queued job of the delivery waits. */
function findWait({ jobs }: DeliveryRecord, waits: Waits): string | undefined {
  return jobs.flatMap(({ id }) => waits.get(id) ?? [])[0]
}

/** The states of the runs: `dead`, or `2 done, 1 waiting` where a delivery made several. */
function describeRuns(jobs: readonly Job[]): string {
  const counts = new Map<string, number>()
  for (const job of jobs) {
    const state = job.state === 'queued' ? (isFailing(job) ? 'tried again' : 'waiting') : job.state
    counts.set(state, (counts.get(state) ?? 0) + 1)
  }
  return [...counts].map(([state, count]) => (jobs.length === 1 ? state : `${count} ${state}`)).join(', ')
}

async function printDead(context: Context, { limit, before: given }: ListOptions): Promise<number> {
  const before = given && (await findDeadId(context, given))
  const jobs = await readStore(context, [], async (store) => {
    if (before !== undefined && (await store.job(before)) === undefined) throw toUnknownIdProblem('run', before)
    return store.deadJobs({ limit, before })
  })
  if (context.json) for (const job of jobs) context.printJson(toJobFields(job, undefined))
  else if (jobs.length === 0) context.print(before === undefined ? 'No job is dead.' : 'No older job is dead.')
  else {
    printTable(context, ['since', 'kind', 'session', 'id', 'why'], jobs.map(listCellsOfDeadJob))
    printOlder(context, ['list', '--dead'], { found: jobs, limit, cursor: ({ id }) => id })
  }
  return 0
}

/** The id of the run that the user named: a whole id, a unique prefix of one, or "last" for the newest dead run. An unknown id is returned
 * unchanged. */
async function findDeadId(context: Context, given: string): Promise<string> {
  return readStore(context, given, async (store) => {
    if (given === 'last') return (await store.deadJobs({ limit: 1 }))[0]?.id ?? given
    const found = await store.idsFrom({ prefix: given, limit: maxIdsRead })
    return findIdAmong(
      found.flatMap(({ id, deliveryId }) => (id === deliveryId ? [] : [id])),
      given,
    )
  })
}

function listCellsOfDeadJob({ createdAt, failures, planned, id, lastError = '' }: Job): string[] {
  return [formatTime(failures.at(-1)?.at ?? createdAt), planned.kind, planned.sessionKey, id, lastError]
}

/** The maximum length of a line in the list of refusals. */
const maxLineChars = 100

const howToRetry = '"hookloom retry --refused" runs the kept ones that are valid now; --dry-run only counts them.'

async function printRefused(context: Context, { limit, before: given, hook: wanted }: ListOptions): Promise<number> {
  const { describeReasons, fetchRefusals } = await import('./gateway/refusals.ts')
  const refusals = await fetchRefusals(context, wanted)
  const ids = refusals.map(({ requestId }) => requestId)
  const before = given && findIdAmong(ids, given)
  const place = before === undefined ? refusals.length : ids.indexOf(before)
  if (place < 0) throw toUnknownIdProblem('refused request', before ?? '')
  const newest = refusals.slice(0, place).slice(-limit)
  if (context.json) {
    for (const refusal of newest) {
      context.printJson({ ...refusal, receivedAt: toIsoTime(refusal.receivedAt), hook: refusal.hook ?? null })
    }
  } else if (newest.length === 0) {
    const of = wanted === undefined ? '' : ` of the hook "${cutLine(wanted, 60)}"`
    const remembered = before === undefined ? 'refusal since the gateway started' : 'older refusal is remembered'
    context.print(`No ${remembered.replace('refusal', `refusal${of}`)}.`)
  } else {
    const rows = newest.map((refusal) => {
      const { receivedAt, client, path, hook, status, error, requestId, isKept, ranAs } = refusal
      const why = `${status} ${describeReasons(refusal).join('; ') || error}`
      const kept = isKept ? 'yes' : ranAs === undefined ? 'no' : 'ran'
      return [formatTime(receivedAt), requestId.slice(0, 8), kept, cutLine(client, 15), cutLine(hook ?? path, 20), why]
    })
    printTable(context, ['received', 'request', 'kept', 'client', 'hook', 'why'], rows, maxLineChars)
    context.print('\n"hookloom show <request>" shows all of a refusal.')
    if (newest.some(({ isKept }) => isKept)) context.print(howToRetry)
    const command = ['list', '--refused', ...listFilterArguments({ hook: wanted })]
    printOlder(context, command, { found: newest, limit, cursor: ({ requestId }) => requestId })
  }
  return 0
}
