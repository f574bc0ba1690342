// Ends queued or running runs: one run by its id, the runs of a delivery, or the runs of a session or a key.
import type { Context } from './terminal/context.ts'
import { askAdmin } from './gateway/gateway.ts'
import { findId } from './gateway/ids.ts'
import { readUser } from './terminal/user.ts'
import { cutLine } from './terminal/print.ts'

export async function cancel(context: Context, given: string, { reason }: { reason?: string }): Promise<number> {
  const what = await findId(context, given)
  const { runs } = await askAdmin(context, 'POST /api/cancel', { body: { what, reason, by: readUser() } })
  if (context.json) for (const run of runs) context.printJson(run)
  else
    for (const { runId, state } of runs) {
      context.print(`${cutLine(runId, 60)} ${state === 'ending' ? 'is being stopped' : 'is cancelled'}.`)
    }
  return 0
}
