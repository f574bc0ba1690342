// Tokens with few rights, and their rights on the hook port and on the admin port.
import { z } from 'zod'
import { plainName } from '../../base/names.ts'
import { type AdminRight, adminRights, Rights } from '../api/rights.ts'
import { nonBlank } from '../../core/model/values.ts'

const sendPrefix = 'send:'

const ExpiresAt = z.union([z.iso.date(), z.iso.datetime({ offset: true })], {
  error: 'must be a date such as 2027-01-31, or a time such as 2027-01-31T12:00:00Z',
})

const TokenConfig = z.strictObject({
  token: nonBlank.describe('The token, of at least 16 bytes. It must differ from every other token.'),
  may: Rights.describe(
    'Rights. On the hook port: `send:<hook>`, where `*` stands for any text, and `runs`: to wait for, see and cancel the runs that this token started. On the admin port: `read`, `operate`, which also changes deliveries and runs, and `admin`, which may do everything.',
  ),
  expiresAt: ExpiresAt.optional().describe(
    'From this moment on, the token is not valid. A date such as 2027-01-31 is its beginning in UTC.',
  ),
})
type TokenConfig = z.infer<typeof TokenConfig>

export const TokensConfig = z
  .record(plainName, TokenConfig)
  .default({})
  .describe(
    'Tokens that may do less than `hooks.token` and `gateway.token`, by name. `hookloom token new` makes one without a change of this file.',
  )
export type TokensConfig = Readonly<Record<string, TokenConfig>>

/** Whether rights allow a request to this hook. Names are compared as in the choice of a mapping: exactly and undecoded. */
export function maySend(rights: readonly string[], hook: string): boolean {
  return rights.some((right) => right.startsWith(sendPrefix) && matchesPattern(hook, right.slice(sendPrefix.length)))
}

/** `*` matches any text, slashes included. The match takes one pass, because an attacker chooses the name. */
function matchesPattern(name: string, pattern: string): boolean {
  const [first = '', ...rest] = pattern.split('*')
  const last = rest.pop()
  if (last === undefined) return name === first
  if (!name.startsWith(first)) return false
  let at = first.length
  for (const part of rest) {
    const found = name.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return name.length - at >= last.length && name.endsWith(last)
}

/** The strongest right on the admin port; undefined without one. */
export function findAdminRight(rights: readonly string[]): AdminRight | undefined {
  return adminRights.findLast((right) => rights.includes(right))
}

/** Whether a right on the admin port includes another right. */
export function includesRight(right: AdminRight, needed: AdminRight): boolean {
  return adminRights.indexOf(right) >= adminRights.indexOf(needed)
}
