/** A GitHub pull request that is ready for review becomes an agent run; drafts, unfinished work and other actions are skipped. */
import { defineTransform } from 'hookloom'

/** The fields of a `pull_request` event that are read: https://docs.github.com/webhooks/webhook-events-and-payloads#pull_request */
type PullRequestEvent = {
  action?: string
  number?: number
  pull_request?: {
    title: string
    html_url: string
    body: string | null
    draft?: boolean
    /** Null if the account was deleted. */
    user: { login: string } | null
    head: { ref: string; label?: string | null }
    base: { ref: string }
    changed_files?: number
    additions?: number
    deletions?: number
  }
  repository?: { full_name: string }
}

const happened: Record<string, string> = {
  opened: 'was opened',
  reopened: 'was opened again',
  ready_for_review: 'is ready for review',
  synchronize: 'has new commits',
}
/** People also mark unfinished work in the title: "WIP: …", "[WIP] …". */
const unfinished = /^\W*(wip|work in progress)\b/i
const excerptLength = 1500
/** What a cut between the two units of an emoji leaves. */
const halfCharacter = /[\ud800-\udbff]$/

export default defineTransform<PullRequestEvent>(({ payload }, { log }) => {
  const { action = '', number, pull_request: pull, repository } = payload
  const what = Object.hasOwn(happened, action) ? happened[action] : undefined
  if (pull === undefined || repository === undefined || number === undefined || what === undefined) {
    log(`skipped: ${action || 'no pull request event'}`)
    return null
  }
  // the "match" of a mapping could test both fields too, but it would not log which pull request was skipped
  if (pull.draft || unfinished.test(pull.title)) {
    log(`skipped: #${number} is unfinished`)
    return null
  }

  const name = `${repository.full_name}#${number}`
  const files = pull.changed_files
  const size =
    files === undefined
      ? ''
      : ` · ${files} ${files === 1 ? 'file' : 'files'}, +${pull.additions ?? 0} −${pull.deletions ?? 0}`
  return {
    name: `Pull request ${name}`,
    // one session for each pull request: its runs keep their order and never overlap
    sessionKey: `hook:pr:${name}`,
    message: [
      `Pull request ${name} ${what}: ${pull.title}`,
      `by ${pull.user?.login ?? 'ghost'} · ${pull.head.label ?? pull.head.ref} → ${pull.base.ref}${size}`,
      pull.html_url,
      '',
      toExcerpt(pull.body ?? ''),
    ].join('\n'),
  }
})

function toExcerpt(body: string): string {
  const text = body.replaceAll('\r\n', '\n').trim()
  if (text === '') return 'It has no description.'
  return text.length > excerptLength ? `${text.slice(0, excerptLength).replace(halfCharacter, '').trimEnd()} […]` : text
}
