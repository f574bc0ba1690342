/** A Linear issue that is new, or that a person moved or assigned, becomes a message to the agent; the rest is skipped. */
import { defineTransform } from 'hookloom'

/** What is read of an `Issue` event: https://linear.app/developers/webhooks */
type IssueEvent = {
  action?: string
  type?: string
  url?: string
  actor?: { name?: string; type?: string } | null
  data?: {
    id: string
    identifier?: string
    title?: string
    description?: string | null
    priorityLabel?: string
    dueDate?: string | null
    state?: { name: string }
    assigneeId?: string | null
    assignee?: { name: string } | null
    project?: { name: string } | null
    labels?: { name: string }[]
  }
  /** The former values of what changed. */
  updatedFrom?: Record<string, unknown> | null
}

const excerptLength = 1500

export default defineTransform<IssueEvent>(({ payload }, { log }) => {
  const { action, type, url, actor, data: issue } = payload
  const what = toWhat(payload)
  if (type !== 'Issue' || issue === undefined || what === '') {
    log(`skipped: ${action ?? 'no'} ${type ?? 'Linear event'}`)
    return null
  }

  const name = issue.identifier ?? issue.id
  const facts = [
    actor?.name && `by ${actor.name}`,
    issue.state && `state ${issue.state.name}`,
    issue.priorityLabel && `priority ${issue.priorityLabel}`,
    issue.assignee && `assigned to ${issue.assignee.name}`,
    issue.project && `project ${issue.project.name}`,
    issue.labels?.length && `labels ${issue.labels.map((label) => label.name).join(', ')}`,
    issue.dueDate && `due ${issue.dueDate}`,
  ].filter(Boolean)
  const description = issue.description?.trim() ?? ''
  return {
    kind: 'agent',
    name: `Linear issue ${name}`,
    // not the identifier: it changes when the issue moves to another team
    sessionKey: `hook:linear:${issue.id}`,
    message: [
      `Linear issue ${name} ${what}${issue.title ? `: ${issue.title}` : ''}`,
      ...(facts.length > 0 ? [facts.join(' · ')] : []),
      ...(url ? [url] : []),
      ...(description === '' ? [] : ['', toExcerpt(description)]),
    ].join('\n'),
  }
})

/** Empty: nothing that wants an agent. */
function toWhat({ action, actor, data, updatedFrom }: IssueEvent): string {
  if (action === 'create') return 'was created'
  // what an app changed is its own doing, and may be the agent's: answering it could go round for ever
  const byApp = actor?.type !== undefined && actor.type !== 'user'
  if (action !== 'update' || byApp) return ''
  const changed = (field: string) => Object.hasOwn(updatedFrom ?? {}, field)
  const assigned = data?.assigneeId ? 'was assigned to another person' : 'has no assignee any more'
  return [
    ...(changed('stateId') ? [data?.state ? `was moved to ${data.state.name}` : 'was moved to another state'] : []),
    ...(changed('assigneeId') ? [data?.assignee ? `was assigned to ${data.assignee.name}` : assigned] : []),
  ].join(' and ')
}

function toExcerpt(text: string): string {
  return text.length > excerptLength ? `${text.slice(0, excerptLength).trimEnd()} […]` : text
}
