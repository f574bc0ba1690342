// Ends queued or running runs: one run by its id, the runs of a delivery, or the runs of a session or a key.
import { z } from 'zod'
import type { Context } from './terminal/context.ts'
import { askAdmin } from './gateway/gateway.ts'
import { findId } from './gateway/ids.ts'
import { readUser } from './terminal/user.ts'
import { cutLine } from './terminal/print.ts'

const Cancelled = z.object({ runs: z.array(z.object({ runId: z.string(), state: z.string() })) })

export async function cancel(context: Context, given: string, { reason }: { reason?: string }): Promise<number> {
  const what = await findId(context, given)
  const body = { what, reason, by: readUser() }
  const cancelled = await askAdmin(context, { method: 'POST', path: '/api/cancel', body, answer: Cancelled })
  if (context.json) for (const run of cancelled.runs) context.printJson(run)
  else
    for (const { runId, state } of cancelled.runs) {
      context.print(`${cutLine(runId, 60)} ${state === 'ending' ? 'is being stopped' : 'is cancelled'}.`)
    }
  return 0
}
