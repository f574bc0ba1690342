// The delivery id that a proof covers. No header can replace it, so a captured request stays recognisable.
import type { Verified, Verifier } from '../model/verifier.ts'
import { hasIdInBody, senderNamed, toIdInBody } from './sources.ts'
import { tryBody } from './verifiers/body.ts'

/**
 * The id that the proof names, else the one in a body that it covers. `body` is inflated. Its media type is not signed, so it
 * is not asked: declared as a form, a body of JSON would lose its id. Undefined: the proof covers none.
 */
export function toSignedId(
  { source, scheme, covers }: Verifier,
  { id }: Extract<Verified, { ok: true }>,
  body: Uint8Array,
): string | undefined {
  if (id !== undefined) return id
  const sender = covers.body ? senderNamed(source ?? scheme) : undefined
  if (sender === undefined || !hasIdInBody(sender)) return undefined
  const payload = tryBody(body)
  return payload === undefined ? undefined : toIdInBody(sender, { bytes: body, syntax: 'json', parsed: payload })
}
