// Encrypts refused requests for the store, with a key that every gateway of the store derives from the gateway token.
import { createSealKeys, openSealed, type SealKey, sealParts } from '../../../base/sealing.ts'
import { Problem } from '../../../core/model/problem.ts'
import type { QuarantinedRequest } from '../../../store/quarantine.ts'

/** A refused request as it arrived, with its credentials. It is never stored, logged or shown in clear text. */
export type RawRequest = {
  readonly method: string
  /** Path and query. */
  readonly url: string
  /** Names and values in turn, like `rawHeaders` of Node. */
  readonly rawHeaders: readonly string[]
  readonly client: string
  readonly body: Uint8Array
}

/** The key that belongs to a gateway token. */
export const createQuarantineKeys = () => createSealKeys('hookloom quarantine 1')

type Arrival = Pick<QuarantinedRequest, 'requestId' | 'receivedAt' | 'hook'>

/**
 * The data that is authenticated but not encrypted. It includes the time of arrival, because a later verification uses it as its clock: somebody
 * who can write the store must not be able to change it.
 */
const toAuthenticatedText = ({ requestId, receivedAt, hook }: Arrival): string =>
  JSON.stringify([requestId, receivedAt, hook])

/** Seals a request. The result is the nonce, the tag and the encrypted part, which has the length of the head, the head and the body. */
export function seal({ body, ...head }: RawRequest, arrival: Arrival, key: SealKey): Uint8Array {
  const text = Buffer.from(JSON.stringify(head))
  const length = Buffer.alloc(4)
  length.writeUInt32BE(text.byteLength)
  return sealParts([length, text, body], toAuthenticatedText(arrival), key)
}

/** Opens a sealed request. Throws `conflict` if the gateway token is another one, or if the row was changed. */
export function unseal(sealed: Uint8Array, request: Arrival & { readonly keyId: string }, key: SealKey): RawRequest {
  if (request.keyId !== key.id) {
    throw new Problem(
      'conflict',
      'It was kept under another gateway.token and cannot be opened with this one. Set the former token again to run it, or drop it.',
    )
  }
  try {
    const opened = openSealed(sealed, toAuthenticatedText(request), key)
    const headEnd = 4 + opened.readUInt32BE(0)
    // as: `seal` wrote it, and the tag shows that nobody changed it
    const head = JSON.parse(opened.toString('utf8', 4, headEnd)) as Omit<RawRequest, 'body'>
    return { ...head, body: opened.subarray(headEnd) }
  } catch (cause) {
    throw new Problem('conflict', 'The kept request was changed in the store, so it cannot be opened. Drop it.', {
      cause,
    })
  }
}
