// Messages, calls, missed calls and messages that did not arrive become agent turns.
import { z } from 'zod'
import { definePreset } from '../../src/define.ts'
import { type EventMapping, signedOptions, buildParts, toVerifySettings } from '../signed.ts'

const TwilioOptions = z
  .strictObject({
    ...signedOptions,
    /** The URL that Twilio calls, exactly as in its console: Twilio signs the URL. */
    publicUrl: z
      .string()
      .regex(/^https?:\/\/[^\s/?#]+/i, 'must be an http or https URL')
      .optional(),
  })
  .refine(({ secret, secrets, publicUrl }) => publicUrl !== undefined || (secret === undefined && !secrets), {
    path: ['publicUrl'],
    message: 'must be the URL that Twilio calls, because the URL is part of the signature',
  })
type TwilioOptions = z.infer<typeof TwilioOptions>

const from = '{{From | default: "an unknown number"}}'
const sessionKey = 'hook:twilio:{{From | default: "unknown" | truncate: 300}}'

/** Sources: https://www.twilio.com/docs/messaging/guides/webhook-request and https://www.twilio.com/docs/voice/twiml */
const events: readonly EventMapping[] = [
  {
    event: 'message',
    match: { payload: { SmsStatus: 'received' } },
    name: 'Twilio message',
    sessionKey,
    message: [
      `Message from ${from} to {{To | default: "an unknown number"}}.`,
      '',
      '{{Body | default: "(no text)" | truncate: 6000}}',
      '',
      'Attachments: {{NumMedia | default: "0"}}; the first: {{MediaUrl0 | default: "none"}}',
      'Message id: {{MessageSid | default: "unknown"}}',
    ],
  },
  {
    event: 'call',
    match: { payload: { CallStatus: 'ringing', Direction: 'inbound' } },
    name: 'Twilio call',
    sessionKey,
    message: [
      `${from} is calling {{To | default: "an unknown number"}}.`,
      'Caller’s place: {{FromCity | default: "unknown"}}, {{FromCountry | default: "unknown"}}',
      'Call id: {{CallSid | default: "unknown"}}',
    ],
  },
  {
    event: 'missed',
    match: { payload: { CallStatus: ['no-answer', 'busy', 'failed'] } },
    name: 'Twilio call',
    sessionKey,
    message: [
      `The call from ${from} to {{To | default: "an unknown number"}} came to nothing: {{CallStatus}}.`,
      'Direction: {{Direction | default: "unknown"}}; at {{Timestamp | default: "an unknown time"}}',
      'Call id: {{CallSid | default: "unknown"}}',
    ],
  },
  {
    event: 'undelivered',
    match: { payload: { MessageStatus: ['failed', 'undelivered'] } },
    name: 'Twilio message',
    sessionKey: 'hook:twilio:{{To | default: "unknown" | truncate: 300}}',
    message: [
      'A message to {{To | default: "an unknown number"}} did not arrive: {{MessageStatus}}.',
      'Error: {{ErrorCode | default: "not given"}}, see https://www.twilio.com/docs/api/errors',
      'Message id: {{MessageSid | default: "unknown"}}',
    ],
  },
]

const instructions =
  'Say in a few sentences who called or wrote, and about what. If somebody waits for an answer, suggest one.'

export default definePreset<TwilioOptions>({
  name: 'twilio',
  title: 'Messages, calls, missed calls and messages that did not arrive become agent turns.',
  options: TwilioOptions,
  setup: {
    key: { option: 'secret', from: 'sender' },
    options: { publicUrl: 'https://gateway.example/hooks/twilio' },
  },
  build: ({ publicUrl, ...own }) =>
    buildParts('twilio', { own, verify: toVerifySettings('twilio', own, { publicUrl }), instructions, events }),
})
