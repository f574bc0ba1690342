// Runs parked deliveries and refused requests again, or queues dead jobs again: those of one delivery, or all.
import { formatQuantity } from '../base/text.ts'
import { formatCommand } from '../base/shell.ts'
import type { RetriedFields } from '../model/api/answers.ts'
import { exitCodes, Problem } from '../core/model/problem.ts'
import { type Context, withProgress } from './terminal/context.ts'
import { askAdmin, askInParts, type Target, toRefusedQuery } from './gateway/gateway.ts'
import { findId } from './gateway/ids.ts'
import { readStore } from './gateway/stored.ts'
import { cutLine } from './terminal/print.ts'

/** The maximum number of dead jobs that one command reads. */
const maxDeadJobs = 10_000

export async function retry(context: Context, target: Target): Promise<number> {
  switch (target.kind) {
    case 'refused':
      return retryRefused(context, target)
    case 'parked':
      return retryParked(context, target.hook)
    case 'dead':
      return retryDead(context)
    case 'one':
      return retryOne(context, await findId(context, target.id))
  }
}

async function retryOne(context: Context, id: string): Promise<number> {
  const retried = await withProgress(context, 'Waiting for the gateway', () => askRetry(context, id))
  const { state, jobs, tried = [] } = retried
  const isParked = state === 'parked'
  if (context.json) context.printJson(retried)
  else if (tried.length > 0)
    context.print(`${cutLine(id, 60)}: ${formatQuantity(tried.length + jobs.length, 'run is', 'runs are')} tried now.`)
  else if (jobs.length > 0) context.print(`${cutLine(id, 60)}: ${describeDeadJobs(jobs.length)} queued again.`)
  else {
    const why = isParked ? await readProblem(context, id) : ''
    context.print(`${cutLine(id, 60)} ran again and is ${cutLine(state, 60)}${why}.`)
  }
  return isParked ? exitCodes.broken : exitCodes.ok
}

async function readProblem(context: Context, id: string): Promise<string> {
  const record = await readStore(context, undefined, (store) => store.delivery(id))
  const detail = cutLine(record?.problem?.detail ?? '', 300)
  return `: ${detail} "${formatCommand`hookloom show ${cutLine(id, 60)}`}" shows more`
}

/** Retries the dead jobs, the oldest first. A task, such as a heartbeat, has no delivery, so it is retried by the id of its job. */
async function retryDead(context: Context): Promise<number> {
  const found = await readStore(context, [], (store) => store.deadJobs({ limit: maxDeadJobs }))
  const ids = new Set(found.map(({ id, deliveryId }) => deliveryId ?? id))
  let jobs = 0
  await withProgress(context, 'Waiting for the gateway', async () => {
    for (const id of ids) {
      const retried = await askRetry(context, id).catch(ignoreIfGone)
      if (retried === undefined) continue
      jobs += retried.jobs.length
      if (context.json) context.printJson(retried)
    }
  })
  if (!context.json) context.print(jobs === 0 ? 'No run is dead.' : `${describeDeadRuns(jobs)} queued again.`)
  return 0
}

async function retryParked(context: Context, hook: string | undefined): Promise<number> {
  let settled = 0
  let stillParked = 0
  await withProgress(context, 'Waiting for the gateway', async () => {
    for await (const part of askInParts(context, 'POST /api/parked/retry', { hook })) {
      settled += part.settled
      stillParked += part.stillParked
    }
  })
  const total = settled + stillParked
  if (context.json) context.printJson({ settled, stillParked })
  else if (total === 0) context.print('No delivery is parked.')
  else {
    const ran = formatQuantity(total, 'parked delivery', 'parked deliveries')
    context.print(
      `${ran} ran again: ${formatQuantity(settled, 'is', 'are')} settled, ${formatQuantity(stillParked, 'is', 'are')} parked again.`,
    )
  }
  return 0
}

function askRetry(context: Context, id: string): Promise<RetriedFields> {
  return askAdmin(context, 'POST /api/deliveries/{id}/retry', { params: { id } })
}

/** Returns undefined if another command has already retried the run, or if retention has deleted it. */
function ignoreIfGone(error: unknown): undefined {
  if (error instanceof Problem && (error.code === 'conflict' || error.code === 'not-found')) return undefined
  throw error
}

function describeDeadJobs(jobs: number): string {
  return jobs === 1 ? 'its dead job is' : `${jobs} dead jobs are`
}

function describeDeadRuns(jobs: number): string {
  return jobs === 1 ? 'One dead run is' : `${jobs} dead runs are`
}

async function retryRefused(
  context: Context,
  { isDry, hook, since }: Extract<Target, { kind: 'refused' }>,
): Promise<number> {
  const total = { ran: 0, repeated: 0, stillRefused: 0 }
  const reasons = new Map<string, number>()
  await withProgress(context, 'Waiting for the gateway', async () => {
    const query = toRefusedQuery({ hook, since, isDry })
    for await (const part of askInParts(context, 'POST /api/refusals/retry', query)) {
      total.ran += part.ran
      total.repeated += part.repeated
      total.stillRefused += part.stillRefused
      for (const { reason, count } of part.reasons) reasons.set(reason, (reasons.get(reason) ?? 0) + count)
    }
  })
  const why = [...reasons].map(([reason, count]) => ({ reason, count }))
  if (context.json) context.printJson({ dryRun: isDry, ...total, reasons: why })
  else printRefused(context, { ...total, isDry, why })
  return 0
}

type RefusedOutcome = {
  readonly ran: number
  readonly repeated: number
  readonly stillRefused: number
  readonly isDry: boolean
  readonly why: readonly { readonly reason: string; readonly count: number }[]
}

function printRefused(context: Context, { ran, repeated, stillRefused, isDry, why }: RefusedOutcome): void {
  if (ran + repeated + stillRefused === 0) return context.print('No refused request is kept.')
  const [runs, repeats, stays] = isDry
    ? ['would run', 'would repeat', 'would stay refused']
    : ['ran', repeated === 1 ? 'repeats' : 'repeat', stillRefused === 1 ? 'stays refused' : 'stay refused']
  const known = repeated === 1 ? 'a delivery that is there already' : 'deliveries that are there already'
  context.print(`${ran} ${runs}, ${repeated} ${repeats} ${known}, ${stillRefused} ${stays}.`)
  for (const { reason, count } of why) context.print(`  ${count} × ${cutLine(reason, 300)}`)
}
