// Slack, through an app. docs.slack.dev/reference/methods/chat.postMessage
import { z } from 'zod'
import { type ChannelHost, type ChannelParts, type ChannelSettings, defineChannel } from '../../define.ts'
import { splitMarkdown } from './shared/chunks.ts'
import {
  createDirectMessages,
  type ErrorMeaning,
  readSuccess,
  describeWrongRecipient,
  createFailureReader,
  sendJson,
  toFailureBeforePost,
} from './shared/http.ts'
import { slackMrkdwn } from './shared/markup.ts'
import { render } from './shared/markdown.ts'
import { nonBlank, httpUrl } from './shared/values.ts'

/** Slack's documentation of chat.postMessage: "For best results, limit the number of characters in the text field to 4,000 characters." */
const limit = 4_000

/** In `:thread:<ts>`, `ts` is the time of the first message of the thread, which the API and events also call `ts`. */
const recipient = /^(?:(?:channel:)?([CGD][A-Z0-9]{6,20})(?::thread:(\d{9,12}\.\d{6}))?|user:([UW][A-Z0-9]{6,20}))$/

const PostedAnswer = z.object({ ok: z.literal(true), ts: z.string() })
const Direct = z.object({ ok: z.literal(true), channel: z.object({ id: z.string() }) })
const Me = z.object({ ok: z.literal(true), user: z.string(), team: z.string() })
const ErrorAnswer = z.object({ ok: z.literal(false), error: z.string() })

const options = z.strictObject({
  botToken: nonBlank.describe('Bot token, xoxb-…, with the scope chat:write.'),
  baseUrl: httpUrl.default('https://slack.com/api').describe('URL of the Web API. Change it only for a proxy.'),
})
type Settings = ChannelSettings<typeof options>

export const slackChannel = defineChannel({
  name: 'slack',
  about: 'Slack, through an app. `to`: a channel id, channel:<id>, <channel id>:thread:<ts> or user:<id>.',
  options,
  create: createSlackChannel,
})

function createSlackChannel(config: Settings, { fetch }: ChannelHost): ChannelParts {
  const call = (method: string, body: object, signal: AbortSignal) =>
    sendJson({
      url: `${config.baseUrl}/${method}`,
      headers: { authorization: `Bearer ${config.botToken}` },
      body,
      timeoutMs: config.timeoutMs,
      signal,
      fetch,
    })

  const openDirectMessage = createDirectMessages(async (users, signal) => {
    const outcome = await call('conversations.open', { users }, signal)
    const direct = readSuccess(outcome, Direct)
    return direct === undefined ? toFailureBeforePost(readFailure(outcome)) : { kind: 'open', id: direct.channel.id }
  })

  return {
    dedupes: false,
    whyNot: (to = config.to) => (recipient.test(to ?? '') ? undefined : explainRecipient(to)),
    split: (written, format) =>
      splitMarkdown(written, { limit, measure: (piece) => render(piece, slackMrkdwn, format).length }),
    async send({ to = config.to, text, format, nonce, run, signal }) {
      const [, id, thread, user] = recipient.exec(to ?? '') ?? []
      const channel = user === undefined ? { kind: 'open' as const, id } : await openDirectMessage(user, signal)
      if (channel.kind !== 'open') return channel
      if (channel.id === undefined) return { kind: 'permanent', detail: explainRecipient(to) }
      const outcome = await call(
        'chat.postMessage',
        {
          channel: channel.id,
          ...(thread === undefined ? {} : { thread_ts: thread }),
          text: render(text, slackMrkdwn, format),
          ...(format === 'plain' ? { mrkdwn: false } : {}),
          unfurl_links: false,
          unfurl_media: false,
          // for the operator: conversations.history with include_all_metadata shows whether an ambiguous message arrived
          metadata: { event_type: 'hookloom_reply', event_payload: { run_id: run.id, nonce } },
        },
        signal,
      )
      const posted = readSuccess(outcome, PostedAnswer)
      return posted === undefined ? readFailure(outcome) : { kind: 'sent', id: posted.ts }
    },
    async probe(signal) {
      const outcome = await call('auth.test', {}, signal)
      const me = readSuccess(outcome, Me)
      if (me === undefined) return { ok: false, detail: readFailure(outcome).detail }
      return { ok: true, detail: `Slack accepts the token of ${me.user} in ${me.team}.` }
    },
  }
}

function explainRecipient(to: string | undefined): string {
  return describeWrongRecipient(
    'slack',
    to,
    'a channel id (C…, G… or D…), channel:<id>, <channel id>:thread:<ts> or user:<id> (U… or W…)',
  )
}

// The meaning of errors: docs.slack.dev/reference/methods/chat.postMessage#errors

const token =
  'Slack does not accept the token. Install the app again, and set channels.slack.botToken to its bot token.'
const busy: ErrorMeaning = { kind: 'rate-limited', hint: 'Too many messages are posted there.' }
const closed: ErrorMeaning = { kind: 'transient', hint: 'Slack cannot accept messages at the moment.' }
/** "It's possible some aspect of the operation succeeded before the error was raised." */
const unclear: ErrorMeaning = { kind: 'ambiguous', hint: 'Slack failed while it posted the message.' }

const meanings = new Map<string, ErrorMeaning>([
  ['ratelimited', busy],
  ['rate_limited', busy],
  ['message_limit_exceeded', busy],
  ['service_unavailable', closed],
  ['request_timeout', closed],
  ['team_added_to_org', closed],
  ['internal_error', unclear],
  ['fatal_error', unclear],
])

const hints = new Map<string, string>([
  ['invalid_auth', token],
  ['not_authed', token],
  ['account_inactive', token],
  ['token_revoked', token],
  ['token_expired', token],
  ['missing_scope', 'Give the app chat:write (for user:<id> im:write, too), and install it again.'],
  [
    'channel_not_found',
    'The channel does not exist, or the app cannot see it. Check the id, and invite the app with /invite.',
  ],
  ['not_in_channel', 'Invite the app to the channel with /invite, or give it chat:write.public.'],
  ['is_archived', 'The channel is archived. Name another.'],
  [
    'restricted_action',
    'Only some people may post there. Ask the owners of the workspace to allow the app, or name another channel.',
  ],
  ['user_not_found', 'The user does not exist. Check the id.'],
  ['user_disabled', 'The user is deactivated. Name another recipient.'],
  ['cannot_dm_bot', 'The user is a bot, and bots receive no messages from apps. Name a person or a channel.'],
  ['messages_tab_disabled', 'Turn on the Messages Tab under App Home.'],
])

const unknownHint = 'See the errors of chat.postMessage in the documentation of Slack.'

const readFailure = createFailureReader({
  provider: 'Slack',
  schema: ErrorAnswer,
  refusesWith200: true,
  readCode: ({ error }) => error,
  explain: ({ body, code = '' }) =>
    body && (meanings.get(code) ?? { kind: 'permanent', hint: hints.get(code) ?? unknownHint }),
})
