// The rules for every answer: a request id, and a refusal with one code of the table and no internal detail.
import { expect } from 'vitest'
import { z } from 'zod'
import { type ProblemCode, problems } from '../../src/core/model/problem.ts'
import { gatewayToken, hookToken } from './gateway.ts'
import type { Reply } from './wire.ts'

const codes = Object.keys(problems)
const Refusal = z.strictObject({
  ok: z.literal(false),
  error: z.string().min(1),
  code: z.custom<ProblemCode>((code) => typeof code === 'string' && codes.includes(code)),
})
const Accepted = z.looseObject({ ok: z.literal(true), deliveryId: z.string().min(1) })

/** Matches lines of a stack, and file names of source code and packages. */
const inside = /\bat .+:\d+:\d+|node_modules|node:internal|\.[mc]?[tj]s:\d+|\bzod\b/i

/** Checks that an answer of the hook port obeys the rules for every answer. */
export function expectSound({ status, headers, body }: Reply): void {
  expect(headers['x-request-id']).toMatch(/^[\w-]{8,}$/)
  expect([status, status < 500 || status === 503]).toEqual([status, true])
  expect(body).not.toMatch(inside)
  expect(body).not.toContain(hookToken)
  expect(body).not.toContain(gatewayToken)
  if (status === 204) expect(body).toBe('')
  else expect(headers['content-type']).toMatch(/^application\/json\b/)
}

/** The result in a valid answer: `accepted`, `skipped`, or the code of a refusal, whose status must belong to the code. */
export function readVerdict(reply: Reply): ProblemCode | 'accepted' | 'skipped' {
  expectSound(reply)
  if (reply.status === 204) return 'skipped'
  const body: unknown = JSON.parse(reply.body)
  if (reply.status === 200) {
    Accepted.parse(body)
    return 'accepted'
  }
  const { code } = Refusal.parse(body)
  expect(reply.status).toBe(problems[code].status)
  return code
}

/** The id of an accepted delivery. */
export function readDeliveryId(reply: Reply): string {
  expect([reply.status, reply.body]).toEqual([200, expect.stringContaining('"deliveryId"')])
  return Accepted.parse(JSON.parse(reply.body)).deliveryId
}
