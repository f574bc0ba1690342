// Matrix, through the account of a bot. https://spec.matrix.org/v1.11/client-server-api/#put_matrixclientv3roomsroomidsendeventtypetxnid
import { z } from 'zod'
import { type ChannelHost, type ChannelParts, type ChannelSettings, defineChannel } from '../../define.ts'
import { splitMarkdown } from './shared/chunks.ts'
import {
  createFailureReader,
  describeWrongRecipient,
  type HttpOutcome,
  readSuccess,
  sendJson,
  toFailureBeforePost,
} from './shared/http.ts'
import { render } from './shared/markdown.ts'
import { plainText, telegramHtml } from './shared/markup.ts'
import { httpUrl, nonBlank } from './shared/values.ts'

/** An event has at most 65,536 bytes, in which a message stands twice, as text and as HTML. */
const limit = 24_000

/** A room, by its id or by one of its names. An id has the name of a server only before version 12 of rooms. */
const recipient = /^(?:![\w+/=.~-]{1,250}|[!#][^\s:]{1,200}:[\w.:[\]-]{1,200})$/

const Sent = z.object({ event_id: z.string() })
const Room = z.object({ room_id: z.string() })
const Me = z.object({ user_id: z.string() })
const ErrorAnswer = z.object({ errcode: z.string(), retry_after_ms: z.number().nonnegative().optional() })

const options = z.strictObject({
  accessToken: nonBlank.describe('Access token of the account of the bot.'),
  baseUrl: httpUrl.describe('URL of the homeserver, such as https://matrix.example.com.'),
})
type Settings = ChannelSettings<typeof options>

export const matrixChannel = defineChannel({
  name: 'matrix',
  about: 'Matrix, through the account of a bot. `to`: a room, as !<id> or #<name>:<server>.',
  options,
  create: createMatrixChannel,
})

function createMatrixChannel(config: Settings, { fetch }: ChannelHost): ChannelParts {
  const call = (method: 'GET' | 'PUT', path: string, { body, signal }: { body?: object; signal: AbortSignal }) =>
    sendJson({
      method,
      url: `${config.baseUrl}/_matrix/client/v3/${path}`,
      headers: { authorization: `Bearer ${config.accessToken}` },
      body,
      timeoutMs: config.timeoutMs,
      signal,
      fetch,
    })

  /** The id of a room: a name may lead to another room tomorrow. */
  async function findRoom(to: string, signal: AbortSignal): Promise<string | HttpOutcome> {
    if (to.startsWith('!')) return to
    const outcome = await call('GET', `directory/room/${encodeURIComponent(to)}`, { signal })
    return readSuccess(outcome, Room)?.room_id ?? outcome
  }

  return {
    // the server knows the id of the transaction, so a repeated request makes no second event
    dedupes: true,
    whyNot: (to = config.to) => (recipient.test(to ?? '') ? undefined : explainRecipient(to)),
    split: (written, format) =>
      splitMarkdown(written, {
        limit,
        measure: (piece) => Buffer.byteLength(render(piece, telegramHtml, format)),
      }),
    async send({ to = config.to, text, format, nonce, signal }) {
      if (to === undefined || !recipient.test(to)) return { kind: 'permanent', detail: explainRecipient(to) }
      const room = await findRoom(to, signal)
      if (typeof room !== 'string') return toFailureBeforePost(readFailure(room))
      const content = {
        // other bots do not answer a notice
        msgtype: 'm.notice',
        // an old homeserver looks for this word in the text
        body: render(text, plainText, format).replaceAll('@room', '@\u200Broom'),
        format: 'org.matrix.custom.html',
        formatted_body: toLines(render(text, telegramHtml, format)),
        // with this field, a name in the text notifies nobody
        'm.mentions': {},
      }
      const path = `rooms/${encodeURIComponent(room)}/send/m.room.message/${encodeURIComponent(nonce)}`
      const outcome = await call('PUT', path, { body: content, signal })
      const sent = readSuccess(outcome, Sent)
      return sent === undefined ? readFailure(outcome) : { kind: 'sent', id: sent.event_id }
    },
    async probe(signal) {
      const outcome = await call('GET', 'account/whoami', { signal })
      const me = readSuccess(outcome, Me)
      if (me === undefined) return { ok: false, detail: readFailure(outcome).detail }
      return { ok: true, detail: `Matrix accepts the token of ${me.user_id}.` }
    },
  }
}

/** Writes line breaks as HTML has them. Code keeps its own. */
function toLines(html: string): string {
  return html
    .split(/(<pre>[^]*?<\/pre>)/)
    .map((part) => (part.startsWith('<pre>') ? part : part.replaceAll('\n', '<br>')))
    .join('')
}

function explainRecipient(to: string | undefined): string {
  return describeWrongRecipient('matrix', to, 'a room: !<id> or #<name>:<server>')
}

const hints: Readonly<Record<string, string>> = {
  M_UNKNOWN_TOKEN: 'The token is wrong or was ended. Check channels.matrix.accessToken.',
  M_MISSING_TOKEN: 'The token is missing. Check channels.matrix.accessToken.',
  M_FORBIDDEN: 'The bot is not in the room, or may not write there. Invite it, and let it join.',
  M_NOT_FOUND: 'The room does not exist, or baseUrl is not the URL of the homeserver.',
}

const readFailure = createFailureReader({
  provider: 'Matrix',
  schema: ErrorAnswer,
  readCode: ({ errcode }) => errcode,
  explain: ({ code = '', body }) => ({
    hint: Object.hasOwn(hints, code) ? hints[code] : undefined,
    retryAfterMs: body?.retry_after_ms,
  }),
})
