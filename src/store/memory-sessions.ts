// Sessions of the memory store, with their transcripts and the events that wait in them.
import type { Message, Session, SystemEvent } from '../model/job.ts'
import type { JsonValue } from '../model/json.ts'
import type { MemoryJob } from './memory-jobs.ts'
import type { Clock, JobReport, NewEvent, WaitingEvents } from './store.ts'
import { toStoredText } from './rules.ts'

type Name = Pick<Session, 'agentId' | 'sessionKey'>

export function createMemorySessions({ clock }: { clock: Clock }) {
  const events: SystemEvent[] = []
  const messages: (Message & Name)[] = []
  const sessions = new Map<string, Session>()
  const runnerStates = new Map<string, JsonValue>()
  /** Events that are no longer there: the place of an event is its number in order of arrival, from 1 on. */
  let forgotten = 0

  function touch(agentId: string, sessionKey: string): Session {
    const name = toName({ agentId, sessionKey })
    const session = sessions.get(name) ?? { agentId, sessionKey, updatedAt: 0, recipient: undefined }
    session.updatedAt = Math.max(session.updatedAt, clock())
    // taken out first: the order of the map is the order of updates
    sessions.delete(name)
    sessions.set(name, session)
    return session
  }

  function consume(name: Name, upTo: number): void {
    for (const event of events.slice(0, Math.max(0, upTo - forgotten))) {
      if (waitsIn(name, event)) event.consumedAt = clock()
    }
  }

  function keepRunnerState(name: Name, state: JsonValue): void {
    touch(name.agentId, name.sessionKey)
    if (state === null) runnerStates.delete(toName(name))
    else runnerStates.set(toName(name), state)
  }

  return {
    addEvents(deliveryId: string | undefined, added: readonly NewEvent[]): void {
      for (const { agentId, sessionKey, text, source, trusted, wakes } of added) {
        events.push({
          agentId,
          sessionKey,
          text: toStoredText(text),
          source: toStoredText(source),
          trusted,
          wakes,
          at: clock(),
          deliveryId,
          consumedAt: undefined,
        })
        touch(agentId, sessionKey)
      }
    },
    keepTurn({ id, planned: { agentId, sessionKey } }: MemoryJob, report: JobReport): void {
      const { messages: added = [], consumedUpTo, runnerState, recipient } = report
      for (const { role, text } of added)
        messages.push({ role, text: toStoredText(text), agentId, sessionKey, runId: id, at: clock() })
      if (consumedUpTo !== undefined) consume({ agentId, sessionKey }, consumedUpTo)
      if (added.length > 0) touch(agentId, sessionKey)
      if (runnerState !== undefined) keepRunnerState({ agentId, sessionKey }, runnerState)
      if (recipient) touch(agentId, 'main').recipient = { channel: recipient.channel, to: recipient.to }
    },
    events: (limit: number): SystemEvent[] => newest(events, limit).map((event) => ({ ...event })),
    waiting({ agentId, sessionKey, limit }: Name & { limit: number }): WaitingEvents {
      const name = { agentId, sessionKey }
      const waiting = events.flatMap((event, at) =>
        waitsIn(name, event) ? [{ ...event, place: forgotten + at + 1 }] : [],
      )
      return {
        events: waiting.slice(0, limit),
        count: waiting.length,
        wakes: waiting.some(({ wakes }) => wakes),
      }
    },
    sessions: (limit: number): Session[] => newest([...sessions.values()], limit).map((session) => ({ ...session })),
    session(name: Name): (Session & { runnerState: JsonValue | undefined }) | undefined {
      const session = sessions.get(toName(name))
      return session && { ...session, runnerState: runnerStates.get(toName(name)) }
    },
    messages({ agentId, sessionKey, limit }: Name & { limit: number }): Message[] {
      const own = messages.filter((message) => message.agentId === agentId && message.sessionKey === sessionKey)
      return newest(own, limit).map(({ role, text, runId, at }) => ({ role, text, runId, at }))
    },
    prune(before: number): void {
      forgotten += forgetOld(events, before)
      forgetOld(messages, before)
      for (const [name, { updatedAt }] of sessions) {
        if (updatedAt >= before) continue
        sessions.delete(name)
        runnerStates.delete(name)
      }
    },
  }
}

function toName({ agentId, sessionKey }: Name): string {
  return JSON.stringify([agentId, sessionKey])
}

function waitsIn({ agentId, sessionKey }: Name, event: SystemEvent): boolean {
  return event.agentId === agentId && event.sessionKey === sessionKey && event.consumedAt === undefined
}

/** The last `limit`, in their order. */
export function newest<Item>(items: readonly Item[], limit: number): Item[] {
  return limit > 0 ? items.slice(-limit) : []
}

/** Gives back how many. */
function forgetOld(items: { at: number }[], before: number): number {
  return items.splice(0, items.findLastIndex(({ at }) => at < before) + 1).length
}
