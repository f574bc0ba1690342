// Linear: comments on issues, by its GraphQL API.
// https://linear.app/developers/graphql and https://linear.app/developers/rate-limiting
import { z } from 'zod'
import { type ChannelHost, type ChannelParts, type ChannelSettings, defineChannel } from '../../define.ts'
import { signNonce, toCommentId } from './shared/forge.ts'
import { splitMarkdown } from './shared/chunks.ts'
import {
  createFailureReader,
  describeWrongRecipient,
  type ErrorMeaning,
  type HttpOutcome,
  readSuccess,
  type SendFailure,
  sendJson,
  toFailureBeforePost,
} from './shared/http.ts'
import { render } from './shared/markdown.ts'
import { forgeMarkdown } from './shared/markup.ts'
import { apiUrl, nonBlank } from './shared/values.ts'

/** The maximum length of a piece. Linear documents no limit for a comment. */
const limit = 20_000

const recipient = /^(?:[a-z][a-z\d]{0,9}-\d{1,9}|[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})$/i

const createComment =
  'mutation ($input: CommentCreateInput!) { commentCreate(input: $input) { success comment { id } } }'
const findComment = 'query ($id: String!) { comment(id: $id) { id } }'
const findViewer = '{ viewer { id } }'

const Created = z.object({ data: z.object({ commentCreate: z.object({ comment: z.object({ id: z.string() }) }) }) })
const Found = z.object({ data: z.object({ comment: z.object({ id: z.string() }) }) })
const Viewer = z.object({ data: z.object({ viewer: z.object({ id: z.string() }) }) })
const ErrorAnswer = z.object({
  errors: z.array(z.object({ extensions: z.object({ code: z.string().optional() }).optional() })).min(1),
})

/** The headers that say when the limit of requests or of complexity resets, in milliseconds since the epoch. */
const resetHeaders = ['x-ratelimit-requests-reset', 'x-ratelimit-complexity-reset'] as const

function explain(status: number, headers: Headers, code: string | undefined): ErrorMeaning {
  if (code === 'RATELIMITED' || status === 429) {
    const ends = resetHeaders.map((name) => Number(headers.get(name))).filter((end) => end > 0)
    const waitMs = ends.length === 0 ? undefined : Math.max(0, Math.max(...ends) - Date.now())
    const asked = headers.has('retry-after') ? undefined : waitMs
    return { kind: 'rate-limited', retryAfterMs: asked, hint: 'Its rate limit is used up.' }
  }
  if (code === 'AUTHENTICATION_ERROR' || status === 401)
    return { kind: 'permanent', hint: 'Linear does not accept the API key. Check channels.linear.apiKey.' }
  if (code === 'FORBIDDEN' || status === 403)
    return { kind: 'permanent', hint: 'The API key may not comment there. Give it the permission Create comments.' }
  // after an error inside Linear, it is unknown whether the comment was posted
  if (code === undefined || code === 'INTERNAL_SERVER_ERROR') return {}
  return {
    kind: 'permanent',
    hint: 'Linear rejects the comment. Check that "to" is an issue that the API key can see.',
  }
}

const refusals = {
  provider: 'Linear',
  schema: ErrorAnswer,
  readCode: ({ errors }: z.infer<typeof ErrorAnswer>) => errors[0]?.extensions?.code,
  explain: ({ status, headers, code }: { status: number; headers: Headers; code: string | undefined }) =>
    explain(status, headers, code),
}
const readRefusal = createFailureReader(refusals)
const readRefusalWith200 = createFailureReader({ ...refusals, refusesWith200: true })

/** Reads a refusal. Linear refuses a request with an error status or with 200. */
function readFailure(outcome: HttpOutcome): SendFailure {
  const isAccepted = outcome.kind === 'answer' && outcome.status < 300
  return isAccepted ? readRefusalWith200(outcome) : readRefusal(outcome)
}

const options = z.strictObject({
  apiKey: nonBlank.describe('API key that may create comments, lin_api_….'),
  baseUrl: apiUrl.default('https://api.linear.app/graphql').describe('URL of the API. Change it only for a proxy.'),
})
type Settings = ChannelSettings<typeof options>

export const linearChannel = defineChannel({
  name: 'linear',
  about: 'Comments on Linear, by an API key. `to`: the identifier of an issue, such as ENG-17, or its id.',
  options,
  findsRecipient: true,
  create: createLinearChannel,
})

function createLinearChannel(config: Settings, { fetch }: ChannelHost): ChannelParts {
  const call = (query: string, variables: object, signal: AbortSignal) =>
    sendJson({
      url: config.baseUrl,
      headers: { authorization: config.apiKey },
      body: { query, variables },
      timeoutMs: config.timeoutMs,
      signal,
      fetch,
    })

  return {
    // each attempt sends the same comment id, and Linear makes no second comment with this id
    dedupes: true,
    whyNot: (to = config.to) => (recipient.test(to ?? '') ? undefined : explainRecipient(to)),
    split: (written, format) =>
      splitMarkdown(written, { limit, measure: (piece) => render(piece, forgeMarkdown, format).length }),
    async send({ to = config.to, text, format, nonce, maybeSince, signal }) {
      if (to === undefined || !recipient.test(to)) return { kind: 'permanent', detail: explainRecipient(to) }
      const id = toCommentId(signNonce(nonce, config.apiKey))
      const outcome = await call(
        createComment,
        { input: { id, issueId: to, body: render(text, forgeMarkdown, format) } },
        signal,
      )
      if (readSuccess(outcome, Created) !== undefined) return { kind: 'sent', id }
      const failure = readFailure(outcome)
      if (maybeSince === undefined || failure.kind !== 'permanent') return failure
      // Linear may refuse the comment because an earlier attempt has posted it
      const found = await call(findComment, { id }, signal)
      if (readSuccess(found, Found) !== undefined) return { kind: 'sent', id }
      // if Linear did not say whether the comment is there, the next attempt asks again
      const unanswered = toFailureBeforePost(readFailure(found))
      return unanswered.kind === 'permanent' ? failure : unanswered
    },
    async probe(signal) {
      const outcome = await call(findViewer, {}, signal)
      if (readSuccess(outcome, Viewer) !== undefined) return { ok: true, detail: 'Linear accepts the API key.' }
      return { ok: false, detail: readFailure(outcome).detail }
    },
  }
}

function explainRecipient(to: string | undefined): string {
  return describeWrongRecipient('linear', to, 'the identifier of an issue, such as ENG-17, or its id')
}
