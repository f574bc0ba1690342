/** A Sentry issue that is new or back, or an issue alert that fired, becomes a message to the agent; the rest is skipped. */
import { defineTransform } from 'hookloom'

/**
 * What is read of the resources `issue` and `event_alert`:
 * https://docs.sentry.io/integrations/integration-platform/webhooks/issues/ and …/issue-alerts/
 */
type SentryEvent = {
  action?: string
  data?: {
    issue?: {
      id: string
      shortId?: string
      title: string
      culprit?: string | null
      level?: string
      priority?: string | null
      substatus?: string | null
      count?: string
      userCount?: number
      web_url?: string
      permalink?: string | null
      project?: { slug: string }
    }
    event?: {
      issue_id?: string
      event_id: string
      title: string
      culprit?: string | null
      level?: string
      web_url?: string
      tags?: [name: string, value: string | null][]
    }
    triggered_rule?: string
  }
}

const returned = new Map([
  ['regressed', 'is back after it was resolved'],
  ['escalating', 'is escalating'],
])

export default defineTransform<SentryEvent>(({ payload }, { log }) => {
  const { action, data = {} } = payload
  const { issue, event, triggered_rule: rule } = data
  if (issue !== undefined && (action === 'created' || action === 'unresolved')) {
    const name = issue.shortId ?? issue.id
    const what = action === 'created' ? 'is new' : (returned.get(issue.substatus ?? '') ?? 'is unresolved again')
    return {
      kind: 'agent',
      name: `Sentry issue ${name}`,
      // the id that an alert about this issue carries too: both land in one session
      sessionKey: `hook:sentry:${issue.id}`,
      message: toLines([
        `Sentry issue ${name} ${what}: ${issue.title}`,
        toFacts([
          toPlace(issue.level, issue.culprit),
          issue.project && `project ${issue.project.slug}`,
          issue.priority && `priority ${issue.priority}`,
          issue.count && `events ${issue.count}`,
          issue.userCount !== undefined && `users ${issue.userCount}`,
        ]),
        issue.web_url ?? issue.permalink,
      ]),
    }
  }
  if (event !== undefined && action === 'triggered') {
    const tag = (name: string) => event.tags?.find(([key]) => key === name)?.[1]
    return {
      kind: 'agent',
      name: rule ? `Sentry alert ${rule}` : 'Sentry alert',
      sessionKey: `hook:sentry:${event.issue_id ?? event.event_id}`,
      message: toLines([
        `Sentry alert${rule ? ` "${rule}"` : ''} fired: ${event.title}`,
        toFacts([
          toPlace(event.level, event.culprit),
          tag('environment') && `environment ${tag('environment')}`,
          tag('release') && `release ${tag('release')}`,
        ]),
        event.web_url,
      ]),
    }
  }
  log(`skipped: ${action ?? 'no Sentry event'}`)
  return null
})

type Maybe = string | false | null | undefined

const toFacts = (facts: Maybe[]) => facts.filter(Boolean).join(' · ')
const toLines = (lines: Maybe[]) => lines.filter(Boolean).join('\n')

function toPlace(level: string | undefined, culprit: string | null | undefined): string {
  return [level, culprit].filter(Boolean).join(' in ')
}
