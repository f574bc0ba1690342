// GitLab: comments on issues and merge requests, and commit statuses.
// https://docs.gitlab.com/api/notes/ and https://docs.gitlab.com/api/commits/#commit-status
import { z } from 'zod'
import {
  type ChannelHost,
  type ChannelParts,
  type ChannelSettings,
  type CommitStatus,
  type SendResult,
  defineChannel,
} from '../../define.ts'
import {
  type CommentPage,
  maxClockSkewMs,
  findComment,
  pageSize,
  signNonce,
  IdAnswer,
  splitComment,
  toCommentBody,
} from './shared/forge.ts'
import {
  createFailureReader,
  describeWrongRecipient,
  type HttpOutcome,
  readError,
  readRateLimitMs,
  readSuccess,
  sendJson,
  toFailureBeforePost,
} from './shared/http.ts'
import { apiUrl, nonBlank, takeStart } from './shared/values.ts'

const maxDescriptionChars = 255

/** No part of the path of a project may be `.` or `..`, because the URL could lead to another endpoint. */
const project = '((?:(?!\\.{1,2}[/#!@])[\\w.-]+/)+(?!\\.{1,2}[#!@])[\\w.-]+)'
const recipient = new RegExp(`^${project}([#!])(\\d{1,18})$`)
const commitName = new RegExp(`^${project}@([\\da-f]{7,64})$`, 'i')

const Notes = z.array(z.object({ id: z.int(), body: z.string(), created_at: z.iso.datetime({ offset: true }) }))
const Statuses = z.array(
  z.object({ id: z.int(), name: z.string(), status: z.string(), description: z.string().nullish() }),
)
const ErrorAnswer = z.object({ message: z.unknown() })

/** GitLab has no state `error`, so `error` becomes `failed`, like `failure`. The description shows the difference. */
const states: Readonly<Record<CommitStatus['state'], string>> = {
  pending: 'pending',
  success: 'success',
  failure: 'failed',
  error: 'failed',
}

const hints = new Map([
  [401, 'GitLab does not accept the token. Check channels.gitlab.token.'],
  [
    403,
    'The token may not write there. Give it the scope api and the role Developer. A locked conversation takes no comments.',
  ],
  [404, 'It does not exist, or the token may not see it. Check "to", and that a branch of the project has the commit.'],
])

const readFailure = createFailureReader({
  provider: 'GitLab',
  schema: ErrorAnswer,
  explain({ status, headers }) {
    const waitMs = status === 429 ? readRateLimitMs({ status, headers, text: '', now: Date.now() }) : undefined
    if (waitMs !== undefined) return { kind: 'rate-limited', retryAfterMs: waitMs, hint: 'Its rate limit is used up.' }
    return { hint: hints.get(status) }
  },
})

type Call = (method: 'GET' | 'POST', path: string, body?: object) => Promise<HttpOutcome>

const options = z.strictObject({
  token: nonBlank.describe('Access token with the scope api, of a project, a group or a person.'),
  baseUrl: apiUrl
    .default('https://gitlab.com/api/v4')
    .describe('URL of the API. Your own server: https://<host>/api/v4.'),
})
type Settings = ChannelSettings<typeof options>

export const gitlabChannel = defineChannel({
  name: 'gitlab',
  about:
    'Comments on GitLab, by an access token. `to`: <group>/<project>#<issue> or <group>/<project>!<merge request>.',
  options,
  findsRecipient: true,
  create: createGitLabChannel,
})

function createGitLabChannel(config: Settings, { fetch }: ChannelHost): ChannelParts {
  const createCall =
    (signal: AbortSignal): Call =>
    (method, path, body) =>
      sendJson({
        method,
        url: `${config.baseUrl}${path}`,
        headers: { 'private-token': config.token },
        ...(body === undefined ? {} : { body }),
        timeoutMs: config.timeoutMs,
        signal,
        fetch,
      })

  return {
    // a message that may have been posted is looked up by its marker
    dedupes: true,
    whyNot: (to = config.to) => (recipient.test(to ?? '') ? undefined : explainRecipient(to)),
    split: splitComment,
    async send({ to = config.to, text, format, nonce, maybeSince, signal }) {
      const [, path, sign, number] = recipient.exec(to ?? '') ?? []
      if (path === undefined) return { kind: 'permanent', detail: explainRecipient(to) }
      const call = createCall(signal)
      const mark = signNonce(nonce, config.token)
      const kind = sign === '!' ? 'merge_requests' : 'issues'
      const notes = `/projects/${encodeURIComponent(path)}/${kind}/${number}/notes`
      if (maybeSince !== undefined) {
        const since = maybeSince - maxClockSkewMs
        const before = await findComment(mark, (page) => readNotes(call, notes, { page, since }))
        if (before !== undefined) return before
      }
      const outcome = await call('POST', notes, { body: toCommentBody({ text, format, nonce: mark }) })
      const posted = readSuccess(outcome, IdAnswer)
      return posted === undefined ? readFailure(outcome) : { kind: 'sent', id: String(posted.id) }
    },
    async setStatus({ commit, name, state, description, signal }) {
      const [, path, sha] = commitName.exec(commit) ?? []
      if (path === undefined) {
        return { kind: 'permanent', detail: describeWrongRecipient('gitlab', commit, '<group>/<project>@<commit>') }
      }
      const call = createCall(signal)
      const api = `/projects/${encodeURIComponent(path)}`
      const wanted = { name, state: states[state], description: takeStart(description, maxDescriptionChars) }
      const find = () => findStatus(call, `${api}/repository/commits/${sha}/statuses`, name)
      const last = await find()
      if (last.kind === 'failed') return last.failed
      if (last.status === wanted.state && last.description === wanted.description) return { kind: 'sent', id: last.id }
      const outcome = await call('POST', `${api}/statuses/${sha}`, wanted)
      const set = readSuccess(outcome, IdAnswer)
      if (set !== undefined) return { kind: 'sent', id: String(set.id) }
      if (!isRefusedTransition(outcome)) return readFailure(outcome)
      // the commit already has this state: another run, or an attempt whose answer was lost, has set it
      const now = await find()
      if (now.kind === 'failed') return now.failed
      return now.status === wanted.state ? { kind: 'sent', id: now.id } : readFailure(outcome)
    },
    async probe(signal) {
      const outcome = await createCall(signal)('GET', '/user')
      if (readSuccess(outcome, IdAnswer) !== undefined) return { ok: true, detail: 'GitLab accepts the token.' }
      return { ok: false, detail: readFailure(outcome).detail }
    },
  }
}

/** Reads one page of notes, the newest first, because the API cannot leave out those before `since`. */
async function readNotes(
  call: Call,
  path: string,
  { page, since }: { page: number; since: number },
): Promise<CommentPage> {
  const outcome = await call('GET', `${path}?order_by=created_at&sort=desc&per_page=${pageSize}&page=${page}`)
  const notes = readSuccess(outcome, Notes)
  if (notes === undefined) return { kind: 'failed', failed: toFailureBeforePost(readFailure(outcome)) }
  const oldest = notes.at(-1)
  return { kind: 'page', comments: notes, isLast: oldest === undefined || Date.parse(oldest.created_at) < since }
}

type FoundStatus =
  | { readonly kind: 'found'; readonly id: string; readonly status: string; readonly description: string }
  | { readonly kind: 'failed'; readonly failed: SendResult }

/** The newest status with this name. If there is none, `id`, `status` and `description` are empty. */
async function findStatus(call: Call, path: string, name: string): Promise<FoundStatus> {
  const outcome = await call('GET', `${path}?name=${encodeURIComponent(name)}&per_page=${pageSize}`)
  const statuses = readSuccess(outcome, Statuses)
  if (statuses === undefined) return { kind: 'failed', failed: toFailureBeforePost(readFailure(outcome)) }
  const [last] = statuses.filter((each) => each.name === name).toSorted((one, other) => other.id - one.id)
  return { kind: 'found', id: String(last?.id ?? ''), status: last?.status ?? '', description: last?.description ?? '' }
}

/** GitLab refuses to set a status to the state that it already has: "Cannot transition status via :enqueue from :pending". */
function isRefusedTransition(outcome: HttpOutcome): boolean {
  if (outcome.kind !== 'answer' || outcome.status !== 400) return false
  const { message } = readError(outcome, ErrorAnswer) ?? {}
  return typeof message === 'string' && message.startsWith('Cannot transition status')
}

function explainRecipient(to: string | undefined): string {
  const expected = '<group>/<project>#<number of an issue> or <group>/<project>!<number of a merge request>'
  return describeWrongRecipient('gitlab', to, expected)
}
