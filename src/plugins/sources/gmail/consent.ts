// Asks a person for consent, with a loopback redirect and PKCE (RFC 8252, RFC 7636).
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { z } from 'zod'
import { type GmailEndpoints, Problem } from '../shared/kit.ts'
import { parseAnswer } from './api.ts'
import type { GoogleCall } from './call.ts'
import type { Consent, OAuthClient } from './credentials.ts'

type ConsentParts = {
  readonly client: OAuthClient
  readonly account: string
  readonly scopes: readonly string[]
  readonly endpoints: GmailEndpoints
  readonly call: GoogleCall
  /** Shows the URL to the person, or opens it. */
  readonly show: (url: string) => void
  /** Resolves with the address to which the browser was sent, if the person copies it by hand. */
  readonly pasted: Promise<string>
}

const Granted = z.object({ refresh_token: z.string().min(1), scope: z.string().default('') })

/** Asks for consent, and waits for the person. Throws `gmail-consent-missing` if the person declines or gives another address. */
export async function askConsent(parts: ConsentParts): Promise<Consent> {
  const { client, account, endpoints, call, show, pasted } = parts
  const [state, verifier] = [randomBytes(24).toString('base64url'), randomBytes(48).toString('base64url')]
  const redirect = await listenForRedirect(state)
  try {
    show(toConsentUrl(parts, { state, verifier, redirectUri: redirect.uri }))
    const answer = await Promise.race([redirect.arrived, pasted])
    const code = readCode(answer, state)
    const body = new URLSearchParams({
      grant_type: 'authorization_code',
      client_id: client.clientId,
      ...(client.clientSecret === undefined ? {} : { client_secret: client.clientSecret }),
      code,
      code_verifier: verifier,
      redirect_uri: redirect.uri,
    })
    const granted = parseAnswer(
      Granted,
      await call({ method: 'POST', url: endpoints.oauthToken, body }),
      'the token endpoint',
    )
    return {
      kind: 'consent',
      account,
      clientId: client.clientId,
      clientSecret: client.clientSecret,
      refreshToken: granted.refresh_token,
      scopes: granted.scope.split(' ').filter((scope) => scope !== ''),
    }
  } finally {
    redirect.close()
  }
}

function toConsentUrl(
  { client, account, scopes, endpoints }: ConsentParts,
  { state, verifier, redirectUri }: { state: string; verifier: string; redirectUri: string },
): string {
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: client.clientId,
    redirect_uri: redirectUri,
    scope: scopes.join(' '),
    state,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    // makes Google return a refresh token even if the person has consented before
    access_type: 'offline',
    prompt: 'consent',
    login_hint: account,
  })
  return `${endpoints.oauthAuth}?${query}`
}

/** The code in the address to which Google sent the browser. An address of another consent is refused. */
function readCode(answer: string, state: string): string {
  const query = URL.canParse(answer.trim()) ? new URL(answer.trim()).searchParams : new URLSearchParams()
  const [given, expected] = [Buffer.from(query.get('state') ?? ''), Buffer.from(state)]
  const code = query.get('code')
  const isOurs = given.length === expected.length && timingSafeEqual(given, expected)
  if (!isOurs) {
    throw new Problem('gmail-consent-missing', 'This is not the address of the current consent. Start again.')
  }
  if (code !== null && code !== '') return code
  throw new Problem('gmail-consent-missing', 'The consent was declined. Run the command again to ask once more.')
}

const loopback = 'http://127.0.0.1'

type Redirect = { readonly uri: string; readonly arrived: Promise<string>; close(): void }

/** Listens on loopback for one visit of the browser. Any page can send a request, but only the redirect of Google has the right `state`. */
async function listenForRedirect(state: string): Promise<Redirect> {
  let resolveArrived: (url: string) => void = () => {}
  const arrived = new Promise<string>((resolve) => (resolveArrived = resolve))
  const server = createServer((request, response) => {
    // the path may be no URL, such as "//"
    const path = request.url ?? '/'
    const url = new URL(URL.canParse(path, loopback) ? path : '/', loopback)
    const isAnswer = request.method === 'GET' && url.pathname === '/' && url.searchParams.get('state') === state
    response.writeHead(isAnswer ? 200 : 404, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' })
    response.end(isAnswer ? 'You may close this page and go back to the terminal.\n' : 'Not found\n')
    if (isAnswer) resolveArrived(url.href)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  const close = () => {
    server.close()
    server.closeAllConnections()
  }
  // a listening TCP server always has an address with a port
  return { uri: `${loopback}:${(server.address() as AddressInfo).port}`, arrived, close }
}
