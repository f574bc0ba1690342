// Lists the sessions, the most recently changed last; or prints the transcript of one session.
import type { Message, Session } from '../model/job.ts'
import { Problem } from '../core/model/problem.ts'
import type { Context } from './terminal/context.ts'
import { printOlder, cutLine, indent, printTable, formatTime } from './terminal/print.ts'
import { toIsoTime, toSessionFields } from '../gateway/deliveries/records.ts'
import { readStore } from './gateway/stored.ts'

/** The maximum number of sessions in which a session key is searched. */
const maxSessions = 1_000_000
/** The maximum number of messages that a list reads of each session. With a session key, up to `allMessages` are read. */
const maxMessages = 1_000
const allMessages = 1_000_000

type SessionWithMessages = { session: Session; messages: readonly Message[] }

export async function sessions(
  context: Context,
  { key, limit, before }: { key: string | undefined; limit: number; before: number | undefined },
): Promise<number> {
  if (key !== undefined && before !== undefined) {
    throw new Problem('usage-invalid', 'With a session key, the whole session is shown. Leave --before out.')
  }
  const found = await readStore(context, [], async (store): Promise<SessionWithMessages[]> => {
    const all = await store.sessions({ limit: key === undefined ? limit : maxSessions, before })
    const chosen = key === undefined ? all : all.filter((session) => session.sessionKey === key)
    const maxRead = key === undefined ? maxMessages : allMessages
    const loaded: SessionWithMessages[] = []
    for (const session of chosen) {
      const { agentId, sessionKey } = session
      loaded.push({ session, messages: await store.messages({ agentId, sessionKey, limit: maxRead }) })
    }
    return loaded
  })
  if (key !== undefined && found.length === 0) {
    throw new Problem('not-found', `No session has the key "${cutLine(key, 60)}". "hookloom sessions" lists them.`)
  }
  if (context.json) for (const { session, messages } of found) context.printJson(toSessionFields(session, messages))
  else if (found.length === 0) context.print(before === undefined ? 'No session yet.' : 'There are no older sessions.')
  else if (key === undefined) {
    printTable(context, ['updated', 'agent', 'messages', 'session'], found.map(listCells))
    printOlder(context, ['sessions'], { found, limit, cursor: ({ session }) => toIsoTime(session.updatedAt) })
  } else context.print(found.map(renderTranscript).join('\n\n'))
  return 0
}

function listCells({ session, messages }: SessionWithMessages): string[] {
  return [formatTime(session.updatedAt), session.agentId, String(messages.length), session.sessionKey]
}

function renderTranscript({ session, messages }: SessionWithMessages): string {
  const head = `Session ${cutLine(session.sessionKey, 512)} of agent ${cutLine(session.agentId, 100)}`
  const said = messages.map(({ role, at, runId, text }) => `${role}, ${formatTime(at)}, run ${runId}\n${indent(text)}`)
  return [head, ...(said.length === 0 ? ['  No message yet: this session has only system events.'] : said)].join('\n\n')
}
