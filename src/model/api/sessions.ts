// The answers of the admin API about the conversations of agents. Times are ISO 8601.
import { z } from 'zod'
import { readonlyList } from './answers.ts'

export const SessionFields = z.object({
  sessionKey: z.string(),
  agentId: z.string(),
  updatedAt: z.string(),
  recipient: z.object({ channel: z.string(), to: z.string().nullable() }).nullable(),
})
export type SessionFields = z.infer<typeof SessionFields>

/**
 * A session in a list. `isSingle`: it belongs to a single run, because neither its request nor its mapping named a session. `hook`: the hook
 * of that run; null for other sessions, and for a run that is no longer stored.
 */
export const SessionRow = SessionFields.extend({
  isSingle: z.boolean(),
  hook: z.string().nullable(),
  lastLine: z.string().nullable().describe('What its last message is about, in one line; null if it has none.'),
  turns: z.number().describe('The number of its turns. At most 10 are counted.'),
})
export type SessionRow = z.infer<typeof SessionRow>

export const MessageFields = z.object({
  role: z.enum(['system', 'user', 'assistant']),
  text: z.string(),
  runId: z.string(),
  at: z.string(),
})
export type MessageFields = z.infer<typeof MessageFields>

export const EventFields = z.object({
  agentId: z.string(),
  sessionKey: z.string(),
  text: z.string(),
  source: z.string(),
  trusted: z.boolean(),
  wakes: z.boolean(),
  at: z.string(),
  deliveryId: z.string().nullable(),
  consumedAt: z.string().nullable(),
})
export type EventFields = z.infer<typeof EventFields>

/** `summary`: what the event is about, in one line. */
export const ShownEvent = EventFields.extend({ summary: z.string() })
export type ShownEvent = z.infer<typeof ShownEvent>

/** `events`: the events that wait for the next turn. */
export const ShownSession = SessionFields.extend({
  messages: readonlyList(MessageFields),
  events: readonlyList(ShownEvent),
})
export type ShownSession = z.infer<typeof ShownSession>

/** `deleted`: the number of messages. `isRunning`: a turn of the session runs, and adds its prompt and its reply when it ends. */
export const TrimmedSession = z.object({
  sessionKey: z.string(),
  agentId: z.string(),
  deleted: z.number(),
  isRunning: z.boolean(),
})
export type TrimmedSession = z.infer<typeof TrimmedSession>

const next = z.string().nullable().describe('`before` of the page of older rows; null if there is none.')
export const SessionPage = z.object({ sessions: readonlyList(SessionRow), next })
export type SessionPage = z.infer<typeof SessionPage>
export const EventPage = z.object({ events: readonlyList(ShownEvent), next })
export type EventPage = z.infer<typeof EventPage>
