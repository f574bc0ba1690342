// The access token of a bot: one request at a time, and the token is cached until shortly before it expires.
// https://learn.microsoft.com/azure/bot-service/rest-api/bot-framework-rest-connector-authentication
import { z } from 'zod'
import type { ChannelConfig } from '../model/channels-config.ts'
import {
  type ChannelTools,
  type ErrorMeaning,
  type SendFailure,
  readSuccess,
  createFailureReader,
  sendJson,
  toFailureBeforePost,
} from './http.ts'

/** Renewed this long before it expires: Microsoft refuses a token that expires during the request. */
const marginMs = 60_000

type AccessToken =
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'failed'; readonly failed: SendFailure }

type TokenCache = {
  /** The cached token, or a new one. Concurrent callers share one request, which the signal of a single caller does not stop. */
  get(): Promise<AccessToken>
  /** Called when a token was refused: the next call fetches a new one. */
  drop(token: string): void
}

const TokenAnswer = z.object({ access_token: z.string().min(1), expires_in: z.coerce.number().positive() })
const ErrorAnswer = z.object({ error: z.string() })

export function createTokenCache(
  config: ChannelConfig<'msteams'>,
  { clock, ...tools }: ChannelTools & { readonly clock: () => number },
): TokenCache {
  let kept: { readonly token: string; readonly until: number } | undefined
  let pending: Promise<AccessToken> | undefined

  async function fetchToken(): Promise<AccessToken> {
    const outcome = await sendJson({
      url: `${config.loginUrl}/${encodeURIComponent(config.tenantId)}/oauth2/v2.0/token`,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({
        grant_type: 'client_credentials',
        client_id: config.appId,
        client_secret: config.appPassword,
        scope: 'https://api.botframework.com/.default',
      }).toString(),
      timeoutMs: config.timeoutMs,
      signal: new AbortController().signal,
      ...tools,
    })
    const granted = readSuccess(outcome, TokenAnswer)
    if (granted === undefined) return { kind: 'failed', failed: toFailureBeforePost(readFailure(outcome)) }
    kept = { token: granted.access_token, until: clock() + granted.expires_in * 1_000 - marginMs }
    return { kind: 'token', token: granted.access_token }
  }

  return {
    async get() {
      if (kept !== undefined && clock() < kept.until) return { kind: 'token', token: kept.token }
      pending ??= fetchToken().finally(() => (pending = undefined))
      return pending
    },
    drop(token) {
      // a late refusal of an older token must not drop the new one
      if (kept?.token === token) kept = undefined
    },
  }
}

const meanings = new Map<string, ErrorMeaning>([
  ['invalid_client', { kind: 'permanent', hint: 'The client secret is wrong. Check channels.msteams.appPassword.' }],
  [
    'unauthorized_client',
    {
      kind: 'permanent',
      hint: 'The app is unknown in the tenant. Check channels.msteams.appId and channels.msteams.tenantId.',
    },
  ],
  ['invalid_request', { kind: 'permanent', hint: 'Check channels.msteams.tenantId.' }],
])

const readFailure = createFailureReader({
  provider: 'The login of Microsoft',
  schema: ErrorAnswer,
  readCode: ({ error }) => error,
  explain: ({ code = '' }) => meanings.get(code),
})
