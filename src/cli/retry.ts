// Runs parked deliveries again, or queues dead jobs again: of one delivery or of all.
import { z } from 'zod'
import { Problem } from '../model/problem.ts'
import { type Context, withProgress } from './terminal/context.ts'
import { askAdmin, askParked } from './gateway/gateway.ts'
import { findId } from './gateway/ids.ts'
import { readStore } from './gateway/stored.ts'
import { cutLine } from './terminal/print.ts'

const Retried = z.object({ deliveryId: z.string().nullable(), state: z.string(), jobs: z.array(z.string()) })
type Retried = z.infer<typeof Retried>

/** The most dead jobs that one command retries. */
const maxDeadJobs = 10_000

export type RetryOptions = { readonly dead?: boolean; readonly parked?: boolean; readonly hook?: string }

export async function retry(context: Context, id: string | undefined, options: RetryOptions): Promise<number> {
  const { dead = false, parked = false, hook } = options
  if ([id !== undefined, dead, parked].filter(Boolean).length !== 1) {
    throw new Problem(
      'usage-invalid',
      'Give the id of a delivery or a run, --dead for all runs that failed for good, or --parked for all parked deliveries.',
    )
  }
  if (hook !== undefined && !parked) throw new Problem('usage-invalid', '--hook is only for --parked.')
  if (parked) return retryParked(context, hook)
  return id === undefined ? retryDead(context) : retryOne(context, await findId(context, id))
}

async function retryOne(context: Context, id: string): Promise<number> {
  const retried = await withProgress(context, 'Waiting for the gateway', () => askRetry(context, id))
  const { state, jobs } = retried
  if (context.json) context.printJson(retried)
  else if (jobs.length === 0) context.print(`${cutLine(id, 60)} ran again and is ${cutLine(state, 60)}.`)
  else context.print(`${cutLine(id, 60)}: ${describeDeadJobs(jobs.length)} queued again.`)
  return 0
}

/** All jobs that `list --dead` shows, the oldest first. A heartbeat has no delivery, so it is retried by its own id. */
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

const RetriedParked = z.object({ settled: z.number(), stillParked: z.number(), next: z.string().optional() })

async function retryParked(context: Context, hook: string | undefined): Promise<number> {
  let settled = 0
  let stillParked = 0
  await withProgress(context, 'Waiting for the gateway', async () => {
    for await (const part of askParked(context, { what: 'retry', hook, answer: RetriedParked })) {
      settled += part.settled
      stillParked += part.stillParked
    }
  })
  const total = settled + stillParked
  const countWithVerb = (count: number) => `${count} ${count === 1 ? 'is' : 'are'}`
  if (context.json) context.printJson({ settled, stillParked })
  else if (total === 0) context.print('No delivery is parked.')
  else {
    const ran = total === 1 ? '1 parked delivery' : `${total} parked deliveries`
    context.print(`${ran} ran again: ${countWithVerb(settled)} settled, ${countWithVerb(stillParked)} parked again.`)
  }
  return 0
}

function askRetry(context: Context, id: string): Promise<Retried> {
  const path = `/api/deliveries/${encodeURIComponent(id)}/retry`
  return askAdmin(context, { method: 'POST', path, answer: Retried })
}

/** Another command may have retried the run, or retention may have deleted it. */
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
