// Sessions of the memory store, with their transcripts and the events that wait in them.
import type { Message, Session, SystemEvent } from '../model/job.ts'
import type { MemoryJob } from './memory-jobs.ts'
import type { Clock, NewEvent, NewMessage } from './store.ts'
import { toStoredText } from './text.ts'

export function createMemorySessions({ clock }: { clock: Clock }) {
  const events: SystemEvent[] = []
  const messages: (Message & Pick<Session, 'agentId' | 'sessionKey'>)[] = []
  const sessions = new Map<string, Session>()

  function touch(agentId: string, sessionKey: string): void {
    const name = JSON.stringify([agentId, sessionKey])
    // taken out first: the order of the map is the order of updates
    sessions.delete(name)
    sessions.set(name, { agentId, sessionKey, updatedAt: clock() })
  }

  return {
    addEvents(deliveryId: string, added: readonly NewEvent[]): void {
      for (const { agentId, sessionKey, text, source, trusted } of added) {
        events.push({
          agentId,
          sessionKey,
          text: toStoredText(text),
          source: toStoredText(source),
          trusted,
          at: clock(),
          deliveryId,
          consumedAt: undefined,
        })
        touch(agentId, sessionKey)
      }
    },
    addMessages({ id, planned: { agentId, sessionKey } }: MemoryJob, added: readonly NewMessage[]): void {
      for (const { role, text } of added)
        messages.push({ role, text: toStoredText(text), agentId, sessionKey, runId: id, at: clock() })
      if (added.length > 0) touch(agentId, sessionKey)
    },
    events: (limit: number): SystemEvent[] => newest(events, limit).map((event) => ({ ...event })),
    sessions: (limit: number): Session[] => newest([...sessions.values()], limit),
    messages({ agentId, sessionKey, limit }: { agentId: string; sessionKey: string; limit: number }): Message[] {
      const own = messages.filter((message) => message.agentId === agentId && message.sessionKey === sessionKey)
      return newest(own, limit).map(({ role, text, runId, at }) => ({ role, text, runId, at }))
    },
    prune(before: number): void {
      forgetOld(events, before)
      forgetOld(messages, before)
      for (const [name, { updatedAt }] of sessions) if (updatedAt < before) sessions.delete(name)
    },
  }
}

/** The last `limit`, in their order. */
export function newest<Item>(items: readonly Item[], limit: number): Item[] {
  return limit > 0 ? items.slice(-limit) : []
}

function forgetOld(items: { at: number }[], before: number): void {
  items.splice(0, items.findLastIndex(({ at }) => at < before) + 1)
}
