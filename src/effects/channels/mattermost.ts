// Mattermost, through a bot account. developers.mattermost.com/api-documentation/#/operations/CreatePost
import { z } from 'zod'
import type { Channel } from '../../model/channel.ts'
import type { ChannelConfig } from '../../model/channels-config.ts'
import { splitMarkdown } from './chunks.ts'
import {
  type ChannelTools,
  createDirectMessages,
  type Failed,
  type HttpOutcome,
  type Opened,
  readAccepted,
  readRefused,
  refuseRecipient,
  sendJson,
  toCode,
  toFailure,
  toFailureBeforePost,
} from './http.ts'
import { safeMarkdown } from './markup.ts'
import { render } from './markdown.ts'

/** What every server takes: 16,383 is the default of new ones, 4,000 that of databases from before 5.0. */
const limit = 4_000

const recipient = /^(?:(?:channel:)?([a-z0-9]{26})|user:([a-z0-9]{26})|(@[a-z][a-z0-9._-]{0,63}))$/

const Id = z.object({ id: z.string() })
const Me = z.object({ id: z.string(), username: z.string() })
const Refused = z.object({ id: z.string() })

const hints: Readonly<Record<number, string>> = {
  401: 'It does not take the token. Check channels.mattermost.token.',
  403: 'The bot may not write there. Add it to the team and to the channel.',
  404: 'It knows no such channel or user. Check the id, and baseUrl.',
}

/** Repeats are dropped for 30 seconds only, and by the server that took the post: an attempt of unknown fate is not repeated. */
export function createMattermostChannel(config: ChannelConfig<'mattermost'>, { fetch }: ChannelTools = {}): Channel {
  const call = (path: string, body: object | undefined, signal: AbortSignal) =>
    sendJson({
      method: body === undefined ? 'GET' : 'POST',
      url: `${config.baseUrl}/api/v4/${path}`,
      headers: { authorization: `Bearer ${config.token}` },
      body,
      timeoutMs: config.timeoutMs,
      signal,
      fetch,
    })

  async function open(path: string, body: object | undefined, signal: AbortSignal): Promise<Opened> {
    const outcome = await call(path, body, signal)
    const found = readAccepted(outcome, Id)
    return found === undefined ? toFailureBeforePost(toFailed(outcome)) : { kind: 'open', id: found.id }
  }

  /** `person`: an id, or a name with @. */
  const toDirect = createDirectMessages(async (person, signal) => {
    const bot = await open('users/me', undefined, signal)
    if (bot.kind !== 'open') return bot
    const user: Opened = person.startsWith('@')
      ? await open(`users/username/${person.slice(1)}`, undefined, signal)
      : { kind: 'open', id: person }
    return user.kind === 'open' ? open('channels/direct', [bot.id, user.id], signal) : user
  })

  return {
    id: 'mattermost',
    dedupes: false,
    to: config.to,
    whyNot: (to = config.to) => (recipient.test(to ?? '') ? undefined : refuse(to)),
    split: (markdown) => splitMarkdown(markdown, { limit, measure: (piece) => render(piece, safeMarkdown).length }),
    async send({ to = config.to, text, nonce, signal }) {
      const [, id, user, name] = recipient.exec(to ?? '') ?? []
      const person = user ?? name
      const channel = person === undefined ? { kind: 'open' as const, id } : await toDirect(person, signal)
      if (channel.kind !== 'open') return channel
      if (channel.id === undefined) return { kind: 'permanent', detail: refuse(to) }
      const post = { channel_id: channel.id, message: render(text, safeMarkdown), pending_post_id: nonce }
      const outcome = await call('posts', post, signal)
      const posted = readAccepted(outcome, Id)
      return posted === undefined ? toFailed(outcome) : { kind: 'sent', id: posted.id }
    },
    async probe(signal) {
      const outcome = await call('users/me', undefined, signal)
      const me = readAccepted(outcome, Me)
      if (me === undefined) return { ok: false, detail: toFailed(outcome).detail }
      return { ok: true, detail: `Mattermost knows the bot as @${me.username}.` }
    },
  }
}

function refuse(to: string | undefined): string {
  return refuseRecipient('mattermost', to, 'a channel id, channel:<id>, user:<id> or @name')
}

function toFailed(outcome: HttpOutcome): Failed {
  const code = toCode(readRefused(outcome, Refused)?.id)
  if (outcome.kind !== 'answer') return toFailure(outcome, { provider: 'Mattermost' })
  const { status, headers } = outcome
  const reset = headers.get('x-ratelimit-reset')
  return toFailure(outcome, {
    provider: 'Mattermost',
    code,
    hint: hints[status],
    // in seconds; Retry-After is not sent by every version
    retryAfterMs: reset === null || !/^\d{1,6}$/.test(reset) ? undefined : Number(reset) * 1_000,
  })
}
