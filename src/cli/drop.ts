// Drops a parked delivery, or the queued and dead jobs of an accepted one. Or drops all parked deliveries, or the refused requests that are
// kept.
import { formatQuantity } from '../base/text.ts'
import { Problem } from '../model/problem.ts'
import { type Context, withProgress } from './terminal/context.ts'
import { askAdmin, askInParts, type RefusedFilters, type Target, toRefusedQuery } from './gateway/gateway.ts'
import { findId } from './gateway/ids.ts'
import { cutLine } from './terminal/print.ts'

export async function drop(context: Context, target: Target): Promise<number> {
  if (target.kind === 'refused') return dropRefused(context, target)
  if (target.kind === 'parked') return dropParked(context, target.hook)
  if (target.kind === 'dead') throw new Problem('usage-invalid', 'A dead run is dropped by its id.')
  const id = await findId(context, target.id)
  const { deliveryId, state } = await askAdmin(context, 'POST /api/deliveries/{id}/drop', { params: { id } })
  if (context.json) context.printJson({ deliveryId, state })
  else context.print(`${cutLine(deliveryId, 60)} is dropped. It will not run.`)
  return 0
}

async function dropParked(context: Context, hook: string | undefined): Promise<number> {
  let dropped = 0
  await withProgress(context, 'Waiting for the gateway', async () => {
    for await (const part of askInParts(context, 'POST /api/parked/drop', { hook })) dropped += part.dropped
  })
  if (context.json) context.printJson({ dropped })
  else context.print(`${formatQuantity(dropped, 'parked delivery is', 'parked deliveries are')} dropped.`)
  return 0
}

async function dropRefused(context: Context, filters: RefusedFilters): Promise<number> {
  let dropped = 0
  await withProgress(context, 'Waiting for the gateway', async () => {
    const query = toRefusedQuery(filters)
    for await (const part of askInParts(context, 'POST /api/refusals/drop', query)) dropped += part.dropped
  })
  if (context.json) context.printJson({ dropped })
  else context.print(`${formatQuantity(dropped, 'refused request is', 'refused requests are')} dropped.`)
  return 0
}
