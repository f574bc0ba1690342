// Text in the charsets of the WHATWG Encoding Standard, as browsers read them.

export type Charset = {
  /** Whether each byte is one character and the first 128 are ASCII. Then no choice of the charset changes where a text, a tag or a field ends. */
  readonly isSingleByte: boolean
  /** The text without a byte order mark; undefined if the bytes are invalid in the charset. */
  readonly decode: (bytes: Uint8Array) => string | undefined
}

/** The charset that a label names; undefined if the platform does not know it. ASCII is read as UTF-8. */
export function findCharset(label: string): Charset | undefined {
  if (/^(us-)?ascii$/i.test(label.trim())) return utf8
  try {
    const { encoding } = new TextDecoder(label)
    const charset = known.get(encoding) ?? createCharset(encoding)
    known.set(encoding, charset)
    return charset
  } catch {
    return undefined
  }
}

/** Undefined if the bytes do not begin with a byte order mark of UTF-16. */
export function findMarkedCharset([first, second]: Uint8Array): Charset | undefined {
  if (first === 0xff && second === 0xfe) return findCharset('utf-16le')
  return first === 0xfe && second === 0xff ? findCharset('utf-16be') : undefined
}

const everyByte = Uint8Array.from({ length: 256 }, (_, byte) => byte)

function createCharset(encoding: string): Charset {
  const decoder = new TextDecoder(encoding, { fatal: true })
  const sample = new TextDecoder(encoding).decode(everyByte)
  return {
    isSingleByte:
      sample.length === 256 && sample.startsWith(Buffer.from(everyByte.subarray(0, 128)).toString('latin1')),
    decode(bytes) {
      try {
        return decoder.decode(bytes)
      } catch {
        return undefined
      }
    },
  }
}

export const utf8 = createCharset('utf-8')

/** The characters of the bytes 0x80 to 0x9f. Some versions of Node decode them as control characters of Latin-1. */
const upper = '€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ'

/** Also the charset of everything that is labelled Latin-1, as the standard says. Every text is valid in it. */
export const windows1252: Charset = {
  isSingleByte: true,
  decode: (bytes) =>
    Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      .toString('latin1')
      .replaceAll(/[\u0080-\u009f]/g, (character) => upper[character.charCodeAt(0) - 0x80] ?? character),
}

/** At most one for each encoding of the standard. */
const known = new Map([
  ['utf-8', utf8],
  ['windows-1252', windows1252],
])
