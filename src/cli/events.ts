// The newest system events, pending and consumed, newest last.
import type { Context } from './terminal/context.ts'
import { toCut, toTable, toTime } from './terminal/print.ts'
import { toEventFields } from '../server/records.ts'
import { readStore } from './gateway/stored.ts'

export async function events(context: Context, { limit }: { limit: number }): Promise<number> {
  const found = await readStore(context, [], (store) => store.events({ limit }))
  if (context.json) {
    for (const event of found) context.printJson(toEventFields(event))
  } else if (found.length === 0) {
    context.print('No system event yet.')
  } else {
    const rows = found.map(({ at, agentId, sessionKey, source, text, consumedAt }) => {
      const state = consumedAt === undefined ? 'pending' : `consumed ${toTime(consumedAt)}`
      return [toTime(at), `${agentId}/${sessionKey}`, source, state, toCut(text, 100)]
    })
    context.print(toTable(['at', 'session', 'source', 'state', 'text'], rows))
  }
  return 0
}
