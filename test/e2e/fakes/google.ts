// A fake Google on loopback: consent, tokens, certificates, Gmail, Pub/Sub. It checks every request as Google does, and records mistakes in
// `faults`, which must be empty at the end of a test.
import { createHash, createSign, createVerify, generateKeyPairSync } from 'node:crypto'
import { createFakeMailbox, type FakeMailbox } from './google-mailbox.ts'
import { createFakePubSub, type FakePubSub } from './google-pubsub.ts'
import { type Received, startLoopback } from './loopback.ts'

export type Reply = { status?: number; body?: object; headers?: Record<string, string> }

export const account = 'desk@example.org'
export const client = { client_id: 'client-1.apps.example', client_secret: 'shh-client-secret' }
export const pushServiceAccount = 'pusher@proj-123456.iam.example'

export type FakeGoogle = {
  readonly url: string
  /** The value of `hooks.gmail.endpoints`. */
  readonly endpoints: Record<string, string>
  readonly mailbox: FakeMailbox
  readonly pubsub: FakePubSub
  readonly faults: string[]
  /** `METHOD /path`, in order. */
  readonly requests: string[]
  /** Valid refresh tokens. Clear the set to revoke the consent. */
  readonly refreshTokens: Set<string>
  /** The key file of a service account with access to the mailbox. */
  readonly serviceAccountKey: object
  /** Sets the next answers to requests whose path contains this text. */
  fail(path: string, ...replies: readonly Reply[]): void
  /** Runs before a request whose path contains this text is answered. */
  onRequest(path: string, hook: () => void | Promise<void>): void
  /** The URL to which the browser is redirected after a person consents. */
  giveConsent(authUrl: string): string
  /** Signs the token of a push. The given claims replace the valid ones. */
  signPush(claims: object, options?: { foreignKey?: boolean; now?: number }): string
}

const signing = generateKeyPairSync('rsa', { modulusLength: 2048 })
const foreign = generateKeyPairSync('rsa', { modulusLength: 2048 })
const service = generateKeyPairSync('rsa', { modulusLength: 2048 })
const serviceEmail = 'reader@proj-123456.iam.example'

export async function startGoogle({ clock = Date.now }: { clock?: () => number } = {}): Promise<FakeGoogle> {
  const faults: string[] = []
  const requests: string[] = []
  const addFault = (text: string) => void faults.push(text)
  const mailbox = createFakeMailbox({ account, clock, addFault })
  const pubsub = createFakePubSub({ addFault })
  const refreshTokens = new Set(['refresh-1'])
  const accessTokens = new Set<string>()
  const codes = new Map<string, { challenge: string; redirectUri: string; scope: string }>()
  const failures: { path: string; reply: Reply }[] = []
  const hooks: { path: string; hook: () => void | Promise<void> }[] = []

  const { url } = await startLoopback(async (seen) => {
    const isJson = seen.headers['content-type'] === 'application/json'
    if (seen.text !== '' && !isJson && seen.path !== '/token') addFault(`${seen.path}: a body that is not JSON`)
    const { status = 200, body = '', headers = {} } = await answer(seen)
    return { status, body, headers }
  })

  async function answer(seen: Received): Promise<Reply> {
    requests.push(`${seen.method} ${seen.path}`)
    for (const { path, hook } of hooks) if (seen.path.includes(path)) await hook()
    const at = failures.findIndex(({ path }) => seen.path.includes(path))
    if (at >= 0) return failures.splice(at, 1)[0]?.reply ?? {}
    if (seen.path === '/token') return answerToken(new URLSearchParams(seen.text))
    if (seen.path === '/certs')
      return {
        body: { keys: [{ ...signing.publicKey.export({ format: 'jwk' }), kid: 'k1', use: 'sig', alg: 'RS256' }] },
      }
    const [, token = ''] = /^Bearer (\S+)$/.exec(String(seen.headers['authorization'])) ?? []
    if (!accessTokens.has(token)) return { status: 401, body: { error: { code: 401, status: 'UNAUTHENTICATED' } } }
    const reply = await (seen.path.startsWith('/gmail/') ? mailbox.answer(seen) : pubsub.answer(seen))
    if (reply !== undefined) return reply
    addFault(`no such method: ${seen.method} ${seen.path}`)
    return { status: 404 }
  }

  function answerToken(form: URLSearchParams): Reply {
    const grant = form.get('grant_type')
    if (grant === 'urn:ietf:params:oauth:grant-type:jwt-bearer') return answerAssertion(form.get('assertion') ?? '')
    if (form.get('client_id') !== client.client_id || form.get('client_secret') !== client.client_secret) {
      return { status: 401, body: { error: 'invalid_client' } }
    }
    if (grant === 'refresh_token')
      return refreshTokens.has(form.get('refresh_token') ?? '') ? grantAccess() : invalidGrant
    const asked = codes.get(form.get('code') ?? '')
    codes.delete(form.get('code') ?? '')
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    if (grant !== 'authorization_code' || asked === undefined) return invalidGrant
    if (asked.challenge !== challenge) addFault('the code verifier is not that of the challenge')
    if (asked.redirectUri !== form.get('redirect_uri')) addFault('another redirect than the one that was asked with')
    const refresh = `refresh-${refreshTokens.size + 1}`
    refreshTokens.add(refresh)
    return grantAccess({ refresh_token: refresh, scope: asked.scope })
  }

  function answerAssertion(assertion: string): Reply {
    const [head = '', body = '', signature = ''] = assertion.split('.')
    const isSigned = createVerify('RSA-SHA256')
      .update(`${head}.${body}`)
      .verify(service.publicKey, signature, 'base64url')
    const claims = JSON.parse(Buffer.from(body, 'base64url').toString()) as Record<string, unknown>
    const now = Math.floor(clock() / 1000)
    if (claims['iss'] !== serviceEmail || claims['aud'] !== `${url}/token`)
      addFault('an assertion of another issuer or audience')
    if (Number(claims['exp']) - Number(claims['iat']) > 3600 || Number(claims['iat']) > now + 60)
      addFault('an assertion of another time')
    if (claims['sub'] !== undefined && claims['sub'] !== account)
      return { status: 401, body: { error: 'unauthorized_client' } }
    return isSigned ? grantAccess() : invalidGrant
  }

  function grantAccess(more: object = {}): Reply {
    const token = `access-${accessTokens.size + 1}`
    accessTokens.add(token)
    return { body: { access_token: token, expires_in: 3599, token_type: 'Bearer', ...more } }
  }

  return {
    url,
    endpoints: {
      oauthAuth: `${url}/auth`,
      oauthToken: `${url}/token`,
      gmail: url,
      pubsub: url,
      oidcCerts: `${url}/certs`,
      serviceUsage: url,
    },
    mailbox,
    pubsub,
    faults,
    requests,
    refreshTokens,
    serviceAccountKey: {
      type: 'service_account',
      client_email: serviceEmail,
      private_key_id: 's1',
      private_key: service.privateKey.export({ type: 'pkcs8', format: 'pem' }),
    },
    fail: (path, ...replies) => failures.push(...replies.map((reply) => ({ path, reply }))),
    onRequest: (path, hook) => void hooks.push({ path, hook }),
    giveConsent(authUrl) {
      const query = new URL(authUrl).searchParams
      const need = {
        response_type: 'code',
        code_challenge_method: 'S256',
        access_type: 'offline',
        client_id: client.client_id,
      }
      for (const [name, value] of Object.entries(need))
        if (query.get(name) !== value) addFault(`consent: ${name} is not ${value}`)
      const redirectUri = query.get('redirect_uri') ?? ''
      if (!/^http:\/\/127\.0\.0\.1:\d+$/.test(redirectUri)) addFault('consent: the redirect is not on loopback')
      const code = `code-${codes.size + 1}`
      codes.set(code, { challenge: query.get('code_challenge') ?? '', redirectUri, scope: query.get('scope') ?? '' })
      return `${redirectUri}/?${new URLSearchParams({ state: query.get('state') ?? '', code })}`
    },
    signPush(claims, { foreignKey = false, now = clock() } = {}) {
      const iat = Math.floor(now / 1000)
      const good = {
        iss: 'https://accounts.google.com',
        email: pushServiceAccount,
        email_verified: true,
        iat,
        exp: iat + 3600,
      }
      const signed = [
        { alg: 'RS256', kid: 'k1', typ: 'JWT' },
        { ...good, ...claims },
      ]
        .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
        .join('.')
      const { privateKey } = foreignKey ? foreign : signing
      return `${signed}.${createSign('RSA-SHA256').update(signed).sign(privateKey, 'base64url')}`
    },
  }
}

const invalidGrant: Reply = {
  status: 400,
  body: { error: 'invalid_grant', error_description: 'Token has been expired or revoked.' },
}
