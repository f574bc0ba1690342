// The signed text of a form, field by field; anything else is signed by a hash of the body in the URL.
// https://www.twilio.com/docs/usage/webhooks/webhooks-security
import { createHash } from 'node:crypto'
import type { VerifyRequest } from '../../../core/model/verifier.ts'
import { isUrlEncoded } from '../../../core/model/syntax.ts'
import { isDigest } from './proof.ts'
import { readQuery } from './url.ts'

/** Twilio sends a few dozen fields. A stranger must not make the gateway read and sort tens of thousands. */
const maxFields = 1_000

const ampersand = 0x26

/**
 * The part of the signed text after the URL: the names and values of the form, sorted by name, and the distinct values of a repeated
 * name sorted too. Empty if the URL has the hash of the body. Undefined if the body does not have this hash, or is not a form of at most
 * 1,000 fields.
 */
export function toFormText(request: VerifyRequest, url: string): string | undefined {
  const hash = readQuery(url).get('bodySHA256')
  if (hash !== null) {
    return isDigest(hash, createHash('sha256').update(request.rawBody).digest('hex'), 'hex') ? '' : undefined
  }
  if (request.rawBody.length === 0) return ''
  if (!isUrlEncoded(request.rawBody) || hasMoreFields(request.rawBody)) return undefined
  const fields = new Map<string, Set<string>>()
  for (const [name, value] of new URLSearchParams(Buffer.from(request.rawBody).toString())) {
    const values = fields.get(name)
    if (values === undefined) fields.set(name, new Set([value]))
    else values.add(value)
  }
  return [...fields.keys()]
    .toSorted()
    .map((name) =>
      [...(fields.get(name) ?? [])]
        .toSorted()
        .map((value) => name + value)
        .join(''),
    )
    .join('')
}

/** Counts the fields before the form is parsed. */
function hasMoreFields(body: Uint8Array): boolean {
  let count = 1
  for (let at = body.indexOf(ampersand); at >= 0; at = body.indexOf(ampersand, at + 1)) {
    count += 1
    if (count > maxFields) return true
  }
  return false
}
