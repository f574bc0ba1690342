// Keys that only the sender can make, until the operator has put them in: values that let nobody in, known by how they begin.
import { randomBytes } from 'node:crypto'
import { type Finding, toLeaves } from '../../loader/config/warnings.ts'
import type { Config } from '../../model/config.ts'
import { toDottedPath } from '../../model/issue.ts'

/** In hexadecimal, which is a key of 32 bytes, a base64 text and a secret all at once. */
const mark = Buffer.from('placeholder').toString('hex')
const keyBytes = 32

export function newPlaceholder(): string {
  return mark + randomBytes(keyBytes - mark.length / 2).toString('hex')
}

export function checkPlaceholders(config: Config): Finding {
  const name = 'placeholders'
  const leaves = toLeaves({ hooks: config.hooks }, [])
  const places = leaves.filter(({ value }) => isPlaceholder(value)).map(({ path }) => toDottedPath(path))
  if (places.length === 0) return { name, ok: true, detail: 'nothing waits for what a sender shows' }
  const are = places.length === 1 ? 'is a placeholder that lets' : 'are placeholders that let'
  return {
    name,
    ok: false,
    detail: `${places.join(', ')} ${are} nobody in: put there what the sender shows.`,
  }
}

/** Also of a URL: `.example` is nobody's (RFC 2606). */
function isPlaceholder(value: unknown): boolean {
  if (typeof value !== 'string') return false
  return value.startsWith(mark) || /^https?:\/\/[^/?#]*\.example(?:[/?#]|$)/i.test(value)
}
