// What Slack's errors mean for a message. docs.slack.dev/reference/methods/chat.postMessage#errors
import type { ErrorMeaning } from './error-codes.ts'

const token = 'Slack does not take the token. Install the app again, and set channels.slack.botToken to its bot token.'
const busy: ErrorMeaning = { kind: 'rate-limited', hint: 'Too much is being posted there.' }
const closed: ErrorMeaning = { kind: 'transient', hint: 'Slack cannot take it just now.' }
/** "It's possible some aspect of the operation succeeded before the error was raised." */
const unclear: ErrorMeaning = { kind: 'ambiguous', hint: 'Slack failed on the way.' }

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
  ['channel_not_found', 'Slack shows the app no such channel. Check the id; invite the app with /invite.'],
  ['not_in_channel', 'Invite the app to the channel with /invite, or give it chat:write.public.'],
  ['is_archived', 'The channel is archived. Name another.'],
  [
    'restricted_action',
    'The workspace lets only some people post there. Ask its owners to let the app, or name another channel.',
  ],
  ['user_not_found', 'Slack knows no such user. Check the id.'],
  ['user_disabled', 'The user is deactivated. Name another recipient.'],
  ['cannot_dm_bot', 'The user is a bot, which takes no messages of an app. Name a person or a channel.'],
  ['messages_tab_disabled', 'Turn on the Messages Tab under App Home.'],
])

export function toSlackMeaning(code: string): ErrorMeaning {
  const hint = hints.get(code) ?? 'See the errors of chat.postMessage in the documentation of Slack.'
  return meanings.get(code) ?? { kind: 'permanent', hint }
}
