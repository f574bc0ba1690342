// Any event of a sender that follows Standard Webhooks becomes an agent turn.
import { defineSignedPreset } from '../signed.ts'

/**
 * The events are {type, timestamp, data}. Source:
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
export default defineSignedPreset({
  name: 'generic',
  title: 'Any event of a sender that follows Standard Webhooks becomes an agent turn.',
  scheme: 'standard-webhooks',
  from: 'sender',
  instructions: 'Say in a few sentences what happened, and whether somebody should act.',
  events: [
    {
      event: '',
      match: {},
      name: '{{type | default: "Webhook" | truncate: 80}}',
      sessionKey: 'hook:generic:{{headers.webhook-id | default: "unsigned" | truncate: 300}}',
      // as JSON, because only the sender knows the fields of `data`
      message: [
        'The event {{type | default: "without a type"}}, at {{timestamp | default: "an unknown time"}}.',
        '',
        '{{data | default: "(no data)" | truncate: 8000}}',
      ],
    },
  ],
})
