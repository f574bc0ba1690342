// A kept request as a line for bash or zsh. It sends these bytes and nothing else: it reads no file, expands nothing and hides nothing.
import type { RequestFields } from '../model/api-types.ts'

/** Headers of the connection, which are curl's own, and the key with which the copy would be a duplicate. */
const own = /^(host|connection|content-length|transfer-encoding|accept-encoding|expect|idempotency-key)$/
/** The characters of a header's name (RFC 9110). A name with `@` would make curl read a file. */
const isHeaderName = /^[\w!#$%&'*+.^`|~-]+$/

/** An argument cannot carry a NUL, nor bytes that are not text. */
export function isCopyable({ body, encoding }: RequestFields): boolean {
  return encoding === 'utf8' && !body.includes('\0')
}

/** The token is a variable. */
export function toCurl({ method, url, headers, body }: RequestFields, hooksUrl: string, hook: string): string {
  const search = url.includes('?') ? url.slice(url.indexOf('?')) : ''
  const sent = Object.entries(headers).filter(
    ([name, value]) => isHeaderName.test(name) && !own.test(name) && value !== '[secret]' && !/[\r\n\0]/.test(value),
  )
  // curl gives a body without a type one of its own, unless the header is named without a value
  const untyped = sent.some(([name]) => name === 'content-type') ? [] : [`-H 'content-type:'`]
  const lines = [
    `curl -sS --globoff --path-as-is -X ${quoteForShell(method)} ${quoteForShell(`${hooksUrl}/${hook}${search}`)}`,
    '-H "Authorization: Bearer $HOOKLOOM_TOKEN"',
    ...sent.map(([name, value]) => `-H ${quoteForShell(value.trim() === '' ? `${name};` : `${name}: ${value}`)}`),
    ...untyped,
    // `--data` and `--data-binary` take a body that begins with @ for the name of a file
    `--data-raw ${quoteForShell(body, hidden)}`,
  ]
  return lines.join(' \\\n  ')
}

/** What nobody sees, or sees as something else. */
const hidden = /[\p{Cc}\p{Cf}\u2028\u2029]/u
/** Of a line of HTTP, each character is a byte, and a shell would write all others in UTF-8. */
const nonAscii = /[^\x20-\x7e]/

/** A word for a shell. If it has such characters, their bytes are written as numbers. */
function quoteForShell(text: string, odd: RegExp = nonAscii): string {
  if (!odd.test(text)) return `'${text.replaceAll("'", `'\\''`)}'`
  // `!` and quotes too: an interactive shell looks for its history before it reads the word
  return `$'${text.replace(new RegExp(`[\\\\'!]|${odd.source}`, 'gu'), odd === nonAscii ? fromLatin1 : fromUtf8)}'`
}

function fromUtf8(character: string): string {
  return toOctal(new TextEncoder().encode(character))
}

function fromLatin1(character: string): string {
  const code = character.charCodeAt(0)
  return code > 0xff ? fromUtf8(character) : toOctal([code])
}

function toOctal(bytes: Iterable<number>): string {
  return [...bytes].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
}
