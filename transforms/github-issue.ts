/** A GitHub issue that was opened, or opened again, becomes a message to the agent; every other action is skipped. */
import { defineTransform } from 'hookloom'

/** What is read of an `issues` event: https://docs.github.com/webhooks/webhook-events-and-payloads#issues */
type IssuesEvent = {
  action?: string
  issue?: {
    number: number
    title: string
    html_url: string
    body?: string | null
    /** Null when the account is gone. */
    user: { login: string } | null
    labels?: { name: string }[]
    assignees?: { login: string }[]
  }
  repository?: { full_name: string }
}

const happened: Record<string, string> = { opened: 'was opened', reopened: 'was opened again' }
const excerptLength = 1500

export default defineTransform<IssuesEvent>(({ payload }, { log }) => {
  const { action = '', issue, repository } = payload
  const what = Object.hasOwn(happened, action) ? happened[action] : undefined
  if (issue === undefined || repository === undefined || what === undefined) {
    log(`skipped: ${action || 'no issues event'}`)
    return null
  }

  const name = `${repository.full_name}#${issue.number}`
  const labels = (issue.labels ?? []).map((label) => label.name)
  const assignees = (issue.assignees ?? []).map((assignee) => assignee.login)
  return {
    kind: 'agent',
    name: `Issue ${name}`,
    // one session an issue: its runs wait for one another
    sessionKey: `hook:github:issue:${name}`,
    message: [
      `Issue ${name} ${what}: ${issue.title}`,
      [
        `by ${issue.user?.login ?? 'ghost'}`,
        ...(labels.length > 0 ? [`labels ${labels.join(', ')}`] : []),
        ...(assignees.length > 0 ? [`assigned to ${assignees.join(', ')}`] : []),
      ].join(' · '),
      issue.html_url,
      '',
      toExcerpt(issue.body ?? ''),
    ].join('\n'),
  }
})

function toExcerpt(body: string): string {
  const text = body.replaceAll('\r\n', '\n').trim()
  if (text === '') return 'It has no description.'
  return text.length > excerptLength ? `${text.slice(0, excerptLength).trimEnd()} […]` : text
}
