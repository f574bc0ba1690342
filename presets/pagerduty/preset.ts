// Incidents that are triggered, escalated, acknowledged or resolved become agent turns.
import { defineSignedPreset } from '../signed.ts'

/** Source: https://developer.pagerduty.com/docs/webhooks-overview */
export default defineSignedPreset({
  name: 'pagerduty',
  title: 'Incidents that are triggered, escalated, acknowledged or resolved become agent turns.',
  scheme: 'pagerduty',
  from: 'sender',
  instructions: 'Say in a few sentences what happened to the incident, how urgent it is, and who works on it.',
  events: [
    {
      event: 'incident',
      match: {
        payload: {
          'event.event_type': [
            'incident.triggered',
            'incident.escalated',
            'incident.acknowledged',
            'incident.reopened',
            'incident.resolved',
          ],
        },
      },
      name: 'PagerDuty incident',
      sessionKey: 'hook:pagerduty:{{payload.event.data.id}}',
      message: [
        '{{payload.event.event_type}} #{{payload.event.data.number}}: {{payload.event.data.title | default: "(no title)"}}',
        '{{payload.event.data.html_url | default: "(no link)"}}',
        'Service: {{payload.event.data.service.summary | default: "unknown"}}; urgency: {{payload.event.data.urgency | default: "not given"}}; priority: {{payload.event.data.priority.summary | default: "none"}}',
        'Assigned to: {{payload.event.data.assignees[0].summary | default: "nobody"}}',
        'By: {{payload.event.agent.summary | default: "PagerDuty itself"}}, at {{payload.event.occurred_at | default: "an unknown time"}}',
      ],
    },
    {
      event: 'note',
      match: { payload: { 'event.event_type': 'incident.annotated' } },
      name: 'PagerDuty note',
      sessionKey: 'hook:pagerduty:{{payload.event.data.incident.id | default: "notes"}}',
      message: [
        '{{payload.event.agent.summary | default: "Somebody"}} wrote a note on {{payload.event.data.incident.summary | default: "an incident"}}',
        '{{payload.event.data.incident.html_url | default: "(no link)"}}',
        '',
        '{{payload.event.data.content | default: "(no text)" | truncate: 4000}}',
      ],
    },
  ],
})
