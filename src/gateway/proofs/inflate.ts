// Inflates a body under its limit, or throws a Problem.
import { promisify } from 'node:util'
import * as zlib from 'node:zlib'
import { isGzip } from '../../base/http.ts'
import { Problem } from '../../core/model/problem.ts'

/** `isProved`: whether the request was admitted by a proof, not only by the hook token. */
type InflateOptions = {
  /** The limit of the inflated body, in bytes. */
  readonly limit: number
  /** Called with the number of bytes that are needed in addition; a negative number gives bytes back. Throws if there is no memory left. */
  readonly take?: ((bytes: number) => void) | undefined
  readonly contentEncoding: string | undefined
  readonly isProved: boolean
}

/**
 * The body without its compression; the same object if it has none. A proof covers the bytes that were sent, not the header, so the bytes of a
 * proved body show whether it is compressed. Throws `body-too-large`, `body-invalid` if it does not inflate, `encoding-unsupported` (for a
 * proved body also if the header declares `deflate` or `br` and the bytes are not gzip), and the errors of `take`.
 */
export async function inflateBody(
  raw: Buffer<ArrayBuffer>,
  { contentEncoding, isProved, limit, take = () => {} }: InflateOptions,
): Promise<Buffer<ArrayBuffer>> {
  const declared = readEncoding(contentEncoding)
  const encoding = isProved ? detectEncoding(raw, declared) : declared
  // an empty body is valid in every encoding, but no inflater accepts it
  if (encoding === 'identity' || raw.length === 0) return raw
  // the memory is taken before inflating: many bodies may inflate at the same time
  take(limit)
  const bytes = await inflate(raw, encoding, limit)
  take(bytes.length - limit)
  return bytes
}

type Encoding = 'identity' | 'gzip' | 'deflate' | 'br'

/** Throws `encoding-unsupported`. */
export function readEncoding(header: string | undefined): Encoding {
  const encoding = header?.trim().toLowerCase() ?? ''
  switch (encoding) {
    case '':
      return 'identity'
    // RFC 9110, 8.4.1.3: x-gzip is gzip
    case 'x-gzip':
      return 'gzip'
    case 'identity':
    case 'gzip':
    case 'deflate':
    case 'br':
      return encoding
    default:
      // several encodings are also refused: each layer multiplies the cost of a small body
      throw new Problem('encoding-unsupported', 'Content-Encoding must be one of gzip, deflate, br or identity.')
  }
}

/** Only gzip is known by its bytes. */
function detectEncoding(raw: Buffer, declared: Encoding): Encoding {
  if (isGzip(raw)) return 'gzip'
  if (declared === 'identity' || declared === 'gzip' || raw.length === 0) return 'identity'
  throw new Problem(
    'encoding-unsupported',
    'Content-Encoding must be gzip or identity, because the proof of this request covers the bytes as they were sent.',
  )
}

const inflaters = {
  gzip: promisify<Buffer, zlib.ZlibOptions, Buffer>(zlib.gunzip),
  br: promisify<Buffer, zlib.BrotliOptions, Buffer>(zlib.brotliDecompress),
  zlib: promisify<Buffer, zlib.ZlibOptions, Buffer>(zlib.inflate),
  raw: promisify<Buffer, zlib.ZlibOptions, Buffer>(zlib.inflateRaw),
}

async function inflate(raw: Buffer, encoding: Exclude<Encoding, 'identity'>, limit: number) {
  const format = encoding === 'deflate' ? (hasZlibHeader(raw) ? 'zlib' : 'raw') : encoding
  try {
    // inflating stops at the limit, so a compression bomb costs no more than a body
    const bytes = await inflaters[format](raw, { maxOutputLength: limit })
    return toOwnBuffer(bytes, bytes.length)
  } catch (cause) {
    if (cause instanceof RangeError) throw buildTooLargeProblem(limit)
    throw new Problem('body-invalid', `The body is not complete ${encoding} data.`, { cause })
  }
}

/** RFC 1950, 2.2. The RFC requires this header for `deflate`; many senders leave it out. */
function hasZlibHeader(raw: Buffer): boolean {
  return raw.length > 1 && ((raw[0] ?? 0) & 0x0f) === 8 && raw.readUInt16BE(0) % 31 === 0
}

/** A copy of the first `size` bytes in its own memory, filled with zeros if `bytes` is shorter. */
export function toOwnBuffer(bytes: Buffer, size: number): Buffer<ArrayBuffer> {
  const own = Buffer.from(new ArrayBuffer(size))
  bytes.copy(own)
  return own
}

export function buildTooLargeProblem(limit: number): Problem {
  return new Problem('body-too-large', `The body is over the limit of ${limit} bytes.`)
}
