// Cancels what is left of a delivery.
import { z } from 'zod'
import type { Context } from './terminal/context.ts'
import { askAdmin } from './gateway/gateway.ts'
import { findId } from './gateway/ids.ts'
import { toCut } from './terminal/print.ts'

const Dropped = z.object({ deliveryId: z.string(), state: z.string() })

export async function drop(context: Context, { id: given }: { id: string }): Promise<number> {
  const id = await findId(context, given)
  const path = `/api/deliveries/${encodeURIComponent(id)}/drop`
  const { deliveryId, state } = await askAdmin(context, { method: 'POST', path, answer: Dropped })
  if (context.json) context.printJson({ deliveryId, state })
  else context.print(`${toCut(deliveryId, 60)} is dropped: nothing of it will run.`)
  return 0
}
