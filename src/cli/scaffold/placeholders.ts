// Placeholders for keys that only the sender can create. A placeholder admits no request, and is recognised by its prefix.
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { privateMode } from '../../base/files.ts'
import { writeFileAtomic } from '../../gateway/config/config-file.ts'
import { envFile, readConfigText } from '../../gateway/config/text.ts'
import { type ConfigFinding, listLeaves } from '../../gateway/config/warnings.ts'
import type { Config } from '../../model/config/config.ts'
import { toDottedPath } from '../../core/model/issue.ts'

/** The prefix of a placeholder. Hexadecimal, so that the placeholder is a valid 32-byte key, base64 text and secret. */
const mark = Buffer.from('placeholder').toString('hex')
const keyBytes = 32

export function generatePlaceholder(): string {
  return mark + randomBytes(keyBytes - mark.length / 2).toString('hex')
}

/** Adds lines with placeholders of secrets to `.env`, and returns its path. */
export async function addPlaceholderSecrets(dir: string, lines: readonly string[]): Promise<string> {
  const file = join(dir, envFile)
  const before = (readConfigText(dir, envFile) ?? '').replace(/([^\n])$/, '$1\n')
  const note = '# a placeholder: replace it with the secret that you and the sender share\n'
  await writeFileAtomic(file, before + lines.map((line) => note + line).join(''), privateMode)
  return file
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

/** A URL is a placeholder if its host ends with `.example`, which is reserved (RFC 2606). */
function isPlaceholder(value: unknown): boolean {
  if (typeof value !== 'string') return false
  return value.startsWith(mark) || /^https?:\/\/[^/?#]*\.example(?:[/?#]|$)/i.test(value)
}
