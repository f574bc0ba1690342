// A group of Prometheus alerts that fires or is resolved becomes one agent turn.
import { defineSignedPreset } from '../signed.ts'

const group = 'hook:alertmanager:{{groupKey | default: "group" | truncate: 400}}'
const lines = [
  'In its group: {{alerts.length}}, those that are over included. The first of them, {{alerts[0].labels.alertname | default: "without a name"}}, is {{alerts[0].status | default: "of unknown status"}}.',
  '{{alerts[0].annotations.summary | default: "(no summary)" | truncate: 1000}}',
  '{{alerts[0].annotations.description | default: "(no description)" | truncate: 4000}}',
  'Instance: {{alerts[0].labels.instance | default: "not given"}}; severity: {{alerts[0].labels.severity | default: "not given"}}',
  'Since: {{alerts[0].startsAt | default: "unknown"}}',
  'Graph: {{alerts[0].generatorURL | default: "not given"}}',
  'Runbook: {{alerts[0].annotations.runbook_url | default: "none"}}',
  'Alertmanager: {{externalURL | default: "not given"}}',
]
// the name of the rule, not of the first alert: in a firing group, the first alert may be resolved
const alert = '{{commonLabels.alertname | default: "A group of alerts"}}'
// as JSON: a template has no loops, and an agent can read JSON
const all = ['', 'All of them, as JSON:', '{{alerts | truncate: 8000}}']

/** Source: https://prometheus.io/docs/alerting/latest/configuration/#webhook_config */
export default defineSignedPreset({
  name: 'alertmanager',
  title: 'A group of Prometheus alerts that fires or is resolved becomes one agent turn.',
  scheme: 'alertmanager',
  from: 'operator',
  instructions:
    'Say in a few sentences which alerts fire or are resolved, how serious it is, and what to look at first.',
  events: [
    {
      event: 'firing',
      match: { payload: { status: 'firing' } },
      name: 'Prometheus alert',
      sessionKey: group,
      message: [`${alert} is firing.`, ...lines, ...all],
    },
    {
      event: 'resolved',
      match: { payload: { status: 'resolved' } },
      name: 'Prometheus alert',
      sessionKey: group,
      message: [`${alert} is resolved.`, ...lines, 'Ended: {{alerts[0].endsAt | default: "unknown"}}', ...all],
    },
  ],
})
