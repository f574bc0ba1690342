// Reads from a request of GitHub, GitLab or Linear where its event happened, so that a reply can go there, and whether its text is a comment
// that Hookloom posted. These channels have the same names as their senders.
import type { EventPlace } from '../model/action.ts'
import { isOwnComment, isOwnCommentId } from '../model/comment.ts'
import type { Delivery } from '../model/delivery.ts'
import type { SentValue } from '../base/json.ts'
import { isNumber } from '../base/sent-number.ts'
import { readPayload } from '../model/body.ts'
import { readPath } from './path.ts'

type Forge = {
  /** The issue, pull request or merge request, in the form of a recipient of the channel. */
  readonly findRecipient: (read: Reader) => string | undefined
  /** The commit, in the form of the channel. */
  readonly findCommit: (read: Reader) => string | undefined
  /**
   * Bytes that occur in every request about a comment of Hookloom, whatever the encoding. A request without them is not parsed, because `isOwn`
   * cannot be true. Undefined: all are parsed.
   */
  readonly mark?: Buffer
  readonly isOwn: (read: Reader) => boolean
}

/** The text or the number at the first of the paths that has one. */
type Reader = (...paths: readonly string[]) => string | undefined

const noCommit = /^0*$/
/** A part of the marker that each comment of Hookloom has at GitHub and GitLab. */
const mark = Buffer.from('hookloom')

const forges: Readonly<Record<EventPlace['channel'], Forge>> = {
  // https://docs.github.com/en/webhooks/webhook-events-and-payloads
  github: {
    findRecipient: (read) => join(read('repository.full_name'), '#', read('issue.number', 'pull_request.number')),
    findCommit: (read) =>
      join(
        read('repository.full_name'),
        '@',
        read('pull_request.head.sha', 'workflow_run.head_sha', 'check_run.head_sha', 'check_suite.head_sha', 'after'),
      ),
    mark,
    isOwn: (read) => isOwnComment(read('comment.body') ?? ''),
  },
  // https://docs.gitlab.com/user/project/integrations/webhook_events/
  gitlab: {
    findRecipient(read) {
      // a reply to an internal note would be a public note
      if (read('event_type') === 'confidential_note') return undefined
      const project = read('project.path_with_namespace')
      const kind = read('object_kind')
      const own = read('object_attributes.iid')
      const request = read('merge_request.iid') ?? (kind === 'merge_request' ? own : undefined)
      if (request !== undefined) return join(project, '!', request)
      return join(project, '#', read('issue.iid') ?? (kind === 'issue' ? own : undefined))
    },
    findCommit: (read) =>
      join(
        read('project.path_with_namespace'),
        '@',
        read(
          'object_attributes.last_commit.id',
          'merge_request.last_commit.id',
          'object_attributes.sha',
          'checkout_sha',
          'after',
          'commit.id',
        ),
      ),
    mark,
    isOwn: (read) => isOwnComment(read('object_attributes.note') ?? ''),
  },
  // https://linear.app/developers/webhooks
  linear: {
    findRecipient: (read) =>
      read('type') === 'Issue'
        ? read('data.id')
        : read('type') === 'Comment'
          ? read('data.issueId', 'data.issue.id')
          : undefined,
    findCommit: () => undefined,
    isOwn: (read) => read('type') === 'Comment' && isOwnCommentId(read('data.id') ?? ''),
  },
}

/**
 * Where the event of a delivery happened. Undefined without a proof that the sender is GitHub, GitLab or Linear: otherwise, a caller that has only
 * a hook token could choose any repository that the credential of the channel can write to.
 */
export function readPlace({ sender, body }: Pick<Delivery, 'sender' | 'body'>): EventPlace | undefined {
  const channel = sender?.shownBy === 'proof' ? findForge(sender) : undefined
  if (channel === undefined) return undefined
  const read = createReader(readPayload(body))
  const { findRecipient, findCommit } = forges[channel]
  return { channel, to: findRecipient(read), commit: findCommit(read) }
}

/** Whether the request is about a comment that a channel of Hookloom posted. It needs no proof, because an agent must not wake itself without end. */
export function isAboutOwnComment({ sender, body }: Pick<Delivery, 'sender' | 'body'>): boolean {
  const channel = findForge(sender)
  if (channel === undefined) return false
  const { mark: ownMark, isOwn } = forges[channel]
  // a payload that only a transform reads is parsed in the thread of the transform
  const { bytes, parsed } = body
  const isUnread = ownMark !== undefined && parsed === undefined
  if (isUnread && !Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).includes(ownMark)) return false
  return isOwn(createReader(readPayload(body)))
}

function findForge(sender: Delivery['sender']): EventPlace['channel'] | undefined {
  if (sender === undefined || sender.shownBy === 'payload') return undefined
  const { source } = sender.facts
  return isForge(source) ? source : undefined
}

export function isForge(source: string): source is EventPlace['channel'] {
  return Object.hasOwn(forges, source)
}

function createReader(payload: SentValue): Reader {
  return (...paths) => {
    for (const path of paths) {
      const value = readPath(payload, path.split('.'))
      if (isNumber(value)) return String(value)
      if (typeof value === 'string' && value !== '') return value
    }
    return undefined
  }
}

function join(owner: string | undefined, sign: string, rest: string | undefined): string | undefined {
  return owner === undefined || rest === undefined || noCommit.test(rest) ? undefined : `${owner}${sign}${rest}`
}
