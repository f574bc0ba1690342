// New and returning issues, fired issue alerts and metric alerts become agent turns.
import { defineSignedPreset } from '../signed.ts'

const issueLines = [
  '{{data.issue.web_url | default: "(no link)"}}',
  'Project: {{data.issue.project.slug | default: "unknown"}}; level: {{data.issue.level | default: "unknown"}}; priority: {{data.issue.priority | default: "none"}}',
  'Where: {{data.issue.culprit | default: "unknown"}}',
  'Seen {{data.issue.count | default: "an unknown number of"}} times by {{data.issue.userCount | default: "an unknown number of"}} users, first at {{data.issue.firstSeen | default: "an unknown time"}}',
]
const issue = '{{data.issue.shortId | default: "without an id"}} {{data.issue.title}}'
// a condition on the level of the issue, which only issues have: errors and comments have the same actions
const level = ['fatal', 'error', 'warning', 'info', 'debug', 'sample']

/** Source: https://docs.sentry.io/organization/integrations/integration-platform/webhooks/ */
export default defineSignedPreset({
  name: 'sentry',
  title: 'New and returning issues, fired issue alerts and metric alerts become agent turns.',
  scheme: 'sentry',
  from: 'sender',
  instructions: 'Say in a few sentences what the error is, where it occurs, and what its likely cause is.',
  events: [
    {
      event: 'issue',
      match: { payload: { action: 'created', 'data.issue.level': level } },
      name: 'Sentry issue',
      sessionKey: 'hook:sentry:{{data.issue.id}}',
      message: [`New issue: ${issue}`, ...issueLines],
    },
    {
      event: 'regression',
      match: { payload: { action: 'unresolved', 'data.issue.level': level } },
      name: 'Sentry issue',
      sessionKey: 'hook:sentry:{{data.issue.id}}',
      message: [
        `Unresolved again: ${issue} ({{data.issue.substatus | default: "for a reason that is not given"}})`,
        ...issueLines,
      ],
    },
    {
      event: 'alert',
      match: { event: 'event_alert', payload: { action: 'triggered' } },
      name: 'Sentry alert',
      sessionKey: 'hook:sentry:{{data.event.issue_id | default: "alerts"}}',
      message: [
        'The alert {{data.triggered_rule | default: "of an unknown rule"}} fired: {{data.event.title | default: "(no title)"}}',
        '{{data.event.web_url | default: "(no link)"}}',
        'Level: {{data.event.level | default: "unknown"}}; release: {{data.event.release | default: "none"}}; environment: {{data.event.environment | default: "not given"}}',
        'Where: {{data.event.culprit | default: "unknown"}}',
      ],
    },
    {
      event: 'metric',
      match: { event: 'metric_alert', payload: { action: ['critical', 'warning', 'resolved'] } },
      name: 'Sentry metric alert',
      sessionKey: 'hook:sentry:metric-{{data.metric_alert.id}}',
      message: [
        '{{data.description_title | default: "A metric alert"}} is {{action}}.',
        '{{data.web_url | default: "(no link)"}}',
        '',
        '{{data.description_text | default: "(no description)" | truncate: 4000}}',
      ],
    },
  ],
})
