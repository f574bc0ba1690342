// Publishes a save that `hooks.transforms.hold` keeps from going live.
import { z } from 'zod'
import { askAdmin } from './gateway/gateway.ts'
import { type Context, withProgress } from './terminal/context.ts'

const Published = z.object({ generation: z.string() })

/** Throws `conflict` if no save waits. */
export async function publish(context: Context): Promise<number> {
  const published = await withProgress(context, 'Waiting for the gateway', () =>
    askAdmin(context, { method: 'POST', path: '/api/publish', answer: Published }),
  )
  if (context.json) context.printJson(published)
  else context.print(`The files on disk are live, as generation ${published.generation}.`)
  return 0
}
