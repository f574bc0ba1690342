// The keys of a home, from one secret of 32 bytes: X25519, to which a relay seals, and Ed25519, by which the home is known to it. The address is a digest of
// both public keys, so that a relay needs no registration.
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
  sign,
  verify,
} from 'node:crypto'

const secretBytes = 32
/** The heads of a private key of 32 bytes in PKCS #8 (RFC 8410, 7). */
const heads = {
  x25519: Buffer.from('302e020100300506032b656e04220420', 'hex'),
  ed25519: Buffer.from('302e020100300506032b657004220420', 'hex'),
} as const
const curves = { x25519: 'X25519', ed25519: 'Ed25519' } as const
type Curve = keyof typeof heads

/** What everybody may know of a home. `text`: both keys, Ed25519 first, as base64url. */
export type PublicKeys = {
  readonly address: string
  readonly text: string
  readonly sealing: KeyObject
  readonly identity: KeyObject
}
export type HomeKeys = { readonly sealing: KeyObject; readonly identity: KeyObject; readonly known: PublicKeys }

export function generateHomeKey(): string {
  return randomBytes(secretBytes).toString('base64url')
}

/** Whether a text is the base64url of 32 bytes. */
export function isHomeKey(text: string): boolean {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.length === secretBytes && bytes.toString('base64url') === text
}

export function deriveKeys(secret: string): HomeKeys {
  const derive = (curve: Curve) => {
    const seed = hkdfSync('sha256', Buffer.from(secret, 'base64url'), '', `hookloom-relay/1 ${curve}`, 32)
    return createPrivateKey({ key: Buffer.concat([heads[curve], Buffer.from(seed)]), format: 'der', type: 'pkcs8' })
  }
  const sealing = derive('x25519')
  const identity = derive('ed25519')
  const shown = Buffer.concat([toRawKey(createPublicKey(identity)), toRawKey(createPublicKey(sealing))])
  return { sealing, identity, known: toPublicKeys(shown) }
}

/** Undefined if the text is not two keys. */
export function parsePublicKeys(text: string): PublicKeys | undefined {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.length === 64 && bytes.toString('base64url') === text ? toPublicKeys(bytes) : undefined
}

function toPublicKeys(bytes: Buffer): PublicKeys {
  return {
    address: toBase32(createHash('sha256').update(bytes).digest()).slice(0, 26),
    text: bytes.toString('base64url'),
    identity: toPublicKey(bytes.subarray(0, 32), 'ed25519'),
    sealing: toPublicKey(bytes.subarray(32), 'x25519'),
  }
}

export function toPublicKey(raw: Uint8Array, curve: Curve): KeyObject {
  const jwk = { kty: 'OKP', crv: curves[curve], x: Buffer.from(raw).toString('base64url') }
  return createPublicKey({ key: jwk, format: 'jwk' })
}

/** The 32 bytes of a public key. */
export function toRawKey(key: KeyObject): Buffer {
  return Buffer.from(key.export({ format: 'jwk' }).x ?? '', 'base64url')
}

/** RFC 4648, 6, in lower case and without padding. */
function toBase32(bytes: Uint8Array): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  const digits = 'abcdefghijklmnopqrstuvwxyz234567'
  return (bits.match(/.{5}/g) ?? []).map((five) => digits[Number.parseInt(five, 2)]).join('')
}

export const isAddress = (text: string) => /^[a-z2-7]{26}$/.test(text)

/** A call of a home to its relay. `target`: path and query. */
export type HomeCall = {
  readonly method: string
  readonly host: string
  readonly target: string
  readonly body: Uint8Array
}

/** The time that the clocks of relay and home may differ. */
const maxSkewMs = 60_000

/** The headers that prove a call. `now`: milliseconds since the epoch. */
export function signCall({ identity, known }: HomeKeys, call: HomeCall, now: number): Record<string, string> {
  const signature = sign(undefined, toSigned(call, String(now)), identity)
  return {
    'x-relay-keys': known.text,
    'x-relay-time': String(now),
    'x-relay-signature': signature.toString('base64url'),
  }
}

/** The keys of the home that made the call; undefined if the call has no valid proof. */
export function proveCall(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  call: HomeCall,
  now: number,
): PublicKeys | undefined {
  const time = String(headers['x-relay-time'])
  const keys = parsePublicKeys(String(headers['x-relay-keys']))
  if (keys === undefined || !(Math.abs(now - Number(time)) <= maxSkewMs)) return undefined
  const signature = Buffer.from(String(headers['x-relay-signature']), 'base64url')
  return verify(undefined, toSigned(call, time), keys.identity, signature) ? keys : undefined
}

function toSigned({ method, host, target, body }: HomeCall, time: string): Buffer {
  const digest = createHash('sha256').update(body).digest('hex')
  return Buffer.from(['hookloom-relay/1', method, host, target, time, digest].join('\n'))
}
