// Access tokens: made of a consent or of a service account's key, kept until shortly before they end.
import { createPrivateKey } from 'node:crypto'
import { SignJWT } from 'jose'
import { z } from 'zod'
import { parse } from './api.ts'
import type { AccessTokens, GoogleCall } from './call.ts'
import type { Credentials, ServiceAccount } from './credentials.ts'
import { singleFlight } from './pace.ts'

export const scopes = {
  gmail: 'https://www.googleapis.com/auth/gmail.readonly',
  pubsub: 'https://www.googleapis.com/auth/pubsub',
  cloud: 'https://www.googleapis.com/auth/cloud-platform',
} as const

/** An access token is not used in its last minute. */
const sparedMs = 60_000
const assertionSeconds = 3_600

const Token = z.object({ access_token: z.string().min(1), expires_in: z.coerce.number().default(3_600) })

export type TokenParts = {
  readonly credentials: Credentials
  /** `hooks.gmail.endpoints.oauthToken` */
  readonly tokenUrl: string
  /** Without tokens of its own. */
  readonly call: GoogleCall
  readonly clock: () => number
  /** Of a service account: what the token opens, and whose mailbox. A consent has both in itself. */
  readonly scope: string
  readonly subject?: string
}

export function createTokens(parts: TokenParts): AccessTokens {
  const { credentials, tokenUrl, call, clock } = parts
  let kept: { token: string; until: number } | undefined

  const fetchToken = singleFlight(async () => {
    const body = credentials.kind === 'consent' ? toRefresh(credentials) : await toAssertion(credentials, parts)
    const answer = await call({ method: 'POST', url: tokenUrl, body })
    const { access_token: token, expires_in: seconds } = parse(Token, answer, 'the token endpoint')
    kept = { token, until: clock() + seconds * 1000 - sparedMs }
    return token
  })

  return {
    kind: credentials.kind,
    token: async () => (kept !== undefined && clock() < kept.until ? kept.token : fetchToken()),
    forget: () => void (kept = undefined),
  }
}

function toRefresh({ clientId, clientSecret, refreshToken }: Extract<Credentials, { kind: 'consent' }>) {
  return new URLSearchParams({
    grant_type: 'refresh_token',
    client_id: clientId,
    ...(clientSecret === undefined ? {} : { client_secret: clientSecret }),
    refresh_token: refreshToken,
  })
}

/** RFC 7523: the service account speaks for itself, or for `subject` where the domain has delegated it. */
async function toAssertion(
  key: ServiceAccount,
  { tokenUrl, clock, scope, subject }: TokenParts,
): Promise<URLSearchParams> {
  const iat = Math.floor(clock() / 1000)
  const header = { alg: 'RS256', typ: 'JWT', ...(key.private_key_id === undefined ? {} : { kid: key.private_key_id }) }
  const claims = {
    iss: key.client_email,
    scope,
    aud: tokenUrl,
    iat,
    exp: iat + assertionSeconds,
    ...(subject && { sub: subject }),
  }
  const assertion = await new SignJWT(claims).setProtectedHeader(header).sign(createPrivateKey(key.private_key))
  return new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
    assertion,
  })
}
