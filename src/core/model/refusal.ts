// How a transform refuses a payload that its schema does not accept: an error of the sender, not a failure of the code.
import type { z } from 'zod'
import { isHeld } from '../../base/sent-number.ts'
import { cut } from '../../base/text.ts'
import { describeFirstIssue, readAt } from './issue.ts'

/** The part of zod's schemas that is used. Schemas of other libraries may have it too. */
export type PayloadSchema<Payload> = {
  safeParse(payload: unknown): { success: true; data: Payload } | { success: false; error?: unknown }
}

/**
 * The key of the sentence in a thrown refusal. It is a registered symbol and not a class, because the code that throws a refusal and the code that
 * catches it are bundled separately.
 */
export const refusalMark = Symbol.for('hookloom.refusal')

/**
 * The key under which a function of `defineTransform` has its schema. It is a registered symbol, because the code that sets the schema and the code
 * that reads it are bundled separately.
 */
export const schemaMark = Symbol.for('hookloom.schema')

const maxSentenceChars = 300

/** The payload that the schema returns. Throws a refusal that names the first path and the expected value, but never the value itself. */
export function parsePayload<Payload>(schema: PayloadSchema<Payload>, payload: unknown): Payload {
  const parsed = schema.safeParse(payload)
  if (parsed.success) return parsed.data
  const sentence = isZodError(parsed.error)
    ? describeFirstIssue(parsed.error, payload)
    : 'it does not have the form that this hook expects'
  // a path may contain keys of the payload, which may be very long
  const detail = `The payload does not fit: ${cut(sentence, maxSentenceChars)}.${describeLongNumber(parsed.error, payload)}`
  throw Object.assign(new Error('The payload does not fit.'), { [refusalMark]: detail })
}

/** What to do if the schema asks for a number and the value is the text of a number that a double does not hold; otherwise empty. */
function describeLongNumber(error: unknown, payload: unknown): string {
  const issue = isZodError(error) ? error.issues[0] : undefined
  if (issue?.code !== 'invalid_type' || !['number', 'int'].includes(issue.expected)) return ''
  const value = readAt(payload, issue.path)
  if (typeof value !== 'string' || !jsonNumber.test(value) || isHeld(value)) return ''
  return ' A number that a double does not hold is a string of its digits: use z.union([z.number(), z.string()]).'
}

const jsonNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

function isZodError(error: unknown): error is z.ZodError {
  if (typeof error !== 'object' || error === null || !('issues' in error)) return false
  const { issues } = error
  return Array.isArray(issues) && issues.every((issue) => Array.isArray(issue?.path) && typeof issue.code === 'string')
}
