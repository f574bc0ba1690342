// Sends a test alert through the running gateway, and says whether it arrived.
import { exitCodes, Problem } from '../core/model/problem.ts'
import { askAdmin } from './gateway/gateway.ts'
import { type Context, withProgress } from './terminal/context.ts'
import { cutLine } from './terminal/print.ts'

export async function alert(context: Context, { test = false }: { readonly test?: boolean }): Promise<number> {
  if (!test) throw new Problem('usage-invalid', 'Give --test to send a test alert.')
  const { jobId, state, detail } = await withProgress(context, 'Waiting for the chat', async () => {
    let answer = await askAdmin(context, 'POST /api/alerts/test')
    while (answer.state === 'running') {
      answer = await askAdmin(context, 'GET /api/alerts/test/{id}', { params: { id: answer.jobId } })
    }
    return answer
  })
  const isDelivered = state === 'delivered'
  const shown = cutLine(detail, 500)
  if (context.json) context.printJson({ jobId, delivered: isDelivered, detail })
  else if (isDelivered) context.print(`The test alert was delivered: ${shown}.`)
  else
    context.print(
      `The test alert was not delivered: ${shown}\nCorrect hooks.alerts and the section of its channel in hookloom.jsonc, and run "hookloom alert --test" again. "hookloom doctor" checks the channels.`,
    )
  return isDelivered ? exitCodes.ok : exitCodes.unavailable
}
