// Telegram, through a bot. core.telegram.org/bots/api#sendmessage, #making-requests
import { z } from 'zod'
import { type ChannelHost, type ChannelParts, type ChannelSettings, defineChannel } from '../../define.ts'
import { splitMarkdown } from './shared/chunks.ts'
import { readSuccess, readError, describeWrongRecipient, createFailureReader, sendJson } from './shared/http.ts'
import { telegramHtml } from './shared/markup.ts'
import { render } from './shared/markdown.ts'
import { httpUrl, pathPart } from './shared/values.ts'

/** Telegram's documentation: "1-4096 characters after entities parsing". It counts UTF-16 units. */
const limit = 4_096

const recipient = /^(-?\d{1,15}|@[a-z]\w{3,31})(?::topic:(\d{1,10}))?$/i

const SuccessAnswer = z.object({ ok: z.literal(true), result: z.object({ message_id: z.int() }) })
const Me = z.object({ ok: z.literal(true), result: z.object({ username: z.string() }) })
const ErrorAnswer = z.object({
  description: z.string().default(''),
  parameters: z.object({ migrate_to_chat_id: z.int().optional(), retry_after: z.number().optional() }).default({}),
})

const options = z.strictObject({
  botToken: pathPart.describe('Token of the bot, from @BotFather.'),
  baseUrl: httpUrl
    .default('https://api.telegram.org')
    .describe('URL of the Bot API. Change it for a local Bot API server.'),
})
type Settings = ChannelSettings<typeof options>

export const telegramChannel = defineChannel({
  name: 'telegram',
  about: 'Telegram, through a bot. `to`: a chat id, @name or <chat id>:topic:<n>.',
  options,
  create: createTelegramChannel,
})

function createTelegramChannel(config: Settings, { fetch }: ChannelHost): ChannelParts {
  const call = (method: string, body: object | undefined, signal: AbortSignal) =>
    sendJson({
      // the token is in the path, so this URL is never shown
      url: `${config.baseUrl}/bot${config.botToken}/${method}`,
      body,
      timeoutMs: config.timeoutMs,
      signal,
      fetch,
    })

  return {
    dedupes: false,
    whyNot: (to = config.to) => (recipient.test(to ?? '') ? undefined : explainRecipient(to)),
    split: (written, format) =>
      splitMarkdown(written, { limit, measure: (piece) => stripTags(render(piece, telegramHtml, format)).length }),
    async send({ to = config.to, text, format, signal }) {
      const [, chat, topic] = recipient.exec(to ?? '') ?? []
      if (chat === undefined) return { kind: 'permanent', detail: explainRecipient(to) }
      const html = render(text, telegramHtml, format)
      const post = (chatId: string | number, written: object) =>
        call(
          'sendMessage',
          {
            chat_id: chatId,
            ...(topic === undefined ? {} : { message_thread_id: Number(topic) }),
            ...written,
            link_preview_options: { is_disabled: true },
          },
          signal,
        )
      let chatId = chat.startsWith('@') ? chat : Number(chat)
      let written: object = { text: html, parse_mode: 'HTML' }
      let outcome = await post(chatId, written)
      // a group that became a supergroup has a new id, and the old id no longer works
      const moved = readError(outcome, ErrorAnswer)?.parameters.migrate_to_chat_id
      if (moved !== undefined) {
        chatId = moved
        outcome = await post(chatId, written)
      }
      if (readError(outcome, ErrorAnswer)?.description.includes("can't parse entities")) {
        written = { text: stripTags(html) }
        outcome = await post(chatId, written)
      }
      const sent = readSuccess(outcome, SuccessAnswer)
      return sent === undefined ? readFailure(outcome) : { kind: 'sent', id: String(sent.result.message_id) }
    },
    async probe(signal) {
      const outcome = await call('getMe', undefined, signal)
      const me = readSuccess(outcome, Me)
      if (me === undefined) return { ok: false, detail: readFailure(outcome).detail }
      return { ok: true, detail: `Telegram accepts the token of @${me.result.username}.` }
    },
  }
}

function explainRecipient(to: string | undefined): string {
  return describeWrongRecipient('telegram', to, 'a chat id, @name or <chat id>:topic:<number>')
}

/** The visible text of the HTML. Telegram limits its length. It is sent alone if Telegram refuses the tags. */
function stripTags(html: string): string {
  return html
    .replace(/<[^>]*>/g, '')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')
}

const readFailure = createFailureReader({
  provider: 'Telegram',
  schema: ErrorAnswer,
  explain: ({ status, body }) => ({
    hint: chooseHint(status, body?.description ?? ''),
    retryAfterMs:
      body?.parameters.retry_after === undefined ? undefined : Math.ceil(body.parameters.retry_after * 1_000),
  }),
})

/** Chooses the advice for a refusal. Telegram has no error codes besides the status, so its descriptions are matched, but not shown. */
function chooseHint(status: number, description: string): string | undefined {
  if (status === 401 || status === 404) return 'The bot token is wrong. Check channels.telegram.botToken.'
  if (/chat not found/i.test(description)) {
    return 'The chat does not exist, or the bot cannot see it. A person must write to the bot first; a group or channel must have the bot as a member.'
  }
  if (/thread not found|TOPIC_/i.test(description))
    return 'The topic does not exist or is closed. Open it, or name another.'
  if (status === 403)
    return 'The bot was blocked or removed, or may not write in the chat. Unblock it, or add it again.'
  return undefined
}
