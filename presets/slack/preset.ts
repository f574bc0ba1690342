// Mentions of the app, new channels and new members become agent turns.
import { defineSignedPreset } from '../signed.ts'

// `message` events are left out: edits, joins and the messages of the app itself are among them, so an agent that answers in Slack could answer
// itself without end. transforms/slack-message.ts takes only what people write.

/** Source: https://docs.slack.dev/reference/events */
export default defineSignedPreset({
  name: 'slack',
  title: 'Mentions of the app, new channels and new members become agent turns.',
  scheme: 'slack',
  from: 'sender',
  instructions: 'Say in a few sentences what happened and what is asked. If somebody waits for an answer, suggest one.',
  events: [
    {
      event: 'mention',
      // without bots: their messages have a `bot_id` (https://docs.slack.dev/reference/events/message/bot_message)
      match: { payload: { type: 'event_callback', 'event.type': 'app_mention', 'event.bot_id': { exists: false } } },
      name: 'Slack mention',
      sessionKey: 'hook:slack:{{team_id}}:{{event.channel}}',
      message: [
        '<@{{event.user | default: "unknown"}}> mentioned the app in <#{{event.channel}}>.',
        '',
        '{{event.text | default: "(no text)" | truncate: 6000}}',
        '',
        'Message {{event.ts}}, in the thread {{event.thread_ts | default: "that it begins"}}',
        'https://slack.com/app_redirect?team={{team_id}}&channel={{event.channel}}',
      ],
    },
    {
      event: 'channel',
      match: { payload: { type: 'event_callback', 'event.type': 'channel_created' } },
      name: 'Slack channel',
      sessionKey: 'hook:slack:{{team_id}}:{{event.channel.id}}',
      message: [
        '<@{{event.channel.creator | default: "unknown"}}> created the channel #{{event.channel.name}}.',
        'https://slack.com/app_redirect?team={{team_id}}&channel={{event.channel.id}}',
      ],
    },
    {
      event: 'member',
      match: { payload: { type: 'event_callback', 'event.type': 'team_join' } },
      name: 'Slack member',
      sessionKey: 'hook:slack:{{team_id}}:{{event.user.id}}',
      message: [
        '{{event.user.real_name | default: "Somebody without a name"}} (<@{{event.user.id}}>) joined the workspace.',
        'Bot: {{event.user.is_bot | default: "unknown"}}',
      ],
    },
  ],
})
