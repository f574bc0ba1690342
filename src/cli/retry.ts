// Runs a parked delivery again, or queues the dead jobs of one delivery or of all deliveries again.
import { z } from 'zod'
import { Problem } from '../model/problem.ts'
import { type Context, withProgress } from './terminal/context.ts'
import { askAdmin } from './gateway/gateway.ts'
import { findId } from './gateway/ids.ts'
import { readStore } from './gateway/stored.ts'
import { toCut } from './terminal/print.ts'

const Retried = z.object({ deliveryId: z.string().nullable(), state: z.string(), jobs: z.array(z.string()) })
type Retried = z.infer<typeof Retried>

/** The most dead jobs that one command retries. */
const mostDead = 10_000

export async function retry(context: Context, id: string | undefined, { dead }: { dead?: boolean }): Promise<number> {
  if ((id === undefined) === (dead !== true)) {
    throw new Problem(
      'usage-invalid',
      'Give the id of a delivery or a run, or --dead for all runs that failed for good.',
    )
  }
  return id === undefined ? retryDead(context) : retryOne(context, await findId(context, id))
}

async function retryOne(context: Context, id: string): Promise<number> {
  const retried = await withProgress(context, 'Waiting for the gateway', () => askRetry(context, id))
  const { state, jobs } = retried
  if (context.json) context.printJson(retried)
  else if (jobs.length === 0) context.print(`${toCut(id, 60)} ran again and is ${toCut(state, 60)}.`)
  else context.print(`${toCut(id, 60)}: ${toCounted(jobs.length)} queued again.`)
  return 0
}

/** All jobs that `list --dead` shows, the oldest first. A heartbeat has no delivery, so it is retried by its own id. */
async function retryDead(context: Context): Promise<number> {
  const found = await readStore(context, [], (store) => store.deadJobs({ limit: mostDead }))
  const ids = new Set(found.map(({ id, deliveryId }) => deliveryId ?? id))
  let jobs = 0
  await withProgress(context, 'Waiting for the gateway', async () => {
    for (const id of ids) {
      const retried = await askRetry(context, id).catch(toPassedOver)
      if (retried === undefined) continue
      jobs += retried.jobs.length
      if (context.json) context.printJson(retried)
    }
  })
  if (!context.json) context.print(jobs === 0 ? 'No run is dead.' : `${toTotal(jobs)} queued again.`)
  return 0
}

function askRetry(context: Context, id: string): Promise<Retried> {
  const path = `/api/deliveries/${encodeURIComponent(id)}/retry`
  return askAdmin(context, { method: 'POST', path, answer: Retried })
}

/** Another command retried it, or it was deleted because of its age. */
function toPassedOver(error: unknown): undefined {
  if (error instanceof Problem && (error.code === 'conflict' || error.code === 'not-found')) return undefined
  throw error
}

function toCounted(jobs: number): string {
  return jobs === 1 ? 'its dead job is' : `${jobs} dead jobs are`
}

function toTotal(jobs: number): string {
  return jobs === 1 ? 'One dead run is' : `${jobs} dead runs are`
}
