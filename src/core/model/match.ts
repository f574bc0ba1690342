// The conditions of a mapping.
import { z } from 'zod'
import { findDigits } from '../../base/sent-number.ts'
import { findExpressionError } from '../../base/expression.ts'
import { trimSlashes } from '../../base/text.ts'
import { maxHookChars, maxSourceChars } from './delivery.ts'
import { nonBlank } from './values.ts'

// a module may have a number that JavaScript has rounded already
const HeldNumber = z
  .number()
  .refine((value) => findDigits(value) === undefined, 'is in quotes, because a double does not hold the number')
const Scalar = z.union([z.string(), HeldNumber, z.boolean(), z.null()])
export type Scalar = z.infer<typeof Scalar>

const maxExpressionChars = 500
const Expression = nonBlank
  .max(maxExpressionChars)
  .superRefine((expression, context) => {
    const error = findExpressionError(expression)
    if (error !== undefined) context.addIssue(`must be a regular expression of RE2: ${error}`)
  })
  .describe(
    'A regular expression in the syntax of RE2, which must match a part of the text. `(?i)` at its start ignores case.',
  )

const needsTest = 'must have at least one test, such as "not" or "exists"'
const hasTest = (tests: object): boolean => Object.keys(tests).length > 0

const notDescription =
  'A value, a list of values, or an expression that the value must not be. A missing value is none of them.'

/** Tests of one text, which must all be true. */
const textTests = {
  not: z
    .union([z.string(), z.array(z.string()).min(1), z.strictObject({ matches: Expression })])
    .optional()
    .describe(notDescription),
  exists: z.boolean().optional().describe('Whether there is a value. Null is a value.'),
  matches: Expression.optional(),
}
const isPossible = ({ exists, ...tests }: { exists?: boolean | undefined }): boolean =>
  exists !== false || Object.keys(tests).every((name) => name === 'not')
const needsPossible = 'must not ask for a missing value and for what only a value can be'
type Patterns = { matches?: string | undefined; not?: unknown }
const isFree = ({ matches, not }: Patterns): boolean =>
  matches === undefined || !(typeof not === 'object' && not !== null && 'matches' in not && not.matches === matches)
const needsFree = 'must not ask for what it denies'
const TextTests = z
  .strictObject(textTests)
  .refine(hasTest, needsTest)
  .refine(isPossible, needsPossible)
  .refine(isFree, needsFree)

/** Tests of one value of the payload, which must all be true. */
const ValueTests = z
  .strictObject({
    ...textTests,
    not: z
      .union([Scalar, z.array(Scalar).min(1), z.strictObject({ matches: Expression })])
      .optional()
      .describe(notDescription),
    gt: z.number().optional().describe('The value is a number greater than this one.'),
    gte: z.number().optional().describe('The value is a number greater than this one, or equal to it.'),
    lt: z.number().optional().describe('The value is a number less than this one.'),
    lte: z.number().optional().describe('The value is a number less than this one, or equal to it.'),
  })
  .refine(hasTest, needsTest)
  .refine(isPossible, needsPossible)
  .refine(isFree, needsFree)
  .refine(({ gt, gte, lt, lte }) => {
    const [low, high] = [Math.max(gt ?? -Infinity, gte ?? -Infinity), Math.min(lt ?? Infinity, lte ?? Infinity)]
    return low < high || (low === high && gt !== low && lt !== high)
  }, 'must have limits that a number can fit')
export type ValueTests = z.infer<typeof ValueTests>

/** A value that a condition allows, a list of them, or tests. */
export type ConditionValue = Scalar | readonly Scalar[] | ValueTests

const conditions = {
  source: nonBlank
    .max(maxSourceChars)
    .optional()
    .describe(
      'The sender: the one whose signature is valid, else payload.source, else the sender that the headers show.',
    ),
  event: z
    .union([nonBlank, z.array(nonBlank).min(1), TextTests])
    .optional()
    .describe('Event type as the sender calls it, such as "push", a list of them, or tests.'),
  headers: z
    .record(z.string(), z.union([z.string(), z.array(z.string()).min(1), TextTests]))
    .optional()
    .describe('Header names, each with the value that it must have, a list of allowed values, or tests.'),
  payload: z
    .record(z.string(), z.union([Scalar, z.array(Scalar).min(1), ValueTests]))
    .optional()
    .describe(
      'Paths in the payload, such as "issue.state", or "issue.labels[*].name" for any item of a list, each with the value that must be there, a list of allowed values, or tests.',
    ),
}

export const Alternative = z.strictObject(conditions)
export type Alternative = z.infer<typeof Alternative>

/** A delivery matches if all given conditions are true. */
export const Match = z.strictObject({
  path: z
    .string()
    .refine((path) => trimSlashes(path).length <= maxHookChars, `must have at most ${maxHookChars} characters`)
    .optional()
    .describe(
      'Hook name: the part of the URL after `hooks.path`, case-sensitive. Without it, the mapping is for every name except `wake` and `agent`.',
    ),
  ...conditions,
  any: z
    .array(Alternative.refine(hasTest, 'must have at least one condition'))
    .min(1)
    .max(50)
    .optional()
    .describe('Alternatives: sets of conditions, of which at least one must be true as a whole.'),
})
export type Match = z.infer<typeof Match>
