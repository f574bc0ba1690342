// Runs a parked delivery again, or puts the dead jobs of an accepted one back into the queue.
import { z } from 'zod'
import { loadConfig } from '../loader/config.ts'
import type { Context } from './terminal/context.ts'
import { askAdmin } from './gateway/gateway.ts'
import { toCut } from './terminal/print.ts'
import { withProgress } from './terminal/progress.ts'

const Retried = z.object({ deliveryId: z.string().nullable(), state: z.string(), jobs: z.array(z.string()) })

export async function retry(context: Context, { id }: { id: string }): Promise<number> {
  const { dir, env } = context
  const { config } = loadConfig({ dir, env })
  const path = `/api/deliveries/${encodeURIComponent(id)}/retry`
  const retried = await withProgress('Waiting for the gateway', () =>
    askAdmin({ dir, config }, { method: 'POST', path, answer: Retried }),
  )
  const { deliveryId, state, jobs } = retried
  if (context.json) context.printJson({ deliveryId, state, jobs })
  else if (jobs.length === 0) context.print(`${toCut(id, 60)} ran again and is ${toCut(state, 60)}.`)
  else context.print(`${toCut(id, 60)}: ${toCounted(jobs.length)} queued again.`)
  return 0
}

function toCounted(jobs: number): string {
  return jobs === 1 ? 'its dead job is' : `${jobs} dead jobs are`
}
