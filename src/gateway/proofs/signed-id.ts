import type { SenderFacts } from '../../core/model/sender.ts'
import type { Coverage, Verified } from '../../core/model/verifier.ts'
import { hasIdInBody, readIdInBody } from '../../core/mapping/sources.ts'
import { readJsonBody } from './verifiers/proof.ts'

/**
 * The delivery id that a proof covers: the one that the proof names, else the one in a covered body. `sender`: whose requests the proof proves.
 * `bytes`: the inflated body. Undefined if the proof covers no id.
 */
export function readSignedId(
  sender: SenderFacts | undefined,
  covers: Coverage,
  { id }: Extract<Verified, { ok: true }>,
  bytes: Uint8Array,
): string | undefined {
  if (id !== undefined) return id
  if (sender === undefined || !covers.body || !hasIdInBody(sender)) return undefined
  const parsed = readJsonBody(bytes)
  if (parsed === undefined) return undefined
  return readIdInBody(sender, { bytes, syntax: 'json', parsed })
}
