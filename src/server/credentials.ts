// Credentials are read here, compared here, and go no further: no template, transform or row ever sees them.
import { hash, timingSafeEqual } from 'node:crypto'
import { credentialHeaders, senderSecrets } from '../model/credential-headers.ts'

export type TokenRead = { kind: 'none' } | { kind: 'token'; token: string } | { kind: 'ambiguous' }

/**
 * The token that a request carries: `Authorization: Bearer` or `x-service-token`; with both there, Authorization alone counts,
 * whatever its scheme. `rawHeaders` as Node gives them, since its header map hides the second of two Authorization lines, and
 * two readers of one request must never disagree about who is speaking: a repeated line is `ambiguous`.
 */
export function readToken(rawHeaders: readonly string[]): TokenRead {
  const authorization: string[] = []
  const serviceToken: string[] = []
  for (const [name, value] of toPairs(rawHeaders)) {
    if (name === 'authorization') authorization.push(value)
    else if (name === 'x-service-token') serviceToken.push(value)
  }
  if (authorization.length > 1 || serviceToken.length > 1) return { kind: 'ambiguous' }
  const [bearer] = authorization
  const sent = bearer === undefined ? serviceToken[0] : /^bearer +(.*)$/i.exec(bearer)?.[1]
  if (sent === undefined || sent === '') return { kind: 'none' }
  // Node reads header bytes as latin1; a token beyond ASCII was sent as UTF-8
  return { kind: 'token', token: Buffer.from(sent, 'latin1').toString('utf8') }
}

/** Compares in a time that says nothing about the secret, its length included. */
export function createTokenCheck(secret: string): (given: string) => boolean {
  const expected = toDigest(secret)
  return (given) => timingSafeEqual(toDigest(given), expected)
}

function toDigest(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}

/** All headers, as verifiers read them: lower-case names, repeated ones joined with ", ", no prototype. */
export function toHeaders(rawHeaders: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = Object.create(null)
  for (const [name, value] of toPairs(rawHeaders)) {
    const earlier = headers[name]
    headers[name] = earlier === undefined ? value : `${earlier}, ${value}`
  }
  return headers
}

/**
 * The headers of a delivery: no credential of ours or of the host. A sender's secret keeps its name, so that the sender is
 * still recognised, and loses its value.
 */
export function dropCredentials(
  all: Readonly<Record<string, string>>,
  secretHeaders: ReadonlySet<string>,
): Record<string, string> {
  const headers: Record<string, string> = Object.create(null)
  for (const [name, value] of Object.entries(all)) {
    if (credentialHeaders.has(name)) continue
    headers[name] = senderSecrets.has(name) || secretHeaders.has(name) ? '[secret]' : value
  }
  return headers
}

/** Whether a request target has a `token` query parameter, with any value or none, its name percent-encoded or not. */
export function isTokenInQuery(url: string): boolean {
  const mark = url.indexOf('?')
  return mark >= 0 && new URLSearchParams(url.slice(mark)).has('token')
}

/** Name in lower case, and value. */
function* toPairs(rawHeaders: readonly string[]): Generator<[string, string]> {
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    yield [(rawHeaders[index] ?? '').toLowerCase(), rawHeaders[index + 1] ?? '']
  }
}
