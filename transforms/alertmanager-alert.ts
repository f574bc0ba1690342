/** One group of Prometheus alerts, firing or resolved, becomes one message to the agent that lists the first ten of them. */
import { defineTransform } from 'hookloom'

/** What is read of a notification: https://prometheus.io/docs/alerting/latest/configuration/#webhook_config */
type Notification = {
  status?: string
  groupKey?: string
  externalURL?: string
  commonLabels?: Labels
  /** Alerts that the receiver's `max_alerts` left out. */
  truncatedAlerts?: number
  alerts?: Alert[]
}
type Labels = Record<string, string>
type Alert = {
  status: string
  labels: Labels
  annotations?: Labels
  startsAt: string
  endsAt: string
  generatorURL?: string
}

const mostAlerts = 10
const excerptLength = 300

export default defineTransform<Notification>(async ({ payload }, { log }) => {
  const { status, groupKey, externalURL, commonLabels = {}, truncatedAlerts = 0, alerts = [] } = payload
  if (status === undefined || groupKey === undefined || alerts.length === 0) {
    log('skipped: no alerts')
    return null
  }

  const { alertname, ...common } = commonLabels
  const title = alertname === undefined ? 'Prometheus alerts' : `Prometheus alert ${alertname}`
  const firing = alerts.filter((alert) => alert.status !== 'resolved')
  const resolved = alerts.filter((alert) => alert.status === 'resolved')
  const shown = [...firing, ...resolved].slice(0, mostAlerts)
  const hidden = alerts.length + truncatedAlerts - shown.length
  return {
    kind: 'agent',
    name: `${title} ${status}`,
    sessionKey: `hook:alertmanager:${await toDigest(groupKey)}`,
    message: [
      `${title} ${status}: ${firing.length} firing, ${resolved.length} resolved`,
      ...toLabels(common),
      ...(externalURL ? [externalURL] : []),
      '',
      ...shown.flatMap((alert) => toAlert(alert, commonLabels)),
      ...(hidden > 0 ? [`- and ${hidden} more`] : []),
    ].join('\n'),
  }
})

function toAlert(alert: Alert, common: Labels): string[] {
  const { annotations = {}, generatorURL } = alert
  const own = Object.fromEntries(Object.entries(alert.labels).filter(([name]) => !Object.hasOwn(common, name)))
  const when = alert.status === 'resolved' ? `resolved at ${alert.endsAt}` : `firing since ${alert.startsAt}`
  const texts = [annotations['summary'], annotations['description']].map((text) => toExcerpt(text ?? ''))
  const details = [...texts, annotations['runbook_url'], generatorURL].filter(Boolean)
  return [`- ${[when, ...toLabels(own)].join(' · ')}`, ...details.map((detail) => `  ${detail}`)]
}

/** None, or one line of them. */
function toLabels(labels: Labels): string[] {
  const named = Object.entries(labels).map(([name, value]) => `${name}=${value}`)
  return named.length > 0 ? [named.join(', ')] : []
}

function toExcerpt(text: string): string {
  const line = text.trim().replaceAll(/\s+/g, ' ')
  return line.length > excerptLength ? `${line.slice(0, excerptLength).trimEnd()} […]` : line
}

/** A group's key holds its labels and may be of any length; a session's key may not. */
async function toDigest(groupKey: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(groupKey))
  return Buffer.from(digest).toString('hex').slice(0, 32)
}
