// Deletes the older messages of a session, or all of them.
import { formatQuantity } from '../base/text.ts'
import type { Context } from './terminal/context.ts'
import { askAdmin } from './gateway/gateway.ts'
import { cutLine } from './terminal/print.ts'

export type TrimOptions = { readonly keep: number; readonly agent?: string }

/** Throws the gateway's refusal if the session does not exist. */
export async function trim(
  context: Context,
  { key, keep, agent }: TrimOptions & { readonly key: string },
): Promise<number> {
  const asked = { params: { key }, query: { keep, agentId: agent } }
  const { deleted, isRunning, ...session } = await askAdmin(context, 'POST /api/sessions/{key}/trim', asked)
  if (context.json) return (context.printJson({ ...session, deleted, isRunning }), 0)
  context.print(`${formatQuantity(deleted, 'message')} of the session ${cutLine(session.sessionKey, 60)} deleted.`)
  if (isRunning)
    context.print(
      'A turn of this session runs. It has the earlier messages, and adds its prompt and its reply when it ends.',
    )
  return 0
}
