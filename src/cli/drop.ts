// Drops a parked delivery, or the queued and dead jobs of an accepted one. Or drops all parked deliveries, or the refused requests that are
// kept.
import { formatQuantity } from '../base/text.ts'
import { Problem } from '../core/model/problem.ts'
import { type Context, withProgress } from './terminal/context.ts'
import { askAdmin, askInParts, type Target, toRefusedQuery } from './gateway/gateway.ts'
import { findId } from './gateway/ids.ts'
import { cutLine } from './terminal/print.ts'

export async function drop(context: Context, target: Target): Promise<number> {
  if (target.kind === 'refused') {
    const parts = askInParts(context, 'POST /api/refusals/drop', toRefusedQuery(target))
    return dropParts(context, parts, ['refused request is', 'refused requests are'])
  }
  if (target.kind === 'parked') {
    const parts = askInParts(context, 'POST /api/parked/drop', { hook: target.hook })
    return dropParts(context, parts, ['parked delivery is', 'parked deliveries are'])
  }
  if (target.kind === 'dead') throw new Problem('usage-invalid', 'A dead run is dropped by its id.')
  const id = await findId(context, target.id)
  const { deliveryId, state } = await askAdmin(context, 'POST /api/deliveries/{id}/drop', { params: { id } })
  if (context.json) context.printJson({ deliveryId, state })
  else context.print(`${cutLine(deliveryId, 60)} is dropped. It will not run.`)
  return 0
}

type Parts = AsyncIterable<{ readonly dropped: number }>

/** `words`: how one item, and several, are named in a sentence. */
async function dropParts(context: Context, parts: Parts, words: readonly [one: string, many: string]): Promise<number> {
  let dropped = 0
  await withProgress(context, 'Waiting for the gateway', async () => {
    for await (const part of parts) dropped += part.dropped
  })
  if (context.json) context.printJson({ dropped })
  else context.print(`${formatQuantity(dropped, ...words)} dropped.`)
  return 0
}
