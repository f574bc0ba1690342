// /api/pauses and /api/cancel: jobs that an operator keeps back or cancels, for all gateways on the store. Each change leaves an event in the
// main session of the default agent, with who made the change and why.
import type { z } from 'zod'
import { cut, toPrintableLine } from '../../../base/text.ts'
import { toIsoTime } from '../../deliveries/records.ts'
import type { askedChange, askedPause } from '../../../model/api/bodies.ts'
import type { CancelledFields, PauseFields } from '../../../model/api/operations.ts'
import { mainSessionKey } from '../../../core/model/action.ts'
import type { Job } from '../../../model/job.ts'
import { Problem } from '../../../core/model/problem.ts'
import type { Generation } from '../../generation/generation.ts'
import type { Hold } from '../../../store/records.ts'
import { toSessionLabel } from '../../../store/rules.ts'
import type { ApiParts } from './parts.ts'
import { findPauseTarget, isFromRequest, nameLabel, type PauseTarget } from './pause-targets.ts'
import type { Handlers } from './handlers.ts'
import { findDefaultAgentId } from '../../../model/config/plan-settings.ts'

type PauseParts = Pick<ApiParts, 'store' | 'generation' | 'newId' | 'lookForJobs' | 'log'>

const maxChars = 500

/** A name as lists and alerts show it, so that what they show can be resumed. */
function toShownName(name: string): string {
  return cut(toPrintableLine(name), maxChars)
}

type WithAuthor<Change> = Change & { readonly by: string }
type AskedPause = WithAuthor<z.output<typeof askedPause.schema>>
type AskedChange = WithAuthor<z.output<typeof askedChange.schema>>

/** Who asks, if nobody says it, and each text as one line, so that a terminal and a log can show it. */
function toLines<Change extends object>(asked: Change): WithAuthor<Change> {
  const texts = Object.entries<string | undefined>({ by: 'the admin API', ...asked })
  // as: the same texts, shortened
  return Object.fromEntries(texts.map(([name, text]) => [name, text && toShownName(text)])) as WithAuthor<Change>
}

/** The kinds of holds that `resume` ends. A budget is raised instead. */
const resumed = ['pause', 'turns', 'provider'] as const satisfies readonly Hold['kind'][]

export function handlePauses(parts: PauseParts) {
  return {
    'GET /api/pauses': async () => ({ pauses: await listPauses(parts) }),
    'POST /api/pauses': async ({ body }) => pause(parts, toLines(await body())),
    'POST /api/resume': async ({ body }) => resume(parts, toLines(await body())),
    'POST /api/cancel': async ({ body }) => cancel(parts, toLines(await body())),
    'DELETE /api/runs/{id}': async ({ params, query, body }) => {
      // many clients send no body with DELETE, and proxies may drop it, so the query counts too
      const change = await body(JSON.stringify(query))
      return cancel(parts, { ...toLines(change), what: params.id })
    },
  } satisfies Partial<Handlers>
}

export async function listPauses({ store, generation }: Pick<PauseParts, 'store' | 'generation'>) {
  return buildPauses(await store.holds(), generation())
}

/** The holds that keep jobs back, as people see them. */
function buildPauses(holds: readonly Hold[], generation: Generation): PauseFields[] {
  return holds.map(({ label, kind, author, reason, at, forMs }) => ({
    what: nameLabel(label, generation),
    kind,
    by: author ?? null,
    reason: reason === '' ? null : reason,
    since: toIsoTime(at),
    until: forMs === undefined ? null : toIsoTime(Date.now() + forMs),
  }))
}

async function pause(parts: PauseParts, asked: AskedPause): Promise<{ pause: PauseFields | null }> {
  const { store, generation } = parts
  const { what, reason = '', by, until } = asked
  const forMs = until === undefined ? undefined : Date.parse(until) - Date.now()
  if (forMs !== undefined && forMs <= 0) throw new Problem('usage-invalid', 'until must be in the future.')
  const target = findPauseTarget(what, generation())
  await store.hold({ label: target.label, kind: 'pause', reason, author: by, forMs })
  await noteChange(parts, { ...asked, done: 'paused', name: target.name, until })
  const pauses = buildPauses(await store.holds(), generation())
  return { pause: pauses.find((each) => each.what === target.name && each.kind === 'pause') ?? null }
}

async function resume(parts: PauseParts, asked: AskedChange): Promise<{ what: string }> {
  const { store, generation, lookForJobs } = parts
  const holds = await store.holds()
  const label = await findSessionLabel(store, asked.what)
  // the list shows the label of a mapping that was removed, and this label resumes it
  const held = holds.find(
    (hold) => hold.label === label || toShownName(nameLabel(hold.label, generation())) === asked.what,
  )
  const target = held === undefined ? findPauseTarget(label ?? asked.what, generation()) : toTarget(held, generation())
  const ended = holds.filter(({ label, kind }) => label === target.label && resumed.some((each) => each === kind))
  if (ended.length === 0) throw new Problem('conflict', `${target.name} is not paused. "hookloom pause" lists what is.`)
  for (const { label, kind } of ended) await store.unhold({ label, kind })
  lookForJobs()
  await noteChange(parts, { ...asked, done: 'resumed', name: target.name })
  return { what: target.name }
}

/** The label of the session of a run, if the text is the id of a run: a command with an id can be pasted, whatever the key of the session is. */
async function findSessionLabel(store: PauseParts['store'], id: string): Promise<string | undefined> {
  const planned = (await store.job(id))?.planned
  return planned?.kind === 'agent' ? toSessionLabel(planned) : undefined
}

function toTarget({ label }: Hold, generation: Generation): PauseTarget {
  return { label, name: nameLabel(label, generation) }
}

/** `what`: the id of a run or of a delivery, or the key of a session or of a flow. */
async function cancel(parts: PauseParts, asked: AskedChange): Promise<CancelledFields> {
  const { store, lookForJobs } = parts
  const { what, reason, by } = asked
  const ending = {
    state: 'cancelled',
    reason: `cancelled by ${by}${reason === undefined ? '' : `: ${reason}`}`,
  } as const
  const jobs = await findJobsToCancel(parts, what)
  const runs: { runId: string; state: 'cancelled' | 'ending' }[] = []
  for (const { id } of jobs) {
    const ended = await store.endJob(id, ending)
    if (ended !== undefined) runs.push({ runId: id, state: ended === 'ended' ? 'cancelled' : 'ending' })
  }
  if (runs.length === 0) {
    const states = [...new Set(jobs.map(({ state }) => state))].join(', ')
    throw new Problem('conflict', `Nothing is left to cancel: the state of the run is ${states}.`)
  }
  lookForJobs()
  const ids = runs.map(({ runId }) => runId)
  const shown = ids.length > 3 ? `${ids.slice(0, 3).join(', ')} and ${ids.length - 3} more` : ids.join(', ')
  await noteChange(parts, { ...asked, done: 'cancelled', name: `run ${shown}` })
  return { runs }
}

async function findJobsToCancel({ store }: PauseParts, what: string): Promise<readonly Job[]> {
  const job = await store.job(what)
  if (job !== undefined) return [job]
  const delivery = await store.delivery(what)
  if (delivery !== undefined && delivery.jobs.length > 0) return delivery.jobs
  const jobs = await store.unfinishedJobs({ key: what, limit: 10_000 })
  if (jobs.length > 0) return jobs
  throw new Problem(
    'not-found',
    `No run or delivery has the id "${cut(what, 60)}", and no run of this key waits or runs. "hookloom list" shows the ids.`,
  )
}

type Change = Pick<AskedChange, 'by' | 'reason'> & {
  readonly done: string
  readonly name: string
  readonly until?: string | undefined
}

function describeChange({ by, done, name, reason, until }: Change): string {
  const why = reason === undefined ? '' : ` Reason: ${reason.replace(/\.$/, '')}.`
  return `Hookloom: ${by} ${done} ${name}.${why}${until === undefined ? '' : ` Until ${until}.`}`
}

/** Makes an event that wakes no agent, and a log line. Sources and session keys come from requests, so the log line has only their kind. */
async function noteChange({ store, generation, newId, lookForJobs, log }: PauseParts, change: Change): Promise<void> {
  const [kind = ''] = change.name.split(':')
  log.info({}, describeChange(isFromRequest(change.name) ? { ...change, name: `a ${kind}` } : change))
  const text = describeChange(change)
  const id = newId()
  const agentId = findDefaultAgentId(generation().config)
  const planned = { kind: 'alert', agentId, sessionKey: mainSessionKey, text, event: true } as const
  await store.addTask({ id, planned, lane: `alert/${id}`, standsFor: `change/${id}` })
  lookForJobs()
}
