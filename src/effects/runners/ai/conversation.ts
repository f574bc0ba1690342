// A transcript as the messages of a call, in the form that the strictest of the models takes.
import type { Message } from '../../../model/job.ts'

export type ChatMessage = { readonly role: 'user' | 'assistant'; readonly content: string }

/**
 * Roles alternate and the first is the user's: the chat templates of several local models, and Google, refuse anything
 * else. A note of the system inside a transcript is the user's, with its name before it: only some providers take it there.
 */
export function toConversation(history: readonly Message[], prompt: string): ChatMessage[] {
  const said = history.filter(({ text }) => text.trim() !== '').map(toChatMessage)
  // a transcript is cut at its oldest end: a reply there has lost its question
  const first = said.findIndex(({ role }) => role === 'user')
  const known = first < 0 ? [] : said.slice(first)
  return [...known, { role: 'user', content: prompt } as const].reduce<ChatMessage[]>(join, [])
}

function toChatMessage({ role, text }: Message): ChatMessage {
  return role === 'system' ? { role: 'user', content: `System: ${text}` } : { role, content: text }
}

function join(said: ChatMessage[], next: ChatMessage): ChatMessage[] {
  const last = said.at(-1)
  if (last?.role !== next.role) return [...said, next]
  return [...said.slice(0, -1), { role: last.role, content: `${last.content}\n\n${next.content}` }]
}
