// The access token of a bot of Microsoft Teams.
// https://learn.microsoft.com/azure/bot-service/rest-api/bot-framework-rest-connector-authentication
import { z } from 'zod'
import { createTokenCache, type TokenCache } from '../../../base/access-token.ts'
import {
  type ChannelTools,
  type ErrorMeaning,
  type NoToken,
  readSuccess,
  createFailureReader,
  sendJson,
  toFailureBeforePost,
} from './http.ts'

const TokenAnswer = z.object({ access_token: z.string().min(1), expires_in: z.coerce.number().positive() })
const ErrorAnswer = z.object({ error: z.string() })

type TeamsAccess = {
  readonly appId: string
  readonly appPassword: string
  readonly tenantId: string
  readonly loginUrl: string
  readonly timeoutMs: number
}

export function createTeamsToken(
  config: TeamsAccess,
  { clock, ...tools }: ChannelTools & { readonly clock: () => number },
): TokenCache<NoToken> {
  return createTokenCache<NoToken>(clock, async () => {
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
    return { kind: 'token', token: granted.access_token, until: clock() + granted.expires_in * 1_000 }
  })
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
