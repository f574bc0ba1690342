// Describes an exception in words. Any code may have thrown it, so reading a property may throw, and any text may be long.
import { cut } from './text.ts'

const maxReasonChars = 500

/** The kind of error, for a log line. The message is left out, because it may quote the payload. */
export function toErrorName(thrown: unknown): string {
  try {
    return thrown instanceof Error ? cut(String(thrown.name), 100) : typeof thrown
  } catch {
    return 'something unreadable'
  }
}

/**
 * An exception for a log: its kind, its code, and its stack without the message, which may quote a payload. A message of the operating system, such
 * as "EACCES: permission denied", is kept.
 */
export function toLoggedError(thrown: unknown): object {
  if (!(thrown instanceof Error)) return { type: toErrorName(thrown) }
  try {
    const { message, stack = '' } = thrown
    const frames = stack.slice(Math.max(0, stack.indexOf(message)) + message.length).match(/^ {4}at .*$/gm) ?? []
    const isOfSystem = 'syscall' in thrown && 'errno' in thrown
    const code = 'code' in thrown && typeof thrown.code === 'string' ? { code: cut(thrown.code, 40) } : {}
    return { type: toErrorName(thrown), ...code, ...(isOfSystem ? { message } : {}), stack: frames.slice(0, 20) }
  } catch {
    return { type: toErrorName(thrown) }
  }
}

/** The first code in capitals of an exception or its causes, such as ECONNREFUSED or CERT_HAS_EXPIRED. fetch puts it into a nested cause. */
export function findErrorCode(thrown: unknown): string | undefined {
  let below = thrown
  for (let depth = 0; depth < 5 && below instanceof Error; depth++) {
    if ('code' in below && typeof below.code === 'string' && /^[A-Z][A-Z\d_]+$/.test(below.code)) return below.code
    below = below.cause
  }
  return undefined
}

/** Kind and message on one line, for the operator only: the message may quote a payload. */
export function toErrorText(thrown: unknown): string {
  try {
    const text = thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : `${typeof thrown}: ${String(thrown)}`
    // cut before the replacement too, because the message may be very long
    return cut(
      text
        .slice(0, 2 * maxReasonChars)
        .replace(/\s+/g, ' ')
        .trim(),
      maxReasonChars,
    )
  } catch {
    return 'something unreadable'
  }
}
