// Plays a sender: signs requests as a row of the table says, with code that is independent of the verifier.
import { createHmac } from 'node:crypto'
import type { Verified, VerifyRequest } from '../../../../../src/core/model/verifier.ts'
import { type VerifyInput, VerifySettings } from '../../../../../src/core/model/verify.ts'
import type { HmacScheme } from '../../../../../src/model/scheme.ts'
import type { KnownSchemes } from '../../../../../src/gateway/proofs/senders.ts'
import { createVerifier, type VerifierTools } from '../../../../../src/gateway/proofs/verify.ts'
import { builtInSenders } from '../../../../../src/gateway/built-in.ts'

const { schemes } = builtInSenders

export const now = 1_700_000_000_000
export const publicUrl = 'https://gateway.example/hooks/inbound'

export const hmacSchemes = schemes.filter((scheme): scheme is HmacScheme => scheme.kind === 'hmac')

const offline: VerifierTools['fetch'] = () => Promise.reject(new Error('a fetch that nobody expected'))

export function verifierOf(settings: VerifyInput, tools: Partial<VerifierTools & KnownSchemes> = {}) {
  return createVerifier(VerifySettings.parse(settings), {
    fetch: offline,
    now: () => now,
    senders: builtInSenders,
    ...tools,
  })
}

export async function isProven(settings: VerifyInput, request: VerifyRequest): Promise<boolean> {
  return (await verifierOf(settings).verify(request)).ok
}

export function reasonOf(verified: Verified): string {
  return verified.ok ? '' : verified.reason
}

export function requestOf(
  headers: Record<string, string>,
  body = '',
  rest: Partial<VerifyRequest> = {},
): VerifyRequest {
  return { method: 'POST', url: '/hooks/inbound', headers, rawBody: Buffer.from(body), ...rest }
}

const secretBytes = Buffer.from('0123456789abcdef0123456789abcdef')
const otherBytes = Buffer.from('fedcba9876543210fedcba9876543210')

/** The secret as the operator writes it into the config. */
export function secretOf(scheme: HmacScheme, which: 'live' | 'other' = 'live'): string {
  const bytes = which === 'live' ? secretBytes : otherBytes
  return (scheme.secretPrefix ?? '') + bytes.toString(scheme.secretEncoding ?? 'utf8')
}

export function settingsOf(scheme: HmacScheme): VerifyInput {
  const signsUrl = /url\}/i.test(scheme.template ?? '')
  return { scheme: scheme.id, secret: secretOf(scheme), ...(signsUrl ? { publicUrl } : {}) }
}

export function toTimeText(at: number, unit: 's' | 'ms' | 'iso8601'): string {
  if (unit === 'iso8601') return new Date(at).toISOString()
  return String(unit === 's' ? Math.floor(at / 1000) : at)
}

export type Signing = { at?: number; which?: 'live' | 'other'; field?: string; body?: string }

/** A request signed by the sender of a row. `field` renames the entry of the signature in the list of the header. */
export function signed(
  scheme: HmacScheme,
  { at = now, which = 'live', field, body: given = '{"event":"x","n":1}' }: Signing = {},
): VerifyRequest {
  const { syntax, timestamp, template = '{body}' } = scheme
  const headers: Record<string, string> = { 'content-type': 'application/json' }
  const time = timestamp === undefined ? '' : toTimeText(at, timestamp.unit)
  let body = given
  if (timestamp?.in === 'body') body = JSON.stringify({ event: 'x', [timestamp.path]: at })
  if (template.includes('{form}')) {
    headers['content-type'] = 'application/x-www-form-urlencoded'
    body = 'b=2&a=1'
  }
  const text = template
    .replace('{timestamp}', time)
    .replace('{id}', 'msg_1')
    .replace('{method}', 'POST')
    .replace(/\{(url|decodedUrl)\}/, publicUrl)
    .replace('{form}', 'a1b2')
    .replace(/\{header:([\w-]+)\}/gi, (_, name: string) => (headers[name.toLowerCase()] = `${name} is signed`))
    .replace('{body}', () => body)
  const bytes = which === 'live' ? secretBytes : otherBytes
  const signature = createHmac(scheme.algorithm ?? 'sha256', bytes)
    .update(text)
    .digest(scheme.encoding ?? 'hex')
  if (scheme.idHeader !== undefined) headers[scheme.idHeader] = 'msg_1'
  if (timestamp?.in === 'header') headers[timestamp.name] = time
  const entries = timestamp?.in === 'field' ? [[timestamp.name, time]] : []
  headers[scheme.header] =
    syntax === undefined
      ? signature
      : 'prefix' in syntax
        ? syntax.prefix + signature
        : [...entries, [field ?? syntax.field, signature]]
            .map((entry) => entry.join(syntax.joint))
            .join(syntax.separator)
  return requestOf(headers, body)
}

/** The same request with one header changed, or without that header. */
export function withHeader(request: VerifyRequest, name: string, value: string | undefined): VerifyRequest {
  const headers = { ...request.headers }
  if (value === undefined) delete headers[name]
  else headers[name] = value
  return { ...request, headers }
}

/** Replaces one character of the signature, and keeps the rest of the header. */
export function withBrokenSignature(request: VerifyRequest, header: string): VerifyRequest {
  const value = request.headers[header] ?? ''
  const at = value.length - 8
  return withHeader(request, header, value.slice(0, at) + (value[at] === '1' ? '2' : '1') + value.slice(at + 1))
}
