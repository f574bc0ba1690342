// Placeholders for keys that only the sender can create. They admit no request, and are recognised by their prefix.
import { randomBytes } from 'node:crypto'
import { type ConfigFinding, listLeaves } from '../../config/warnings.ts'
import type { Config } from '../../model/config/config.ts'
import { toDottedPath } from '../../model/config/issue.ts'

/** Hexadecimal: it is a valid key of 32 bytes, a valid base64 text and a valid secret. */
const mark = Buffer.from('placeholder').toString('hex')
const keyBytes = 32

export function generatePlaceholder(): string {
  return mark + randomBytes(keyBytes - mark.length / 2).toString('hex')
}

export function checkPlaceholders(config: Config): ConfigFinding {
  const name = 'placeholders'
  const leaves = listLeaves({ hooks: config.hooks, models: config.models, channels: config.channels }, [])
  const places = leaves.filter(({ value }) => isPlaceholder(value)).map(({ path }) => toDottedPath(path))
  if (places.length === 0) return { name, ok: true, detail: 'every key is set' }
  const sentence =
    places.length === 1
      ? 'is a placeholder: replace it with the key'
      : 'are placeholders: replace each of them with the key'
  return {
    name,
    ok: false,
    detail: `${places.join(', ')} ${sentence} that the sender or the provider shows.`,
  }
}

/** The value may be a URL: `.example` is reserved (RFC 2606). */
function isPlaceholder(value: unknown): boolean {
  if (typeof value !== 'string') return false
  return value.startsWith(mark) || /^https?:\/\/[^/?#]*\.example(?:[/?#]|$)/i.test(value)
}
