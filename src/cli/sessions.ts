// The sessions, the one touched last at the end; or the transcript of one key.
import type { Message, Session } from '../model/job.ts'
import { Problem } from '../model/problem.ts'
import type { Context } from './terminal/context.ts'
import { toCut, toIndented, toTable, toTime } from './terminal/print.ts'
import { toSessionFields } from '../server/records.ts'
import { readStore } from './gateway/stored.ts'

/** A key is looked for among all sessions that are kept. */
const mostSessions = 1_000_000
const mostMessages = 1_000

type Told = { session: Session; messages: readonly Message[] }

export async function sessions(
  context: Context,
  { key, limit }: { key: string | undefined; limit: number },
): Promise<number> {
  const found = await readStore(context, [], async (store): Promise<Told[]> => {
    const all = await store.sessions({ limit: key === undefined ? limit : mostSessions })
    const chosen = key === undefined ? all : all.filter((session) => session.sessionKey === key)
    const told: Told[] = []
    for (const session of chosen) {
      const { agentId, sessionKey } = session
      told.push({ session, messages: await store.messages({ agentId, sessionKey, limit: mostMessages }) })
    }
    return told
  })
  if (key !== undefined && found.length === 0) {
    throw new Problem('not-found', `No session has the key "${toCut(key, 60)}". "hookloom sessions" lists them.`)
  }
  if (context.json) for (const { session, messages } of found) context.printJson(toSessionFields(session, messages))
  else if (found.length === 0) context.print('No session yet.')
  else if (key === undefined) context.print(toTable(['updated', 'agent', 'messages', 'session'], found.map(toRow)))
  else context.print(found.map(toTranscript).join('\n\n'))
  return 0
}

function toRow({ session, messages }: Told): string[] {
  return [toTime(session.updatedAt), session.agentId, String(messages.length), session.sessionKey]
}

function toTranscript({ session, messages }: Told): string {
  const head = `Session ${toCut(session.sessionKey, 512)} of agent ${toCut(session.agentId, 100)}`
  const said = messages.map(({ role, at, runId, text }) => `${role}, ${toTime(at)}, run ${runId}\n${toIndented(text)}`)
  return [head, ...(said.length === 0 ? ['  No message: only system events came here.'] : said)].join('\n\n')
}
