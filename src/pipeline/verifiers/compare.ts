// Secrets and digests are compared in a time that says nothing about them.
import { createHash, timingSafeEqual } from 'node:crypto'
import type { DigestEncoding } from '../../model/verify.ts'

/**
 * Whether a signature is this digest, both as text. As text, because decoders forgive: they skip what is no hex, and two
 * base64 texts can be the same bytes. Only the case of hex digits is free.
 */
export function isDigest(presented: string, digest: string, encoding: DigestEncoding): boolean {
  // the length of a digest is no secret
  if (presented.length !== digest.length) return false
  const bytes = Buffer.from(encoding === 'hex' ? presented.toLowerCase() : presented)
  return bytes.length === digest.length && timingSafeEqual(bytes, Buffer.from(digest))
}

/** Secrets, of which one is recognised without its length being told. */
export function createSecretSet(secrets: readonly string[]): (presented: string) => boolean {
  const known = secrets.map(toDigest)
  return (presented) => {
    const digest = toDigest(presented)
    let found = false
    for (const one of known) if (timingSafeEqual(one, digest)) found = true
    return found
  }
}

function toDigest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
