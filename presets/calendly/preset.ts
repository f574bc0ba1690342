// Booked, cancelled and missed appointments become agent turns.
import { defineSignedPreset } from '../signed.ts'

const who = '{{payload.payload.name | default: "Somebody"}} <{{payload.payload.email | default: "no e-mail"}}>'
const what = '{{payload.payload.scheduled_event.name | default: "an appointment"}}'
const when = [
  'When: {{payload.payload.scheduled_event.start_time | default: "see the appointment"}} to {{payload.payload.scheduled_event.end_time | default: "its end"}} (their time zone: {{payload.payload.timezone | default: "not given"}})',
  'Where: {{payload.payload.scheduled_event.location.join_url | default: "see the appointment"}}',
]
const event = 'Appointment: {{payload.payload.event | default: "no link"}}'
const sessionKey = 'hook:calendly:{{payload.payload.email | default: "invitees" | truncate: 300}}'

/** Source: the webhook payload in https://developer.calendly.com/api-docs */
export default defineSignedPreset({
  name: 'calendly',
  title: 'Booked, cancelled and missed appointments become agent turns.',
  scheme: 'calendly',
  from: 'operator',
  instructions: 'Say in one or two sentences who booked, cancelled or missed which appointment, and when it is.',
  events: [
    {
      event: 'booked',
      match: { payload: { event: 'invitee.created' } },
      name: 'Calendly booking',
      sessionKey,
      message: [
        `${who} booked ${what}.`,
        ...when,
        'Their answer: {{payload.payload.questions_and_answers[0].answer | default: "none" | truncate: 2000}}',
        'Moved from: {{payload.payload.old_invitee | default: "nothing, it is new"}}',
        'To move it: {{payload.payload.reschedule_url | default: "no link"}}',
        'To cancel it: {{payload.payload.cancel_url | default: "no link"}}',
        event,
      ],
    },
    {
      event: 'cancelled',
      // without moved appointments: Calendly also posts a moved appointment as a new booking
      match: { payload: { event: 'invitee.canceled', 'payload.rescheduled': false } },
      name: 'Calendly cancellation',
      sessionKey,
      message: [
        `${what} with ${who} is cancelled, by {{payload.payload.cancellation.canceled_by | default: "somebody"}} ({{payload.payload.cancellation.canceler_type | default: "unknown"}}).`,
        'Reason: {{payload.payload.cancellation.reason | default: "not given" | truncate: 2000}}',
        ...when,
        event,
      ],
    },
    {
      event: 'missed',
      match: { payload: { event: 'invitee_no_show.created' } },
      name: 'Calendly no-show',
      sessionKey,
      message: [`${who} did not come to ${what}.`, ...when, event],
    },
  ],
})
