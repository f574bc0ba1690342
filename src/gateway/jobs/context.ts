// What a turn gets of its session besides its own message: the newest messages and the oldest events, within limits. An event that does not fit
// is not consumed: the next turn shows it.
import type { HistoryConfig } from '../../model/config/agents.ts'
import type { Message, SystemEvent } from '../../model/job.ts'

/** The oldest waiting system events and the number of all. The prompt has at most `maxChars` UTF-16 units of each. */
export type WaitingTexts = {
  readonly events: readonly Pick<SystemEvent, 'text' | 'source' | 'trusted'>[]
  readonly count: number
  readonly maxChars: number
}

export const noWaitingTexts: WaitingTexts = { events: [], count: 0, maxChars: 0 }

/** The history and the events of one request. */
export type TurnContext = {
  /** Oldest first; begins with a user's message. */
  readonly history: readonly Message[]
  /** Whether the session has earlier messages than these. */
  readonly leavesOut: boolean
  readonly waiting: WaitingTexts
}

/** The history and the events that a turn could have, and the limits of the history. */
export type FullContext = {
  readonly history: readonly Message[]
  readonly limits: HistoryConfig
  readonly waiting: Omit<WaitingTexts, 'maxChars'>
}

/**
 * The maximum number of bytes of all events in a prompt, markers included. With `heartbeat.history.bytes` and the words of the gateway, the prompt
 * of a heartbeat stays below 16 kB, and the next heartbeat can remember this one, events included.
 */
const eventBytes = 6_000
/** About as many bytes has an event in a prompt besides its text: the markers and the source. */
const eventMarkBytes = 160
/** The maximum number of UTF-16 units of one event, which then is alone; and the minimum, for a model with a small context. */
const maxEventChars = 32_000
const minEventChars = 2_000
/** The maximum number of events in a prompt; the rest is counted. */
export const maxShownEvents = Math.floor(eventBytes / eventMarkBytes)

/** The number of tokens of a text, and the limit of a model, are unknown in advance, so smaller and smaller shares are tried. */
const shares = [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 0]

/** The contexts to try, largest first, at least one. Each is smaller than the one before it; the last cannot be made smaller. */
export function listTurnContexts(full: FullContext): readonly [TurnContext, ...TurnContext[]] {
  const whole = toTurnContext(full, 1)
  const contexts = shares.map((share) => toTurnContext(full, share))
  const smaller = contexts.filter((context, at) => countChars(context) < countChars(contexts[at - 1] ?? whole))
  return [whole, ...smaller]
}

function toTurnContext({ history, limits, waiting }: FullContext, share: number): TurnContext {
  const maxChars = Math.max(minEventChars, Math.floor(maxEventChars * share))
  const kept = takeNewest(history, { ...limits, bytes: limits.bytes * share })
  return {
    history: kept,
    leavesOut: kept.length < history.length,
    waiting: { ...waiting, events: takeOldest(waiting.events, eventBytes * share), maxChars },
  }
}

function countChars({ history, waiting: { events, maxChars } }: TurnContext): number {
  const said = history.reduce((sum, { text }) => sum + text.length, 0)
  return events.reduce((sum, { text }) => sum + Math.min(text.length, maxChars), said)
}

/** The oldest events that fit, at least one: otherwise a long event would wait forever. */
function takeOldest<Event extends { readonly text: string }>(events: readonly Event[], maxBytes: number): Event[] {
  let bytes = 0
  return events.filter(({ text }, at) => {
    bytes += Buffer.byteLength(text) + eventMarkBytes
    return at === 0 || bytes <= maxBytes
  })
}

/** The newest exchanges that fit: a prompt and its reply stay together, and one that does not fit ends the history. */
function takeNewest(messages: readonly Message[], limits: HistoryConfig): readonly Message[] {
  let bytes = 0
  let from = messages.length
  for (let at = messages.length - 1; at >= 0; at -= 1) {
    const message = messages[at]
    bytes += Buffer.byteLength(message?.text ?? '')
    if (bytes > limits.bytes || messages.length - at > limits.messages) break
    if (message?.role === 'user') from = at
  }
  return messages.slice(from)
}
