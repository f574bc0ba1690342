// Pauses runs, resumes them, and lists the pauses.
import type { PauseFields } from '../model/api/operations.ts'
import { Problem } from '../core/model/problem.ts'
import { duration } from '../core/model/values.ts'
import type { Context } from './terminal/context.ts'
import { askAdmin } from './gateway/gateway.ts'
import { cutLine, formatTime, printTable } from './terminal/print.ts'
import { readUser } from './terminal/user.ts'

export type PauseOptions = { readonly until?: string; readonly reason?: string }

/** Pauses `what`. Without `what`, prints the pauses. */
export async function pause(context: Context, what: string | undefined, options: PauseOptions): Promise<number> {
  if (what === undefined) return printPauses(context, options)
  const { until, reason } = options
  const body = {
    what,
    reason,
    by: readUser(),
    until: until === undefined ? undefined : parseUntil('--until', until, Date.now()),
  }
  const { pause: made } = await askAdmin(context, 'POST /api/pauses', { body })
  if (context.json) context.printJson({ pause: made })
  else
    context.print(`${cutLine(made?.what ?? what, 200)} is paused${describeEnd(made)}. Requests are accepted and wait.`)
  return 0
}

export async function resume(context: Context, what: string, { reason }: { reason?: string }): Promise<number> {
  const resumed = await askAdmin(context, 'POST /api/resume', { body: { what, reason, by: readUser() } })
  if (context.json) context.printJson({ what: resumed.what })
  else context.print(`${cutLine(resumed.what, 200)} runs again.`)
  return 0
}

async function printPauses(context: Context, options: PauseOptions): Promise<number> {
  if (Object.keys(options).some((name) => name === 'until' || name === 'reason')) {
    throw new Problem('usage-invalid', 'Say what to pause: a mapping, an agent, a source, a limit, a session, or all.')
  }
  const { pauses } = await askAdmin(context, 'GET /api/pauses')
  if (context.json) for (const each of pauses) context.printJson(each)
  else if (pauses.length === 0) context.print('Nothing is paused.')
  else printTable(context, ['what', 'since', 'until', 'by', 'reason'], pauses.map(listCells))
  return 0
}

function listCells({ what, by, reason, since, until }: PauseFields): string[] {
  const formatIsoTime = (time: string) => formatTime(Date.parse(time))
  return [
    what,
    formatIsoTime(since),
    until === null ? 'hookloom resume' : formatIsoTime(until),
    by ?? 'hookloom',
    reason ?? '',
  ]
}

function describeEnd(made: PauseFields | null): string {
  return made?.until == null ? '' : ` until ${formatTime(Date.parse(made.until))}`
}

/** Parses a time in the future: a duration from now, or a time. Throws `usage-invalid`. */
export function parseUntil(option: string, text: string, now: number): string {
  const span = duration.safeParse(text)
  const at = span.success ? now + span.data : /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN
  if (!Number.isNaN(at) && at > now && at < 8.64e15) return new Date(at).toISOString()
  throw new Problem(
    'usage-invalid',
    `${option} needs a duration such as 30m, 2h or 1d, or a time in the future such as 2026-01-02T03:04:05Z, found "${cutLine(text, 60)}".`,
  )
}
