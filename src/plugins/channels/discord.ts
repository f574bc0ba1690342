// Discord, through a bot. docs.discord.com/developers/resources/message#create-message
import { z } from 'zod'
import { type ChannelHost, type ChannelParts, type ChannelSettings, defineChannel } from '../../define.ts'
import { splitMarkdown } from './shared/chunks.ts'
import {
  createDirectMessages,
  readSuccess,
  describeWrongRecipient,
  createFailureReader,
  sendJson,
  toFailureBeforePost,
} from './shared/http.ts'
import { safeMarkdown } from './shared/markup.ts'
import { render } from './shared/markdown.ts'
import { nonBlank, httpUrl } from './shared/values.ts'

const limit = 2_000
/** A message flag: no previews of links. */
const suppressEmbeds = 4

const recipient = /^(?:(channel|user):)?(\d{15,20})$/

const CreatedAnswer = z.object({ id: z.string() })
const Me = z.object({ username: z.string() })
const ErrorAnswer = z.object({ code: z.number().optional(), retry_after: z.number().optional() })

/** docs.discord.com/developers/topics/opcodes-and-status-codes#json-json-error-codes */
const hints: Readonly<Record<string, string>> = {
  401: 'The bot token is wrong. Check channels.discord.botToken.',
  10003: 'The channel does not exist. Check the id.',
  10013: 'The user does not exist. Check the id.',
  50001: 'The bot cannot see the channel. Invite it to the server, and grant it View Channel there.',
  50007:
    'The user does not accept direct messages from the bot. Name a channel, or ask the user to allow messages from the server.',
  50008: 'The channel does not accept text. Name a text channel.',
  50013: 'The bot may not write in the channel. Grant it Send Messages.',
  50278: 'The bot and the user share no server. Invite the bot to a server of the user, or name a channel.',
}

const options = z.strictObject({
  botToken: nonBlank.describe('Token of the bot, from the Developer Portal.'),
  baseUrl: httpUrl.default('https://discord.com/api/v10').describe('URL of the HTTP API. Change it only for a proxy.'),
})
type Settings = ChannelSettings<typeof options>

export const discordChannel = defineChannel({
  name: 'discord',
  about: 'Discord, through a bot. `to`: a channel id, channel:<id> or user:<id>.',
  options,
  create: createDiscordChannel,
})

/** Discord drops a message with a nonce that the bot used in the past few minutes, so an ambiguous attempt may be repeated. */
function createDiscordChannel(config: Settings, { fetch }: ChannelHost): ChannelParts {
  const call = (path: string, body: object | undefined, signal: AbortSignal) =>
    sendJson({
      method: body === undefined ? 'GET' : 'POST',
      url: `${config.baseUrl}/${path}`,
      headers: {
        authorization: `Bot ${config.botToken}`,
        // Discord refuses bots without a User-Agent of this form
        'user-agent': 'DiscordBot (https://www.npmjs.com/package/hookloom, 0.1)',
      },
      body,
      timeoutMs: config.timeoutMs,
      signal,
      fetch,
    })

  const openDirectMessage = createDirectMessages(async (user, signal) => {
    const outcome = await call('users/@me/channels', { recipient_id: user }, signal)
    const channel = readSuccess(outcome, CreatedAnswer)
    return channel === undefined ? toFailureBeforePost(readFailure(outcome)) : { kind: 'open', id: channel.id }
  })

  return {
    // enforce_nonce covers the last few minutes
    dedupes: 'briefly',
    whyNot: (to = config.to) => (recipient.test(to ?? '') ? undefined : explainRecipient(to)),
    split: (written, format) =>
      splitMarkdown(written, { limit, measure: (piece) => render(piece, safeMarkdown, format).length }),
    async send({ to = config.to, text, format, nonce, signal }) {
      const [, kind = 'channel', id] = recipient.exec(to ?? '') ?? []
      if (id === undefined) return { kind: 'permanent', detail: explainRecipient(to) }
      const channel = kind === 'user' ? await openDirectMessage(id, signal) : { kind: 'open' as const, id }
      if (channel.kind !== 'open') return channel
      const outcome = await call(
        `channels/${encodeURIComponent(channel.id)}/messages`,
        {
          content: render(text, safeMarkdown, format),
          nonce,
          enforce_nonce: true,
          allowed_mentions: { parse: [] },
          flags: suppressEmbeds,
        },
        signal,
      )
      const message = readSuccess(outcome, CreatedAnswer)
      return message === undefined ? readFailure(outcome) : { kind: 'sent', id: message.id }
    },
    async probe(signal) {
      const outcome = await call('users/@me', undefined, signal)
      const me = readSuccess(outcome, Me)
      if (me === undefined) return { ok: false, detail: readFailure(outcome).detail }
      return { ok: true, detail: `Discord accepts the token of ${me.username}.` }
    },
  }
}

function explainRecipient(to: string | undefined): string {
  return describeWrongRecipient('discord', to, 'a channel id, channel:<id> or user:<id>')
}

const readFailure = createFailureReader({
  provider: 'Discord',
  schema: ErrorAnswer,
  // 0 is "general error"
  readCode: ({ code }) => (code === 0 ? undefined : code),
  explain: ({ status, body }) => ({
    hint: hints[body?.code ?? status] ?? hints[status],
    retryAfterMs: body?.retry_after === undefined ? undefined : Math.ceil(body.retry_after * 1_000),
  }),
})
