// A request, sealed to the key of a home: X25519 with a key of its own for each envelope, HKDF-SHA256, AES-256-GCM. Only the home can open it; whoever
// knows the public key can make one.
import {
  createCipheriv,
  createDecipheriv,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
} from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import { z } from 'zod'
import type { ArrivedRequest } from '../../../define.ts'
import { joinHead, splitHead } from './wire.ts'
import { type HomeKeys, type PublicKeys, toPublicKey, toRawKey } from './keys.ts'

const version = 1
const keyBytes = 32
const nonceBytes = 12
const tagBytes = 16

const Head = z.strictObject({ version: z.literal(version), id: z.string().regex(/^[\w-]{1,64}$/), at: z.int() })
type Head = z.infer<typeof Head>
const Content = z.strictObject({
  method: z.string(),
  url: z.string(),
  rawHeaders: z.array(z.string()),
  client: z.string(),
})

/** The bytes of the envelope: its head, which can be read and not changed, the key of the envelope, the sealed request, the tag. */
export function sealRequest({ id, at, body, ...content }: ArrivedRequest, to: PublicKeys): Buffer {
  const head: Head = { version, id, at }
  const { publicKey, privateKey } = generateKeyPairSync('x25519')
  const shared = diffieHellman({ privateKey, publicKey: to.sealing })
  const { key, nonce } = deriveSecrets(shared, publicKey, to.sealing)
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: tagBytes })
  cipher.setAAD(toBound(head, to.address))
  const sealed = [cipher.update(joinHead(content)), cipher.update(body), cipher.final()]
  return joinHead(head, toRawKey(publicKey), ...sealed, cipher.getAuthTag())
}

/** Throws if the envelope was changed, or is for another home. */
export function openEnvelope(envelope: Buffer, { sealing, known }: HomeKeys): ArrivedRequest {
  const { head: found, rest } = splitHead(envelope)
  const head = Head.parse(found)
  const publicKey = toPublicKey(rest.subarray(0, keyBytes), 'x25519')
  const shared = diffieHellman({ privateKey: sealing, publicKey })
  const { key, nonce } = deriveSecrets(shared, publicKey, createPublicKey(sealing))
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: tagBytes })
  decipher.setAAD(toBound(head, known.address))
  decipher.setAuthTag(rest.subarray(-tagBytes))
  const plain = Buffer.concat([decipher.update(rest.subarray(keyBytes, -tagBytes)), decipher.final()])
  const { head: content, rest: body } = splitHead(plain)
  return { ...Content.parse(content), body, id: head.id, at: head.at }
}

/** Key and nonce of one envelope: its key pair is used once, so they are too. */
function deriveSecrets(shared: Buffer, one: KeyObject, other: KeyObject): { key: Buffer; nonce: Buffer } {
  const info = Buffer.concat([Buffer.from(`hookloom-relay/${version} envelope`), toRawKey(one), toRawKey(other)])
  const bytes = Buffer.from(hkdfSync('sha256', shared, '', info, keyBytes + nonceBytes))
  return { key: bytes.subarray(0, keyBytes), nonce: bytes.subarray(keyBytes) }
}

/** What the tag covers besides the request. */
function toBound({ id, at }: Head, address: string): Buffer {
  return Buffer.from(JSON.stringify([version, address, id, at]))
}
