/** A Slack message of a person becomes an agent run in the session of its thread; bots, edits and everything else are skipped. */
import { defineTransform } from 'hookloom'

/** The fields of a `message` or `app_mention` event that are read: https://docs.slack.dev/reference/events/message */
type SlackEvent = {
  type?: string
  team_id?: string
  api_app_id?: string
  event?: {
    type: string
    subtype?: string
    user?: string
    bot_id?: string | null
    app_id?: string
    text?: string
    channel: string
    /** `im` for a direct conversation. */
    channel_type?: string
    ts: string
    thread_ts?: string
    edited?: object
    files?: { name?: string | null; permalink?: string }[]
  }
  authorizations?: { user_id: string; is_bot?: boolean }[]
}

/** The subtypes of messages that people write. All others are edits, joins, bots and the like. */
const written = ['file_share', 'thread_broadcast', 'me_message']
const excerptLength = 4000
/** What a cut between the two units of an emoji leaves. */
const halfCharacter = /[\ud800-\udbff]$/
const maxFiles = 10

export default defineTransform<SlackEvent>(({ payload }, { log }) => {
  const { team_id: team, event } = payload
  if (team === undefined || event?.user === undefined || !isWritten(payload)) {
    log(`skipped: ${event?.subtype ?? event?.type ?? 'no Slack event'}`)
    return null
  }

  const { user, channel, channel_type: kind, ts, thread_ts: thread } = event
  const files = (event.files ?? [])
    .slice(0, maxFiles)
    .map((file) => [file.name, file.permalink].filter(Boolean).join(' '))
  const said = [toExcerpt(event.text ?? ''), ...files].filter((line) => line !== '')
  if (said.length === 0) {
    log('skipped: it says nothing')
    return null
  }
  const where = kind === 'im' ? 'in a direct message' : `in channel ${channel}${thread ? ', in a thread' : ''}`
  return {
    name: `Slack message in ${channel}`,
    // one session for each thread; a direct conversation has one session
    sessionKey: `hook:slack:${team}:${channel}${thread === undefined && kind === 'im' ? '' : `:${thread ?? ts}`}`,
    message: [
      `Slack message from user ${user} ${where}`,
      `https://slack.com/app_redirect?channel=${channel}&team=${team}`,
      '',
      ...said,
    ].join('\n'),
  }
})

function isWritten({ type, api_app_id: self, event, authorizations = [] }: SlackEvent): boolean {
  if (type !== 'event_callback' || (event?.type !== 'message' && event?.type !== 'app_mention')) return false
  if (event.edited !== undefined || (event.subtype !== undefined && !written.includes(event.subtype))) return false
  // the agent's reply is also posted as an event: an answer to it would start an endless loop
  const isBot = Boolean(event.bot_id) || event.user === 'USLACKBOT'
  const isOwnApp = event.app_id !== undefined && event.app_id === self
  const isOwnUser = authorizations.some((installed) => installed.is_bot && installed.user_id === event.user)
  return !isBot && !isOwnApp && !isOwnUser
}

function toExcerpt(text: string): string {
  const said = text.trim()
  return said.length > excerptLength ? `${said.slice(0, excerptLength).replace(halfCharacter, '').trimEnd()} […]` : said
}
