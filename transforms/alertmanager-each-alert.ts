/** Each firing alert of a Prometheus group becomes an agent run in the session of that alert, up to ten, and the rest share a run; resolved alerts are left out. */
import { defineTransform } from 'hookloom'

/** The fields of a notification that are read: https://prometheus.io/docs/alerting/latest/configuration/#webhook_config */
type Notification = {
  externalURL?: string
  /** The number of alerts that the receiver's `max_alerts` left out. */
  truncatedAlerts?: number
  alerts?: Alert[]
}
type Labels = Record<string, string>
type Alert = {
  status: string
  labels: Labels
  annotations?: Labels
  startsAt: string
  generatorURL?: string
  /** A hash of the labels. It is the same in every notification of the alert. */
  fingerprint: string
}

/**
 * The maximum number of alerts with their own run. The gateway accepts thousands of results for one delivery, but far fewer model calls are enough
 * to find a common cause.
 */
const maxRuns = 10
const excerptLength = 300
/** What a cut between the two units of an emoji leaves. */
const halfCharacter = /[\ud800-\udbff]$/

export default defineTransform<Notification>(({ payload }, { log }) => {
  const { externalURL, truncatedAlerts = 0, alerts = [] } = payload
  const firing = alerts.filter(({ status }) => status === 'firing')
  if (firing.length === 0) {
    log(`skipped: none of ${alerts.length} alerts is firing`)
    return null
  }

  const shown = firing.slice(0, maxRuns)
  const hidden = firing.length - shown.length + truncatedAlerts
  const rest = {
    name: 'Prometheus alerts',
    sessionKey: 'hook:alertmanager:more',
    message: [`${hidden} more alerts of a group are not listed one by one.`, externalURL].filter(Boolean).join('\n'),
  }
  // each result is one action, with its own job, session and reply
  return [...shown.map(toRun), ...(hidden > 0 ? [rest] : [])]
})

function toRun({ labels, annotations = {}, startsAt, generatorURL, fingerprint }: Alert) {
  const { alertname = 'without a name', ...others } = labels
  const facts = Object.entries(others).map(([name, value]) => `${name}=${value}`)
  const texts = [annotations['summary'], annotations['description']].map((text) => toExcerpt(text ?? ''))
  const lines = [facts.join(', '), ...texts, annotations['runbook_url'], generatorURL]
  return {
    name: `Prometheus alert ${alertname}`,
    sessionKey: `hook:alertmanager:${fingerprint}`,
    message: [`Prometheus alert ${alertname} is firing since ${startsAt}`, ...lines].filter(Boolean).join('\n'),
  }
}

function toExcerpt(text: string): string {
  const line = text.trim().replaceAll(/\s+/g, ' ')
  return line.length > excerptLength ? `${line.slice(0, excerptLength).replace(halfCharacter, '').trimEnd()} […]` : line
}
