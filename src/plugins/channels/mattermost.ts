// Mattermost, through a bot account. developers.mattermost.com/api-documentation/#/operations/CreatePost
import { z } from 'zod'
import { type ChannelHost, type ChannelParts, type ChannelSettings, defineChannel } from '../../define.ts'
import { splitMarkdown } from './shared/chunks.ts'
import {
  createDirectMessages,
  type DirectMessage,
  readSuccess,
  describeWrongRecipient,
  createFailureReader,
  sendJson,
  toFailureBeforePost,
} from './shared/http.ts'
import { safeMarkdown } from './shared/markup.ts'
import { render } from './shared/markdown.ts'
import { nonBlank, httpUrl } from './shared/values.ts'

/** The maximum length that every server accepts: new servers allow 16,383 characters, but databases from before 5.0 only 4,000. */
const limit = 4_000

const recipient = /^(?:(?:channel:)?([a-z0-9]{26})|user:([a-z0-9]{26})|(@[a-z][a-z0-9._-]{0,63}))$/

const Id = z.object({ id: z.string() })
const Me = z.object({ id: z.string(), username: z.string() })
const ErrorAnswer = z.object({ id: z.string() })

const hints: Readonly<Record<number, string>> = {
  401: 'The token is wrong. Check channels.mattermost.token.',
  403: 'The bot may not write in the channel. Add it to the team and to the channel.',
  404: 'The channel or the user does not exist. Check the id, and baseUrl.',
}

const options = z.strictObject({
  token: nonBlank.describe('Token of a bot account.'),
  baseUrl: httpUrl.describe('URL of the server, such as https://chat.example.com.'),
})
type Settings = ChannelSettings<typeof options>

export const mattermostChannel = defineChannel({
  name: 'mattermost',
  about: 'Mattermost, through a bot account. `to`: a channel id, channel:<id>, user:<id> or @name.',
  options,
  create: createMattermostChannel,
})

/** Only the server that accepted a post drops a repeat, and only for 30 seconds, so an ambiguous attempt is not repeated. */
function createMattermostChannel(config: Settings, { fetch }: ChannelHost): ChannelParts {
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

  /** Calls the API, and reads the id of the answer. */
  async function fetchId(path: string, body: object | undefined, signal: AbortSignal): Promise<DirectMessage> {
    const outcome = await call(path, body, signal)
    const found = readSuccess(outcome, Id)
    return found === undefined ? toFailureBeforePost(readFailure(outcome)) : { kind: 'open', id: found.id }
  }

  /** `person`: a user id, or a user name with @. */
  const openDirectMessage = createDirectMessages(async (person, signal) => {
    const bot = await fetchId('users/me', undefined, signal)
    if (bot.kind !== 'open') return bot
    const user: DirectMessage = person.startsWith('@')
      ? await fetchId(`users/username/${person.slice(1)}`, undefined, signal)
      : { kind: 'open', id: person }
    return user.kind === 'open' ? fetchId('channels/direct', [bot.id, user.id], signal) : user
  })

  return {
    dedupes: false,
    whyNot: (to = config.to) => (recipient.test(to ?? '') ? undefined : explainRecipient(to)),
    split: (written, format) =>
      splitMarkdown(written, { limit, measure: (piece) => render(piece, safeMarkdown, format).length }),
    async send({ to = config.to, text, format, nonce, signal }) {
      const [, id, user, name] = recipient.exec(to ?? '') ?? []
      const person = user ?? name
      const channel = person === undefined ? { kind: 'open' as const, id } : await openDirectMessage(person, signal)
      if (channel.kind !== 'open') return channel
      if (channel.id === undefined) return { kind: 'permanent', detail: explainRecipient(to) }
      const post = { channel_id: channel.id, message: render(text, safeMarkdown, format), pending_post_id: nonce }
      const outcome = await call('posts', post, signal)
      const posted = readSuccess(outcome, Id)
      return posted === undefined ? readFailure(outcome) : { kind: 'sent', id: posted.id }
    },
    async probe(signal) {
      const outcome = await call('users/me', undefined, signal)
      const me = readSuccess(outcome, Me)
      if (me === undefined) return { ok: false, detail: readFailure(outcome).detail }
      return { ok: true, detail: `Mattermost accepts the token of @${me.username}.` }
    },
  }
}

function explainRecipient(to: string | undefined): string {
  return describeWrongRecipient('mattermost', to, 'a channel id, channel:<id>, user:<id> or @name')
}

const readFailure = createFailureReader({
  provider: 'Mattermost',
  schema: ErrorAnswer,
  readCode: ({ id }) => id,
  explain({ status, headers }) {
    const reset = headers.get('x-ratelimit-reset') ?? ''
    // this header is in seconds; not every version sends Retry-After
    return { hint: hints[status], retryAfterMs: /^\d{1,6}$/.test(reset) ? Number(reset) * 1_000 : undefined }
  },
})
