// How a transform says that a payload is not what it takes: the sender's fault, and no failure of the code.
import type { z } from 'zod'
import { describeFirstIssue } from './issue.ts'
import type { JsonValue } from '../base/json.ts'

/** What zod's schemas have, and others may have. */
export type PayloadSchema<Payload> = {
  safeParse(payload: unknown): { success: true; data: Payload } | { success: false; error?: unknown }
}

/** A mark and no class: the code that throws it and the code that reads it are bundled apart. */
export const refusalMark = Symbol.for('hookloom.refusal')

const maxSentenceChars = 300

/** The payload as the schema gives it. Throws a refusal that names the first path and what was expected there, never a value. */
export function parsePayload<Payload>(schema: PayloadSchema<Payload>, payload: JsonValue): Payload {
  const parsed = schema.safeParse(payload)
  if (parsed.success) return parsed.data
  const sentence = isZodError(parsed.error)
    ? describeFirstIssue(parsed.error, payload)
    : 'it does not have the form that this hook expects'
  // a path may run through keys of the payload: they are the sender's own, but not without end
  const detail = `The payload does not fit: ${sentence.slice(0, maxSentenceChars)}.`
  throw Object.assign(new Error('The payload does not fit.'), { [refusalMark]: detail })
}

function isZodError(error: unknown): error is z.ZodError {
  if (typeof error !== 'object' || error === null || !('issues' in error)) return false
  const { issues } = error
  return Array.isArray(issues) && issues.every((issue) => Array.isArray(issue?.path) && typeof issue.code === 'string')
}
