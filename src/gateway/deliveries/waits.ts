// Describes in one sentence why a run waits, for `show`, `list`, /api and the page.
import { formatCommand } from '../../base/shell.ts'
import { formatQuantity, toPrintableLine } from '../../base/text.ts'
import type { Config } from '../../model/config/config.ts'
import type { Job } from '../../model/job.ts'
import type { Hold } from '../../store/records.ts'
import type { KeptBack } from '../../store/kept-back.ts'
import type { StoreReader } from '../../store/store.ts'
import { maxFailures } from '../../store/rules.ts'
import type { Wait } from '../../store/waits.ts'
import { toIsoTime } from './records.ts'

type WaitsParts = {
  readonly store: Pick<StoreReader, 'waits' | 'nodes'>
  readonly config: Pick<Config, 'limits' | 'agents'>
  readonly now: number
  /** For a reader who is not an operator: the sentence leaves out who ordered a pause, the reason, and the ids of other runs. */
  readonly isOutsider?: boolean
}

/** The maximum number of runs whose waits one answer reads. */
const maxRead = 200

/** The sentences, by the ids of the runs. Runs that are not queued, and runs above `maxRead`, have none. */
export type Waits = ReadonlyMap<string, string>

/** Reads why the queued jobs among these wait. */
export async function readWaits(jobs: readonly Job[], parts: WaitsParts): Promise<Waits> {
  return describeWaits(await listWaits(jobs, parts), parts)
}

export async function listWaits(jobs: readonly Job[], { store, config }: WaitsParts): Promise<readonly Wait[]> {
  const ids = jobs.filter(({ state }) => state === 'queued').map(({ id }) => id)
  return ids.length === 0 ? [] : store.waits({ ids: ids.slice(0, maxRead), limits: config.limits })
}

export async function describeWaits(
  waits: readonly Wait[],
  { store, config, now, isOutsider = false }: WaitsParts,
): Promise<Waits> {
  const isServed = !waits.some(({ kind }) => kind === 'slot') || (await store.nodes()).length > 0
  return new Map(waits.map((wait) => [wait.jobId, describeWait(wait, { config, now, isServed, isOutsider })]))
}

type Facts = Pick<WaitsParts, 'config' | 'now'> & {
  /** Whether any gateway runs on the store. It is read only if a run waits for a slot, else it is true. */
  readonly isServed: boolean
  readonly isOutsider: boolean
}

/** A sentence that begins with "waits", for an operator, about a hold or a budget. */
export function describeKeptBack({ wait }: Pick<KeptBack, 'wait'>, facts: Pick<Facts, 'config' | 'now'>): string {
  return describeWait(wait, { ...facts, isServed: true, isOutsider: false })
}

/** A sentence that begins with "waits". `now`: the present time by the clock of this machine, for the times in the sentence. */
function describeWait(wait: Wait, { config, now, isServed, isOutsider }: Facts): string {
  const formatTimeIn = (inMs: number) => formatMoment(now + inMs, now)
  switch (wait.kind) {
    case 'hold':
      return describeHold(wait, isOutsider, formatTimeIn)
    case 'budget':
      return `waits until ${formatTimeIn(wait.forMs)} at the latest for the budget ${wait.name}, which is used up or reserved`
    case 'retry':
      return `waits until ${formatTimeIn(wait.forMs)} for its next attempt${describeTries(wait, formatTimeIn)}`
    case 'quiet':
      return `waits until ${formatTimeIn(wait.forMs)} for a quiet period`
    case 'behind':
      return `waits for ${formatQuantity(wait.jobs, 'earlier run')} of its key`
    case 'key':
      return wait.endingId === undefined
        ? `waits for ${wait.max === 1 ? 'the run of its key that is in progress' : `one of the ${wait.max} runs of its key that are in progress`}`
        : isOutsider
          ? 'waits for the end of the run that it replaces'
          : `waits for the end of run ${wait.endingId}, which it replaces`
    case 'session':
      return wait.runningId === undefined
        ? `waits for ${formatQuantity(Math.max(1, wait.jobs), 'earlier run')} of its session`
        : `waits for its session, in which ${isOutsider ? 'another run' : `run ${wait.runningId}`} runs`
    case 'share':
      return `waits for the limit ${wait.limit} (${wait.max} of ${wait.max} with its key)`
    case 'limit':
      return `waits for the limit ${wait.name} (${wait.used} of ${wait.max})${describePlace(wait)}`
    case 'mapping':
      return `waits for its mapping (${wait.used} of ${wait.max})${describePlace(wait)}`
    case 'starts':
      return `waits for the limit ${wait.name} (${formatQuantity(wait.max, 'start')} in ${formatAge(wait.periodMs)})${describePlace(wait)}`
    case 'slot': {
      if (!isServed) return 'waits for a gateway: none is running on this store'
      const { maxConcurrent } = config.agents.defaults
      return wait.running < maxConcurrent
        ? 'waits for a gateway to start it'
        : `waits for a free slot of the gateway (${wait.running} runs, agents.defaults.maxConcurrent is ${maxConcurrent})`
    }
  }
}

function describeTries(
  { attempts, failing }: Extract<Wait, { kind: 'retry' }>,
  formatTimeIn: (inMs: number) => string,
): string {
  // a step that only waits, such as for its chat, has no failed attempt
  if (failing === undefined || failing.times === 0)
    return attempts > 0 ? `, after ${formatQuantity(attempts, 'attempt')}` : ''
  const times = formatQuantity(failing.times, 'failed attempt')
  const count = failing.times < maxFailures ? times : `at least ${times}`
  return `, after ${count} since ${formatTimeIn(-failing.forMs)}`
}

function describeHold(
  { jobId, hold, agoMs }: Extract<Wait, { kind: 'hold' }>,
  isOutsider: boolean,
  toTime: (inMs: number) => string,
): string {
  const { label, kind, reason, author, forMs } = hold
  const until = forMs === undefined ? 'until somebody resumes it' : `until ${toTime(forMs)}`
  const what = nameHeld(label)
  if (kind === 'turns') {
    const session = toPrintableLine(label.slice(label.indexOf(':') + 1))
    return isOutsider
      ? describeFullHour(until)
      : `waits ${until} for ${what} ${session}: ${reason}. "${formatCommand`hookloom resume ${jobId}`}" lets it go on now`
  }
  if (isOutsider) return `waits ${until}, because ${what} was paused at ${toTime(-agoMs)}`
  const why = reason === '' ? '' : `: ${reason.replace(/\.$/, '')}`
  return kind === 'pause'
    ? `waits ${until}, because ${author ?? 'somebody'} paused ${what} at ${toTime(-agoMs)}${why}`
    : `waits ${until} for ${what}${why}`
}

/** The sentence about the session of a run that had its turns of this hour, for the sender. */
export function describeTurnsHold({ forMs = 0 }: Pick<Hold, 'forMs'>, now: number): string {
  return describeFullHour(`until ${formatMoment(now + forMs, now)}`)
}

function describeFullHour(until: string): string {
  return `waits ${until}, because its session had as many turns within an hour as it may have`
}

/** The name of the thing that a hold keeps back, as seen from one of its runs. */
function nameHeld(label: string): string {
  const [kind, name] = [label.slice(0, label.indexOf(':')), label.slice(label.indexOf(':') + 1)]
  if (label === 'all') return 'everything'
  return kind === 'limit' ? `the limit ${name}` : `its ${kind}`
}

function describePlace({
  place,
  oldestForMs,
}: {
  readonly place: number | undefined
  readonly oldestForMs: number
}): string {
  const shown = place === undefined ? 'behind more than a thousand others' : `place ${place}`
  return `, ${shown}; the oldest has waited for ${formatAge(oldestForMs)}`
}

/** Formats a moment, without the date if it is today. It is rounded, because the clock of the store may differ by some milliseconds. */
function formatMoment(at: number, now: number): string {
  const nearest = Math.round(at / 1_000) * 1_000
  const [text, today] = [toIsoTime(nearest).slice(0, 19), toIsoTime(now).slice(0, 10)]
  return `${text.startsWith(today) ? text.slice(11) : text.replace('T', ' ')}Z`
}

/** Formats a duration in the largest unit of which it has at least one. */
function formatAge(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000))
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`
  return seconds < 86_400 ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / 86_400)} d`
}
