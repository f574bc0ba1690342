// The history and the waiting events that a turn is given: at first as much as a large model takes, then less for each retry after the model says that the prompt is too long.
import type { Message } from '../model/job.ts'
import type { WaitingTexts } from './prompt.ts'

/** The history and the events in the prompt of one request. */
export type TurnContext = {
  /** Oldest first; begins with a user's message. */
  readonly history: readonly Message[]
  readonly waiting: WaitingTexts
}

/** All history and all events that a turn could be given. */
export type FullContext = { readonly history: readonly Message[]; readonly waiting: Omit<WaitingTexts, 'maxChars'> }

/** UTF-16 units of the newest messages that go with a turn. */
const historyChars = 200_000
/**
 * UTF-16 units of all events that are shown, and of one of them at the least. A prompt that no model takes would fail every
 * turn of the session, and what waits would wait for good.
 */
const eventChars = 100_000
const leastEventChars = 2_000
/** Events that a prompt shows at the most; the rest is counted. */
export const mostShownEvents = eventChars / leastEventChars

/** Nobody knows in advance how many tokens a text is, or a model takes: it is asked, and the half is enough or not. */
const shares = [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 0]

/** The contexts to try, largest first, at least one. Each is smaller than the one before it; the last cannot be made smaller. */
export function toTurnContexts(full: FullContext): readonly [TurnContext, ...TurnContext[]] {
  const whole = toTurnContext(full, 1)
  const contexts = shares.map((share) => toTurnContext(full, share))
  const smaller = contexts.filter((context, at) => toSize(context) < toSize(contexts[at - 1] ?? whole))
  return [whole, ...smaller]
}

function toTurnContext({ history, waiting }: FullContext, share: number): TurnContext {
  const room = Math.max(leastEventChars, eventChars * share)
  const events = waiting.events.slice(0, Math.floor(room / leastEventChars))
  const maxChars = Math.floor(room / Math.max(1, events.length))
  return { history: newestWithin(history, historyChars * share), waiting: { ...waiting, events, maxChars } }
}

function toSize({ history, waiting: { events, maxChars } }: TurnContext): number {
  const said = history.reduce((sum, { text }) => sum + text.length, 0)
  return events.reduce((sum, { text }) => sum + Math.min(text.length, maxChars), said)
}

/** Begins with a user's message: a reply to something that is not there would be read as somebody else's. */
function newestWithin(messages: readonly Message[], maxChars: number): readonly Message[] {
  let chars = 0
  let from = messages.length
  for (let at = messages.length - 1; at >= 0; at -= 1) {
    const message = messages[at]
    chars += message?.text.length ?? 0
    if (chars > maxChars) break
    if (message?.role === 'user') from = at
  }
  return messages.slice(from)
}
