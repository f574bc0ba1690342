// Renders a kept request as a command for bash or zsh. The command sends the same body and reads no file. The shell expands no part of the
// request, and each character of the command is visible.
import type { RequestFields } from '../model/api/answers.ts'

/**
 * The headers that the command leaves out: those of the connection, of browsers and of proxies, and the idempotency key, with which the copy
 * would be a duplicate.
 */
const connectionHeader =
  /^(host|connection|keep-alive|content-length|transfer-encoding|te|expect|accept|accept-(encoding|language|charset)|cache-control|pragma|priority|dnt|origin|referer|sec-.*|upgrade-insecure-requests|via|forwarded|x-forwarded-.*|x-real-ip|idempotency-key)$/
/** The characters of a header name (RFC 9110). A name with `@` would make curl read a file. */
const headerName = /^[\w!#$%&'*+.^`|~-]+$/

/** False for a body with a NUL or with bytes that are no text: an argument cannot contain them. */
export function isCopyable({ body, encoding }: RequestFields): boolean {
  return encoding === 'utf8' && !body.includes('\0')
}

/** Renders the command. It reads the token from a variable. */
export function toCurl(
  { method, url, headers, body }: Pick<RequestFields, 'method' | 'url' | 'headers' | 'body'>,
  hooksUrl: string,
  hook: string,
): string {
  const search = url.includes('?') ? url.slice(url.indexOf('?')) : ''
  const sent = Object.entries(headers).filter(
    ([name, value]) =>
      headerName.test(name) && !connectionHeader.test(name) && value !== '[secret]' && !/[\r\n\0]/.test(value),
  )
  // without this header, curl would add a content type
  const untyped = sent.some(([name]) => name === 'content-type') ? [] : [`-H 'content-type:'`]
  const lines = [
    `curl -sS --globoff --path-as-is -X ${quoteForShell(method)} ${quoteForShell(`${hooksUrl}/${hook}${search}`)}`,
    '-H "Authorization: Bearer $HOOKLOOM_TOKEN"',
    // a new key each second: otherwise the sender's delivery id would make the copy a duplicate
    '-H "Idempotency-Key: copy-$(date +%s)"',
    ...sent.map(([name, value]) => `-H ${quoteForShell(value.trim() === '' ? `${name};` : `${name}: ${value}`)}`),
    ...untyped,
    // with `--data` or `--data-binary`, curl would read a file if the body begins with @
    `--data-raw ${quoteForShell(body, hidden)}`,
  ]
  return lines.join(' \\\n  ')
}

/** Invisible characters. They are escaped in a body. */
const hidden = /[\p{Cc}\p{Cf}\u2028\u2029]/u
/** Characters that are escaped in a header: there, each character is one byte, and a shell would write these characters in UTF-8. */
const nonAscii = /[^\x20-\x7e]/

/** Quotes a word for a shell. The characters that `odd` matches become octal escapes of their bytes. */
export function quoteForShell(text: string, odd: RegExp = nonAscii): string {
  if (!odd.test(text)) return `'${text.replaceAll("'", `'\\''`)}'`
  // a single quote would end the word, and an interactive shell would replace `!` by a command of its history, so both are escaped too
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
