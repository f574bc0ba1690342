// Values that several schemas share.
import { z } from 'zod'
import type { SentValue } from '../../base/json.ts'
import { readDurationMs } from '../../base/time.ts'

/** A value of a parsed JSON text. `z.json()` would copy it, and drop a key such as `__proto__`. */
export const parsedJson = z.custom<SentValue>((value) => value !== undefined, 'is JSON')

/** A text that is not blank. */
export const nonBlank = z.string().refine((text) => text.trim() !== '', 'must not be blank')

export const aFunction = z.custom<unknown>((value) => typeof value === 'function', 'must be a function')

/** The path of a file, a folder or a program. It has no control characters, because service files and terminals would obey them. */
export const filePath = nonBlank.refine((text) => !/\p{Cc}/u.test(text), 'must not have control characters')

/** The name of an npm package. */
export const packageNamePattern = /^(?:@[a-z\d~-][\w.~-]*\/)?[a-z\d~-][\w.~-]*$/

/** Why a URL cannot be requested; undefined if it can. The reason does not show the URL. */
function findUrlFault(text: string): string | undefined {
  if (!URL.canParse(text)) return 'must be an http or https URL'
  const { username, password } = new URL(text)
  if (username === '' && password === '') return undefined
  return 'must not contain a user name or a password: no request can be made to such a URL'
}

/** A segment `.` or `..`, also percent-encoded, that a client resolves before it sends the path. */
const dotSegment = /[/\\](?:\.|%2e){1,2}(?=[/\\?#]|$)/i

/** URL of an API: http or https, without a query. Slashes at its end are removed. */
export const httpUrl = z
  .string()
  .regex(/^https?:\/\/[^\s?#\\]+$/i, { error: 'must be an http or https URL without query', abort: true })
  .check(({ value, issues }) => {
    const why = findUrlFault(value) ?? (dotSegment.test(value) ? 'must not have "." or ".." in its path' : undefined)
    if (why !== undefined) issues.push({ code: 'custom', message: why, input: value })
  })
  .transform((text) => text.replace(/\/+$/, ''))

const loopbackHosts = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

/** URL of an API that gets a credential, which must not be sent in clear over a network. */
export const apiUrl = httpUrl.refine(
  (text) => text.toLowerCase().startsWith('https:') || loopbackHosts.test(new URL(text).hostname),
  'must be an https URL, because the credential is sent to it',
)

/** URL of one request: http or https, with its query. */
export const endpointUrl = z
  .string()
  .regex(/^https?:\/\/\S+$/i, { error: 'must be an http or https URL', abort: true })
  .check(({ value, issues }) => {
    const why = findUrlFault(value)
    if (why !== undefined) issues.push({ code: 'custom', message: why, input: value })
  })

/** A name or a token that becomes part of a URL path and cannot change the rest of it. */
export const pathPart = z.string().regex(/^(?!\.{1,2}$)[\w.:@~-]+$/, 'must be made of letters, digits and -._:@~')

/** An id: some senders write it as a number, others as a text. */
export const senderId = z.union([z.int().positive().transform(String), pathPart])

const networks = [z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()]

/** An IP address, or a CIDR. */
export const network = z
  .string()
  .refine(
    (text) => networks.some((schema) => schema.safeParse(text).success),
    'must be an IP address or a CIDR such as 10.0.0.0/8',
  )

/** A host name or an IP address, as in the header `Host`, without a port. */
export const hostName = z
  .string()
  .regex(/^(?:[a-z\d_-]+(?:\.[a-z\d_-]+)*|\[[\da-f:.]+\])$/i, 'must be a host name without a port')

/** A duration such as `30m`, `1h`, `45s` or `2d`. A plain number is minutes. Returns milliseconds. */
export const duration = z
  .union([z.string(), z.number().nonnegative()])
  .refine((given) => readDurationMs(given) !== undefined, 'must be a duration such as 30m, 1h or 0')
  .transform((given) => readDurationMs(given) ?? 0)

/** IANA time zone. */
export const timezone = nonBlank.refine(isTimezone, 'must be a time zone such as Europe/Berlin')

function isTimezone(zone: string): boolean {
  try {
    return Intl.DateTimeFormat('en', { timeZone: zone }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}

/** How long a job retries, and so which outages it survives. */
export const RetryConfig = z.strictObject({
  for: duration
    .prefault('24h')
    .describe(
      'Time for which a failed attempt is repeated if it had no effect, such as 1h or 24h. A plain number is minutes. The pauses grow to 15 minutes. Shorten it if a late result is worse than none.',
    ),
})
