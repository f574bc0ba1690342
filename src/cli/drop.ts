// Cancels the unfinished jobs of a delivery, or drops all parked deliveries.
import { z } from 'zod'
import { Problem } from '../model/problem.ts'
import { type Context, withProgress } from './terminal/context.ts'
import { askAdmin, askParked } from './gateway/gateway.ts'
import { findId } from './gateway/ids.ts'
import { cutLine } from './terminal/print.ts'

const Dropped = z.object({ deliveryId: z.string(), state: z.string() })

export type DropOptions = { readonly parked?: boolean; readonly hook?: string }

export async function drop(context: Context, given: string | undefined, options: DropOptions): Promise<number> {
  if ((given === undefined) === (options.parked !== true)) {
    throw new Problem('usage-invalid', 'Give the id of a delivery, or --parked for all parked deliveries.')
  }
  if (given === undefined) return dropParked(context, options.hook)
  if (options.hook !== undefined) throw new Problem('usage-invalid', '--hook is only for --parked.')
  const id = await findId(context, given)
  const path = `/api/deliveries/${encodeURIComponent(id)}/drop`
  const { deliveryId, state } = await askAdmin(context, { method: 'POST', path, answer: Dropped })
  if (context.json) context.printJson({ deliveryId, state })
  else context.print(`${cutLine(deliveryId, 60)} is dropped. It will not run.`)
  return 0
}

const DroppedParked = z.object({ dropped: z.number(), next: z.string().optional() })

async function dropParked(context: Context, hook: string | undefined): Promise<number> {
  let dropped = 0
  await withProgress(context, 'Waiting for the gateway', async () => {
    for await (const part of askParked(context, { what: 'drop', hook, answer: DroppedParked })) dropped += part.dropped
  })
  if (context.json) context.printJson({ dropped })
  else context.print(dropped === 1 ? '1 parked delivery is dropped.' : `${dropped} parked deliveries are dropped.`)
  return 0
}
