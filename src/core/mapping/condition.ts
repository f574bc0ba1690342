// The values that one condition of a mapping allows: a value, a list of values, or tests. Numbers are compared as they were sent; one that a double
// does not hold is also the text of its digits, as in a transform.
import { describeValueKind, type SentValue } from '../../base/json.ts'
import { compareNumbers, findDigits, isNumber } from '../../base/sent-number.ts'
import { compileExpression } from '../../base/expression.ts'
import { cut } from '../../base/text.ts'
import type { Scalar, ValueTests, ConditionValue } from '../model/match.ts'

export type Comparison = {
  /** The allowed values, for people. */
  readonly description: string
  /** Undefined if the value is allowed; else the kind of the value that was found, because reasons show no value of a payload. */
  readonly findMiss: (value: SentValue | undefined) => string | undefined
  /**
   * The same for the values of all items of a list: one of them must pass all tests, and those that deny something, `not` and `"exists": false`, must
   * be true for each of them. A list without items has no values.
   */
  readonly findMissAmong: (values: readonly (SentValue | undefined)[]) => string | undefined
}

type Test = Omit<Comparison, 'findMissAmong'> & {
  /** Whether the test denies something, so that it must be true for all values. */
  readonly isDenial?: true
  /** The most characters of all texts of a list: to search more would take too long. Absent: any number. */
  readonly maxCharsOfAll?: number
}

/** Throws an error with the reason if an expression does not parse. */
export function compileComparison(wanted: ConditionValue): Comparison {
  const tests = isTests(wanted) ? compileTests(wanted) : [compileChoice([wanted].flat())]
  const denials = tests.filter(({ isDenial }) => isDenial)
  const others = tests.filter(({ isDenial }) => !isDenial)
  const findMiss: Comparison['findMiss'] = (value) => findFirstMiss(tests, value)
  const maxCharsOfAll = Math.min(...tests.map((test) => test.maxCharsOfAll ?? Number.POSITIVE_INFINITY))
  return {
    description: tests.map(({ description }) => description).join(' and '),
    findMiss,
    findMissAmong(values) {
      if (values.length === 1) return findMiss(values[0])
      if (countChars(values) > maxCharsOfAll)
        return `a list with texts of more than ${maxCharsOfAll} characters together`
      for (const value of values) {
        const miss = findFirstMiss(denials, value)
        if (miss !== undefined) return miss
      }
      if (others.length === 0) return undefined
      const misses = values.map((value) => findFirstMiss(others, value))
      return misses.includes(undefined) ? undefined : `${misses[0] ?? 'missing'} in each item`
    },
  }
}

function countChars(values: readonly (SentValue | undefined)[]): number {
  return values.reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 0), 0)
}

function findFirstMiss(tests: readonly Test[], value: SentValue | undefined): string | undefined {
  for (const test of tests) {
    const miss = test.findMiss(value)
    if (miss !== undefined) return miss
  }
  return undefined
}

function compileTests({ not, exists, matches, gt, gte, lt, lte }: ValueTests): readonly Test[] {
  return [
    exists === undefined ? [] : compilePresence(exists),
    not === undefined ? [] : isPattern(not) ? compilePattern(not.matches, false) : compileExclusion([not].flat()),
    matches === undefined ? [] : compilePattern(matches, true),
    gt === undefined ? [] : compileLimit(`a number over ${gt}`, gt, (order) => order > 0),
    gte === undefined ? [] : compileLimit(`a number from ${gte}`, gte, (order) => order >= 0),
    lt === undefined ? [] : compileLimit(`a number under ${lt}`, lt, (order) => order < 0),
    lte === undefined ? [] : compileLimit(`a number up to ${lte}`, lte, (order) => order <= 0),
  ].flat()
}

export function isTests(wanted: ConditionValue): wanted is ValueTests {
  return typeof wanted === 'object' && wanted !== null && !Array.isArray(wanted)
}

function compileChoice(choice: readonly Scalar[]): Test {
  const kinds = new Set(choice.map(describeValueKind))
  return {
    description: describeChoice(choice),
    findMiss(value) {
      if (choice.some((one) => isEqual(one, value))) return undefined
      const kind = describeValueKind(value)
      return kinds.has(kind) ? kind.replace(/^an? /, 'another ') : kind
    },
  }
}

function isPattern(not: Exclude<ValueTests['not'], undefined>): not is { matches: string } {
  return typeof not === 'object' && not !== null && !Array.isArray(not)
}

/** A field whose value is null is present. */
function compilePresence(isWanted: boolean): Test {
  return {
    description: isWanted ? 'any value' : 'no value',
    findMiss: (value) => ((value !== undefined) === isWanted ? undefined : describeValueKind(value)),
    ...(!isWanted && { isDenial: true }),
  }
}

function compileExclusion(excluded: readonly Scalar[]): Test {
  return {
    description: `anything but ${describeChoice(excluded)}`,
    findMiss: (value) => (excluded.some((one) => isEqual(one, value)) ? 'an excluded value' : undefined),
    isDenial: true,
  }
}

/** A condition with an expression is false for a text that is too long, even with `not`. */
function compilePattern(expression: string, isWanted: boolean): Test {
  const { test, maxChars, maxCharsOfAll } = compileExpression(expression)
  return {
    description: `${isWanted ? 'a text' : 'anything but a text'} that matches ${quote(expression)}`,
    findMiss(sent) {
      const value = findDigits(sent) ?? sent
      if (typeof value !== 'string') return isWanted ? describeValueKind(value) : undefined
      if (value.length > maxChars) return `a string of more than ${maxChars} characters`
      if (test(value) === isWanted) return undefined
      return isWanted ? 'another string' : 'an excluded value'
    },
    maxCharsOfAll,
    ...(!isWanted && { isDenial: true }),
  }
}

function compileLimit(description: string, limit: number, isWithin: (order: number) => boolean): Test {
  return {
    description,
    findMiss(value) {
      if (!isNumber(value)) return describeValueKind(value)
      return isWithin(compareNumbers(value, limit)) ? undefined : 'another number'
    },
  }
}

function isEqual(wanted: Scalar, value: SentValue | undefined): boolean {
  if (typeof wanted === 'number') return isNumber(value) && compareNumbers(value, wanted) === 0
  return wanted === value || (typeof wanted === 'string' && wanted === findDigits(value))
}

/** Values of the configuration for people: the first few, and the number of the rest. */
function describeChoice(wanted: readonly Scalar[]): string {
  const shown = wanted.slice(0, 6).map((value) => (typeof value === 'string' ? quote(value) : String(value)))
  return wanted.length > shown.length
    ? `${shown.join(', ')} or ${wanted.length - shown.length} more`
    : shown.join(' or ')
}

/** One short line, because senders choose this text. */
export function quote(text: string): string {
  return JSON.stringify(cut(text, 60))
}
