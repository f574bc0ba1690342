// iMessage, through a BlueBubbles server on a Mac. https://documenter.getpostman.com/view/765844/UV5RnfwM
import { z } from 'zod'
import {
  type ChannelHost,
  type ChannelParts,
  type ChannelSettings,
  type SendResult,
  defineChannel,
} from '../../define.ts'
import { splitMarkdown } from './shared/chunks.ts'
import {
  type ErrorMeaning,
  type HttpOutcome,
  readSuccess,
  describeWrongRecipient,
  createFailureReader,
  sendJson,
  toFailureBeforePost,
} from './shared/http.ts'
import { plainText } from './shared/markup.ts'
import { render } from './shared/markdown.ts'
import { nonBlank, httpUrl } from './shared/values.ts'

/** The maximum length of a text. Apple's app Messages displays longer texts badly. */
const maxLength = 4_000

/** The answer to a text is the message; the answer to a new chat is the chat with its first message. */
const SuccessAnswer = z.object({
  data: z.union([
    z.object({ guid: z.string(), messages: z.tuple([z.object({ guid: z.string() })]).rest(z.unknown()) }),
    z.object({ guid: z.string() }),
  ]),
})
/** `data` is the message, if Messages accepted it but could not send it. */
const ErrorAnswer = z.object({
  error: z.object({ message: z.string() }),
  data: z.object({ error: z.number() }).optional().catch(undefined),
})

/** The error code that Apple's database has for a message whose recipient does not use iMessage. */
const noIMessage = 22

type Target = { readonly kind: 'chat'; readonly guid: string } | { readonly kind: 'person'; readonly address: string }

const options = z.strictObject({
  password: nonBlank.describe('Password of the BlueBubbles server.'),
  baseUrl: httpUrl.describe('URL of the BlueBubbles server, such as http://mac.local:1234.'),
})
type Settings = ChannelSettings<typeof options>

export const imessageChannel = defineChannel({
  name: 'imessage',
  about: 'iMessage, through BlueBubbles on a Mac. `to`: a phone number, a mail address or chat_guid:<guid>.',
  options,
  create: createIMessageChannel,
})

/**
 * Creates the channel. The server drops a message with a repeated `tempGuid` only while it still sends the earlier one, so `dedupes` is false.
 * The server requires the password in the query, so no detail shows a URL.
 */
function createIMessageChannel(config: Settings, tools: ChannelHost): ChannelParts {
  const { timeoutMs } = config
  const toUrl = (path: string) => `${config.baseUrl}/api/v1/${path}?password=${encodeURIComponent(config.password)}`
  const ask = (path: string, signal: AbortSignal) =>
    sendJson({ method: 'GET', url: toUrl(path), timeoutMs, signal, ...tools })
  const post = (path: string, body: object, signal: AbortSignal) =>
    sendJson({ url: toUrl(path), body, timeoutMs, signal, ...tools })

  return {
    dedupes: false,
    whyNot: (to = config.to) => (readTarget(to) === undefined ? explainRecipient(to) : undefined),
    split: (written, format) =>
      splitMarkdown(written, { limit: maxLength, measure: (piece) => render(piece, plainText, format).length }),
    async send({ to = config.to, text, format, nonce, signal }) {
      const target = readTarget(to)
      if (target === undefined) return { kind: 'permanent', detail: explainRecipient(to) }
      const content = { tempGuid: nonce, message: render(text, plainText, format) }
      const guid = target.kind === 'chat' ? target.guid : `iMessage;-;${target.address}`
      if (target.kind === 'person') {
        const known = await ask(`chat/${encodeURIComponent(guid)}`, signal)
        if (known.kind === 'answer' && known.status === 404) {
          return toSendResult(await post('chat/new', { addresses: [target.address], ...content }, signal))
        }
        // nothing was posted yet, however this request ended
        if (known.kind !== 'answer' || known.status !== 200) return toFailureBeforePost(readFailure(known))
      }
      return toSendResult(await post('message/text', { chatGuid: guid, ...content }, signal))
    },
    async probe(signal) {
      const outcome = await ask('ping', signal)
      if (outcome.kind === 'answer' && outcome.status === 200) {
        return { ok: true, detail: 'BlueBubbles answers and accepts the password.' }
      }
      return { ok: false, detail: readFailure(outcome).detail }
    },
  }
}

function explainRecipient(to: string | undefined): string {
  return describeWrongRecipient('imessage', to, 'a phone number such as +15550100, a mail address or chat_guid:<guid>')
}

function readTarget(to = ''): Target | undefined {
  const text = to.trim()
  const [, guid] = /^chat_guid:\s*(\S+)$/i.exec(text) ?? []
  if (guid !== undefined) return { kind: 'chat', guid }
  if (/^[^\s@;]{1,64}@[^\s@;]{1,190}$/.test(text)) return { kind: 'person', address: text.toLowerCase() }
  const number = text.replace(/[\s().-]/g, '')
  return /^\+[1-9]\d{6,14}$/.test(number) ? { kind: 'person', address: number } : undefined
}

function toSendResult(outcome: HttpOutcome): SendResult {
  const accepted = readSuccess(outcome, SuccessAnswer)
  if (accepted === undefined) return readFailure(outcome)
  const { data } = accepted
  return { kind: 'sent', id: 'messages' in data ? data.messages[0].guid : data.guid }
}

const readFailure = createFailureReader({
  provider: 'BlueBubbles',
  schema: ErrorAnswer,
  readCode: ({ data }) => data?.error,
  explain({ status, body }): ErrorMeaning | undefined {
    const { error, data: { error: code = 0 } = {} } = body ?? {}
    if (status === 401) return { kind: 'permanent', hint: 'The password is wrong. Check channels.imessage.password.' }
    if (error?.message.startsWith('Message is already queued') === true) {
      return { kind: 'ambiguous', hint: 'An earlier attempt of this message is still being sent.' }
    }
    if (code === noIMessage)
      return { kind: 'permanent', hint: 'The recipient does not use iMessage. Check the address.' }
    return code === 0
      ? undefined
      : { kind: 'transient', hint: 'Messages could not send the message. Look at the conversation on the Mac.' }
  },
})
