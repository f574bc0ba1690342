// Slack, through an app. docs.slack.dev/reference/methods/chat.postMessage
import { z } from 'zod'
import type { Channel } from '../../model/channel.ts'
import type { ChannelConfig } from '../../model/channels-config.ts'
import { splitMarkdown } from './chunks.ts'
import { createDirectMessages } from './direct-messages.ts'
import { toCode, type Failed } from './failure.ts'
import { slackMrkdwn } from './markup.ts'
import { type ChannelTools, type HttpOutcome, readAccepted, sendJson } from './http.ts'
import { render } from './markdown.ts'
import { refuseRecipient } from './recipient.ts'
import { toCodedFailure, toFailureBeforePost } from './error-codes.ts'
import { toSlackMeaning } from './slack-errors.ts'

/** "For best results, limit the number of characters to 4,000." */
const limit = 4_000

const recipient = /^(?:(?:channel:)?([CGD][A-Z0-9]{6,20})|user:([UW][A-Z0-9]{6,20}))$/

const Posted = z.object({ ok: z.literal(true), ts: z.string() })
const Direct = z.object({ ok: z.literal(true), channel: z.object({ id: z.string() }) })
const Me = z.object({ ok: z.literal(true), user: z.string(), team: z.string() })
/** With status 200. */
const Refused = z.object({ ok: z.literal(false), error: z.string() })

export function createSlackChannel(config: ChannelConfig<'slack'>, { fetch }: ChannelTools = {}): Channel {
  const call = (method: string, body: object, signal: AbortSignal) =>
    sendJson({
      url: `${config.baseUrl}/${method}`,
      headers: { authorization: `Bearer ${config.botToken}` },
      body,
      timeoutMs: config.timeoutMs,
      signal,
      fetch,
    })

  const toDirect = createDirectMessages(async (users, signal) => {
    const outcome = await call('conversations.open', { users }, signal)
    const direct = readAccepted(outcome, Direct)
    return direct === undefined ? toFailureBeforePost(toFailed(outcome)) : { kind: 'open', id: direct.channel.id }
  })

  return {
    id: 'slack',
    dedupes: false,
    to: config.to,
    whyNot: (to = config.to) => (recipient.test(to ?? '') ? undefined : refuse(to)),
    split: (markdown) => splitMarkdown(markdown, { limit, measure: (piece) => render(piece, slackMrkdwn).length }),
    async send({ to = config.to, text, nonce, run, signal }) {
      const [, id, user] = recipient.exec(to ?? '') ?? []
      const channel = user === undefined ? { kind: 'open' as const, id } : await toDirect(user, signal)
      if (channel.kind !== 'open') return channel
      if (channel.id === undefined) return { kind: 'permanent', detail: refuse(to) }
      const outcome = await call(
        'chat.postMessage',
        {
          channel: channel.id,
          text: render(text, slackMrkdwn),
          unfurl_links: false,
          unfurl_media: false,
          // after an attempt of unknown fate, conversations.history with include_all_metadata tells whether it arrived
          metadata: { event_type: 'hookloom_reply', event_payload: { run_id: run.id, nonce } },
        },
        signal,
      )
      const posted = readAccepted(outcome, Posted)
      return posted === undefined ? toFailed(outcome) : { kind: 'sent', id: posted.ts }
    },
    async probe(signal) {
      const outcome = await call('auth.test', {}, signal)
      const me = readAccepted(outcome, Me)
      if (me === undefined) return { ok: false, detail: toFailed(outcome).detail }
      return { ok: true, detail: `Slack knows the app as ${me.user} in ${me.team}.` }
    },
  }
}

function refuse(to: string | undefined): string {
  return refuseRecipient('slack', to, 'a channel id (C…, G… or D…), channel:<id> or user:<id> (U… or W…)')
}

function toFailed(outcome: HttpOutcome): Failed {
  const refused = readAccepted(outcome, Refused)
  const code = toCode(refused?.error)
  return toCodedFailure(outcome, {
    provider: 'Slack',
    code,
    meaning: refused === undefined ? undefined : toSlackMeaning(code ?? ''),
  })
}
