// The APIs of one account, and their access tokens. A person's consent opens Gmail and Pub/Sub; a service account acts for the mailbox in
// Gmail, and for itself in Pub/Sub.
import { createGmailApi, type GmailApi, parseAnswer } from './api.ts'
import { type AccessTokens, type CallTools, createCall, type GoogleCall } from './call.ts'
import type { Credentials, ServiceAccount } from './credentials.ts'
import { createPubSubApi, type PubSubApi } from './pubsub.ts'
import { createPrivateKey } from 'node:crypto'
import { SignJWT } from 'jose'
import { z } from 'zod'
import { createTokenCache, type WatchedGmail } from '../shared/kit.ts'

export type Google = {
  readonly gmail: GmailApi
  readonly pubsub: PubSubApi
  /** Pub/Sub, with the authorisation for the project. */
  readonly cloudCall: GoogleCall
  /** Calls without authorisation. */
  readonly plainCall: GoogleCall
}

export function openGoogle(
  { account, endpoints }: Pick<WatchedGmail, 'account' | 'endpoints'>,
  { credentials, clock, tools }: { credentials: Credentials; clock: () => number; tools: CallTools },
): Google {
  const plainCall = createCall(tools)
  const shared = { credentials, tokenUrl: endpoints.oauthToken, call: plainCall, clock }
  const mailTokens = createTokens({ ...shared, scope: scopes.gmail, subject: account })
  const cloudTokens = credentials.kind === 'consent' ? mailTokens : createTokens({ ...shared, scope: scopes.cloud })
  const cloudCall = createCall({ ...tools, tokens: cloudTokens })
  return {
    gmail: createGmailApi({ call: createCall({ ...tools, tokens: mailTokens }), base: endpoints.gmail }),
    pubsub: createPubSubApi({ call: cloudCall, base: endpoints.pubsub }),
    cloudCall,
    plainCall,
  }
}

export const scopes = {
  gmail: 'https://www.googleapis.com/auth/gmail.readonly',
  pubsub: 'https://www.googleapis.com/auth/pubsub',
  cloud: 'https://www.googleapis.com/auth/cloud-platform',
} as const

const assertionSeconds = 3_600

const Token = z.object({ access_token: z.string().min(1), expires_in: z.coerce.number().default(3_600) })

type TokenParts = {
  readonly credentials: Credentials
  /** The URL in `hooks.gmail.endpoints.oauthToken`. */
  readonly tokenUrl: string
  /** Calls without tokens. */
  readonly call: GoogleCall
  readonly clock: () => number
  /** For a service account: the scope, and the owner of the mailbox. A consent contains both. */
  readonly scope: string
  readonly subject?: string
}

export function createTokens(parts: TokenParts): AccessTokens {
  const { credentials, tokenUrl, call, clock } = parts
  const cache = createTokenCache<never>(clock, async () => {
    const body =
      credentials.kind === 'consent' ? buildRefreshForm(credentials) : await signAssertion(credentials, parts)
    const answer = await call({ method: 'POST', url: tokenUrl, body })
    const { access_token: token, expires_in: seconds } = parseAnswer(Token, answer, 'the token endpoint')
    return { kind: 'token', token, until: clock() + seconds * 1000 }
  })
  return { ...cache, kind: credentials.kind }
}

function buildRefreshForm({ clientId, clientSecret, refreshToken }: Extract<Credentials, { kind: 'consent' }>) {
  return new URLSearchParams({
    grant_type: 'refresh_token',
    client_id: clientId,
    ...(clientSecret === undefined ? {} : { client_secret: clientSecret }),
    refresh_token: refreshToken,
  })
}

/** RFC 7523: the service account acts for itself, or for `subject` if the domain has delegated it. */
async function signAssertion(
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
