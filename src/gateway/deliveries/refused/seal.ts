// Encrypts refused requests for the store, with a key that every gateway of the store derives from the gateway token.
import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  type KeyObject,
  randomBytes,
  scrypt,
  type ScryptOptions,
} from 'node:crypto'
import { promisify } from 'node:util'
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

type SealKey = { readonly id: string; readonly secret: KeyObject }

const derive = promisify<string, string, number, ScryptOptions, Buffer>(scrypt)
/** The token is the secret. Gateways of one store have no other value in common, so the salt is the same everywhere. */
const salt = 'hookloom quarantine 1'
/** The cost of the derivation: 16 MiB and about 50 ms, so that a copy of the store does not help to guess a weak token. */
const cost: ScryptOptions = { N: 16_384, r: 8, p: 1 }
const keyBytes = 32
const keyIdBytes = 8
const nonceBytes = 12
const tagBytes = 16

/** The key that belongs to a gateway token, derived once for each token, outside of the main thread. */
export function createSealKeys(): (token: string) => Promise<SealKey> {
  let known: { readonly token: string; readonly key: Promise<SealKey> } | undefined
  return (token) => {
    if (known?.token === token) return known.key
    const derived = { token, key: deriveKey(token) }
    known = derived
    // after a failure, the next request tries again
    derived.key.catch(() => {
      if (known === derived) known = undefined
    })
    return derived.key
  }
}

async function deriveKey(token: string): Promise<SealKey> {
  const bytes = await derive(token, salt, keyBytes + keyIdBytes, cost)
  return {
    id: bytes.subarray(keyBytes).toString('hex'),
    secret: createSecretKey(bytes.subarray(0, keyBytes)),
  }
}

type Arrival = Pick<QuarantinedRequest, 'requestId' | 'receivedAt' | 'hook'>

/**
 * The data that is authenticated but not encrypted. It includes the time of arrival, because a later verification uses it as its clock: somebody
 * who can write the store must not be able to change it.
 */
function encodeAuthenticatedData({ requestId, receivedAt, hook }: Arrival): Buffer {
  return Buffer.from(JSON.stringify([requestId, receivedAt, hook]))
}

/** Seals a request. The result is the nonce, the tag and the encrypted part, which has the length of the head, the head and the body. */
export function seal({ body, ...head }: RawRequest, arrival: Arrival, { secret }: SealKey): Uint8Array {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv('aes-256-gcm', secret, nonce)
  cipher.setAAD(encodeAuthenticatedData(arrival))
  const text = Buffer.from(JSON.stringify(head))
  const length = Buffer.alloc(4)
  length.writeUInt32BE(text.byteLength)
  const parts = [cipher.update(length), cipher.update(text), cipher.update(body), cipher.final()]
  return Buffer.concat([nonce, cipher.getAuthTag(), ...parts])
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
    const decipher = createDecipheriv('aes-256-gcm', key.secret, sealed.subarray(0, nonceBytes), {
      authTagLength: tagBytes,
    })
    decipher.setAAD(encodeAuthenticatedData(request))
    decipher.setAuthTag(sealed.subarray(nonceBytes, nonceBytes + tagBytes))
    const opened = Buffer.concat([decipher.update(sealed.subarray(nonceBytes + tagBytes)), decipher.final()])
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
