// GitHub: comments on issues and pull requests, and commit statuses.
// https://docs.github.com/en/rest/issues/comments and https://docs.github.com/en/rest/commits/statuses
import { z } from 'zod'
import {
  type ChannelHost,
  type ChannelParts,
  type ChannelSettings,
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
import { readGitHubFailure, toGitHubHeaders } from './shared/github-failure.ts'
import { createGitHubCredential } from './shared/github-token.ts'
import { describeWrongRecipient, type HttpOutcome, readSuccess, sendJson, toFailureBeforePost } from './shared/http.ts'
import { apiUrl, nonBlank, senderId, takeStart } from './shared/values.ts'

const maxDescriptionChars = 140

/** Neither the owner nor the repository may be `.` or `..`, because the URL would lead to another endpoint. */
const recipient = /^((?!\.{1,2}\/)[\w.-]+\/(?!\.{1,2}#)[\w.-]+)#(\d{1,18})$/
const commitName = /^((?!\.{1,2}\/)[\w.-]+\/(?!\.{1,2}@)[\w.-]+)@([\da-f]{7,64})$/i

const Comments = z.array(z.object({ id: z.int(), body: z.string().nullish() }))
const Statuses = z.array(
  z.object({ id: z.int(), context: z.string(), state: z.string(), description: z.string().nullable() }),
)
const RateLimit = z.object({ resources: z.object({}) })

type Call = (method: 'GET' | 'POST', path: string, body?: object) => Promise<HttpOutcome>

const options = z
  .strictObject({
    token: nonBlank.optional().describe('Token that may write issues, pull requests and commit statuses.'),
    appId: senderId.optional().describe('Id of a GitHub App, in place of `token`.'),
    privateKey: nonBlank
      .optional()
      .describe('Private key of the GitHub App, in PEM format, such as "${file:/run/secrets/github-app.pem}".'),
    baseUrl: apiUrl
      .default('https://api.github.com')
      .describe('URL of the API. GitHub Enterprise Server: https://<host>/api/v3.'),
  })
  .superRefine(({ token, appId, privateKey }, context) => {
    const report = (key: string, message: string) => context.addIssue({ code: 'custom', path: [key], message })
    if ((token === undefined) === (appId === undefined)) report('token', 'must be set, or appId: exactly one of them')
    if (appId !== undefined && privateKey === undefined) report('privateKey', 'must be the private key of the App')
  })
type Settings = ChannelSettings<typeof options>

export const githubChannel = defineChannel({
  name: 'github',
  about: 'Comments on GitHub, by a token or a GitHub App. `to`: <owner>/<repository>#<number>.',
  options,
  findsRecipient: true,
  create: createGitHubChannel,
})

function createGitHubChannel(config: Settings, { fetch, clock }: ChannelHost): ChannelParts {
  const credential = createGitHubCredential(config, { fetch, clock })

  /** Calls `perform` with a function that calls the API of a repository. If GitHub refused a token of an App, the next attempt fetches a new one. */
  async function withCall(
    repository: string,
    signal: AbortSignal,
    perform: (call: Call) => Promise<SendResult>,
  ): Promise<SendResult> {
    const access = await credential.get(repository)
    if (access.kind === 'failed') return access.failed
    let isExpired = false
    const result = await perform(async (method, path, body) => {
      const outcome = await sendJson({
        method,
        url: `${config.baseUrl}/repos/${repository}${path}`,
        headers: toGitHubHeaders(access.token),
        ...(body === undefined ? {} : { body }),
        timeoutMs: config.timeoutMs,
        signal,
        fetch,
      })
      const isRefused = outcome.kind === 'answer' && outcome.status === 401
      if (isRefused && credential.drop(repository, access.token)) isExpired = true
      return outcome
    })
    if (!isExpired || result.kind !== 'permanent') return result
    return { kind: 'transient', detail: 'GitHub answered 401. The next attempt fetches a new token of the App.' }
  }

  return {
    // a message that may have been posted is looked up by its marker
    dedupes: true,
    whyNot: (to = config.to) => (recipient.test(to ?? '') ? undefined : explainRecipient(to)),
    split: splitComment,
    async send({ to = config.to, text, format, nonce, maybeSince, signal }) {
      const [, repository, number] = recipient.exec(to ?? '') ?? []
      if (repository === undefined) return { kind: 'permanent', detail: explainRecipient(to) }
      const path = `/issues/${number}/comments`
      const mark = signNonce(nonce, config.token ?? config.privateKey ?? '')
      return await withCall(repository, signal, async (call) => {
        if (maybeSince !== undefined) {
          // the search covers only the comments since the first attempt
          const recent = `${path}?since=${new Date(maybeSince - maxClockSkewMs).toISOString()}`
          const before = await findComment(mark, (page) => readComments(call, recent, page))
          if (before !== undefined) return before
        }
        const outcome = await call('POST', path, { body: toCommentBody({ text, format, nonce: mark }) })
        const posted = readSuccess(outcome, IdAnswer)
        return posted === undefined ? readGitHubFailure(outcome) : { kind: 'sent', id: String(posted.id) }
      })
    },
    async setStatus({ commit, name, state, description, signal }) {
      const [, repository, sha] = commitName.exec(commit) ?? []
      if (repository === undefined) {
        return { kind: 'permanent', detail: describeWrongRecipient('github', commit, '<owner>/<repository>@<commit>') }
      }
      const wanted = { context: name, state, description: takeStart(description, maxDescriptionChars) }
      return await withCall(repository, signal, async (call) => {
        const listed = await call('GET', `/commits/${sha}/statuses?per_page=${pageSize}`)
        const statuses = readSuccess(listed, Statuses)
        if (statuses === undefined) return toFailureBeforePost(readGitHubFailure(listed))
        // the list begins with the newest status
        const last = statuses.find(({ context }) => context.toLowerCase() === name.toLowerCase())
        if (last?.state === wanted.state && last.description === wanted.description)
          return { kind: 'sent', id: String(last.id) }
        const outcome = await call('POST', `/statuses/${sha}`, wanted)
        const set = readSuccess(outcome, IdAnswer)
        return set === undefined ? readGitHubFailure(outcome) : { kind: 'sent', id: String(set.id) }
      })
    },
    async probe(signal) {
      if (config.appId !== undefined) {
        return {
          ok: true,
          detail: 'GitHub gives the App a token for each repository. Only a comment shows that it works.',
        }
      }
      const outcome = await sendJson({
        method: 'GET',
        url: `${config.baseUrl}/rate_limit`,
        headers: toGitHubHeaders(config.token ?? ''),
        timeoutMs: config.timeoutMs,
        signal,
        fetch,
      })
      if (readSuccess(outcome, RateLimit) !== undefined) return { ok: true, detail: 'GitHub accepts the token.' }
      return { ok: false, detail: readGitHubFailure(outcome).detail }
    },
  }
}

async function readComments(call: Call, path: string, page: number): Promise<CommentPage> {
  const outcome = await call('GET', `${path}&per_page=${pageSize}&page=${page}`)
  const comments = readSuccess(outcome, Comments)
  if (comments === undefined) return { kind: 'failed', failed: toFailureBeforePost(readGitHubFailure(outcome)) }
  return { kind: 'page', comments }
}

function explainRecipient(to: string | undefined): string {
  return describeWrongRecipient('github', to, '<owner>/<repository>#<number of an issue or pull request>')
}
