// Deletes the older messages of a session, or all of them.
import { formatQuantity } from '../base/text.ts'
import { TrimmedSession } from '../model/api/sessions.ts'
import type { Context } from './terminal/context.ts'
import { askAdmin } from './gateway/gateway.ts'
import { cutLine } from './terminal/print.ts'

export type TrimOptions = { readonly keep: number; readonly agent?: string }

/** Throws the gateway's refusal if the session does not exist. */
export async function trim(
  context: Context,
  { key, keep, agent }: TrimOptions & { readonly key: string },
): Promise<number> {
  const query = new URLSearchParams({ keep: String(keep), ...(agent !== undefined && { agentId: agent }) })
  const path = `/api/sessions/${encodeURIComponent(key)}/trim?${query}`
  const { deleted, isRunning, ...session } = await askAdmin(context, { method: 'POST', path, answer: TrimmedSession })
  if (context.json) return (context.printJson({ ...session, deleted, isRunning }), 0)
  context.print(`${formatQuantity(deleted, 'message')} of the session ${cutLine(session.sessionKey, 60)} deleted.`)
  if (isRunning)
    context.print(
      'A turn of this session runs. It has the earlier messages, and adds its prompt and its reply when it ends.',
    )
  return 0
}
