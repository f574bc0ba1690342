// A group of Grafana alerts that fires or is resolved becomes one agent turn.
import { z } from 'zod'
import { definePreset } from '../../src/define.ts'
import { type EventMapping, signedOptions, buildParts, toVerifySettings } from '../signed.ts'

const headerName = z.string().regex(/^[\w-]+$/, 'must be the name of a header')

const GrafanaOptions = z.strictObject({
  ...signedOptions,
  /** The field "Header" of the HMAC signature in the contact point. Default: X-Grafana-Alerting-Signature. */
  header: headerName.optional(),
  /** The field "Timestamp header" of the contact point. If it is set, Grafana signs the time too, and the time must be current. */
  timestampHeader: headerName.optional(),
})
type GrafanaOptions = z.infer<typeof GrafanaOptions>

const group = 'hook:grafana:{{groupKey | default: "group" | truncate: 400}}'
const lines = [
  'In its group: {{alerts.length}}, those that are over included. The first of them, {{alerts[0].labels.alertname | default: "without a name"}}, is {{alerts[0].status | default: "of unknown status"}}.',
  '{{alerts[0].annotations.summary | default: "(no summary)" | truncate: 1000}}',
  '{{alerts[0].annotations.description | default: "(no description)" | truncate: 4000}}',
  'Values: {{alerts[0].valueString | default: "not given" | truncate: 1000}}',
  'Since: {{alerts[0].startsAt | default: "unknown"}}',
  'Rule: {{alerts[0].generatorURL | default: "not given"}}',
  'Panel: {{alerts[0].panelURL | default: "none"}}',
  'Silence it: {{alerts[0].silenceURL | default: "no link"}}',
]
// the texts that Grafana itself writes: a template has no loops, and the first alert of a firing group may be resolved
const title = (status: string) => `{{title | default: "A group of alerts is ${status}." | truncate: 500}}`
const all = ['', '{{payload.message | default: "(no message)" | truncate: 8000}}']

/** Source: https://grafana.com/docs/grafana/latest/alerting/configure-notifications/manage-contact-points/integrations/webhook-notifier/ */
const events: readonly EventMapping[] = [
  {
    event: 'firing',
    match: { payload: { status: 'firing' } },
    name: 'Grafana alert',
    sessionKey: group,
    message: [title('firing'), ...lines, ...all],
  },
  {
    event: 'resolved',
    match: { payload: { status: 'resolved' } },
    name: 'Grafana alert',
    sessionKey: group,
    message: [title('resolved'), ...lines, 'Ended: {{alerts[0].endsAt | default: "unknown"}}', ...all],
  },
]

const instructions =
  'Say in a few sentences which alerts fire or are resolved, how serious it is, and what to look at first.'

export default definePreset<GrafanaOptions>({
  name: 'grafana',
  title: 'A group of Grafana alerts that fires or is resolved becomes one agent turn.',
  options: GrafanaOptions,
  setup: { key: { option: 'secret', from: 'operator' } },
  build({ header, timestampHeader, ...own }) {
    const timestamp = timestampHeader === undefined ? undefined : { header: timestampHeader }
    return buildParts('grafana', {
      own,
      verify: toVerifySettings('grafana', own, { header, timestamp }),
      instructions,
      events,
    })
  },
})
