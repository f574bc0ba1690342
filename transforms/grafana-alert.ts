/** One group of Grafana alerts, firing or resolved, becomes one message to the agent that lists the first ten of them. */
import { defineTransform } from 'hookloom'

/** What is read of a notification: https://grafana.com/docs/grafana/latest/alerting/configure-notifications/manage-contact-points/integrations/webhook-notifier/ */
type Notification = {
  status?: string
  orgId?: number
  groupKey?: string
  externalURL?: string
  commonLabels?: Labels
  /** Alerts that the contact point's limit left out. */
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
  /** Null when there is no data, as a whole or of one query. */
  values?: Record<string, number | null> | null
  /** Links are empty where there is nothing to link to. */
  generatorURL?: string
  dashboardURL?: string
  panelURL?: string
  silenceURL?: string
}

const mostAlerts = 10
const excerptLength = 300

export default defineTransform<Notification>(async ({ payload }, { log }) => {
  const { status, orgId = 1, groupKey, externalURL, commonLabels = {}, truncatedAlerts = 0, alerts = [] } = payload
  if (status === undefined || groupKey === undefined || alerts.length === 0) {
    log('skipped: no alerts')
    return null
  }

  const { alertname, ...common } = commonLabels
  const title = alertname === undefined ? 'Grafana alerts' : `Grafana alert ${alertname}`
  const firing = alerts.filter((alert) => alert.status !== 'resolved')
  const resolved = alerts.filter((alert) => alert.status === 'resolved')
  const shown = [...firing, ...resolved].slice(0, mostAlerts)
  const hidden = alerts.length + truncatedAlerts - shown.length
  return {
    kind: 'agent',
    name: `${title} ${status}`,
    sessionKey: `hook:grafana:${orgId}:${await toDigest(groupKey)}`,
    message: [
      `${title} ${status}: ${firing.length} firing, ${resolved.length} resolved`,
      ...toPairs(common),
      ...(externalURL ? [externalURL] : []),
      '',
      ...shown.flatMap((alert) => toAlert(alert, commonLabels)),
      ...(hidden > 0 ? [`- and ${hidden} more`] : []),
    ].join('\n'),
  }
})

function toAlert(alert: Alert, common: Labels): string[] {
  const { status, labels, annotations = {}, values, silenceURL } = alert
  const own = Object.fromEntries(Object.entries(labels).filter(([name]) => !Object.hasOwn(common, name)))
  const when = status === 'resolved' ? `resolved at ${alert.endsAt}` : `firing since ${alert.startsAt}`
  const texts = [annotations['summary'], annotations['description']].map((text) => toExcerpt(text ?? ''))
  // `||`: links are empty, not missing
  const link = alert.panelURL || alert.dashboardURL || alert.generatorURL
  const silence = status !== 'resolved' && silenceURL && `silence it: ${silenceURL}`
  const details = [...texts, annotations['runbook_url'], link, silence].filter(Boolean)
  return [
    `- ${[when, ...toPairs(own), ...toPairs(values ?? {})].join(' · ')}`,
    ...details.map((detail) => `  ${detail}`),
  ]
}

/** None, or one line of them. */
function toPairs(values: Record<string, string | number | null>): string[] {
  const named = Object.entries(values).flatMap(([name, value]) => (value === null ? [] : [`${name}=${value}`]))
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
