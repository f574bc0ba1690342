// The newest system events, pending and consumed, the newest last.
import type { Context } from './terminal/context.ts'
import { printOlder, cutLine, printTable, formatTime } from './terminal/print.ts'
import { toEventFields, toIsoTime } from '../gateway/deliveries/records.ts'
import { readStore } from './gateway/stored.ts'

/** `before`: in milliseconds since the epoch. */
export type EventsOptions = { limit: number; before?: number }

export async function events(context: Context, { limit, before }: EventsOptions): Promise<number> {
  const found = await readStore(context, [], (store) => store.events({ limit, before }))
  if (context.json) {
    for (const event of found) context.printJson(toEventFields(event))
  } else if (found.length === 0) {
    context.print(before === undefined ? 'No system event yet.' : 'No system event is older.')
  } else {
    const rows = found.map(({ at, agentId, sessionKey, source, text, consumedAt }) => {
      const state = consumedAt === undefined ? 'pending' : `consumed ${formatTime(consumedAt)}`
      return [formatTime(at), `${agentId}/${sessionKey}`, source, state, cutLine(text, 100)]
    })
    printTable(context, ['at', 'session', 'source', 'state', 'text'], rows)
    printOlder(context, ['events'], { found, limit, cursor: ({ at }) => toIsoTime(at) })
  }
  return 0
}
