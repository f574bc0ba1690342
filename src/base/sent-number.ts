// The numbers of JSON that JavaScript would change: 653247040368672769 becomes …768, 1.50 becomes 1.5, and 1e400 becomes Infinity.

import { randomUUID } from 'node:crypto'

/** A number of a JSON text whose digits JavaScript would print differently. It prints the digits that were sent. */
export class SentNumber {
  // private, so that code that lists the fields of an object finds none
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  toString(): string {
    return this.#text
  }

  /** A plain `JSON.stringify` writes the digits as a string; `stringify` of `sent-json.ts` removes the quotes. */
  toJSON(): string {
    return marking.isOn ? `${marking.mark}${this.#text}` : this.#text
  }
}

/** Nobody can guess the mark, so no text that was sent begins with it. It never leaves the process. */
export const marking = { mark: randomUUID(), isOn: false }

export function isNumber(value: unknown): value is number | SentNumber {
  return typeof value === 'number' || value instanceof SentNumber
}

/** A number if JavaScript prints it as it was sent. `text`: a number of a JSON text. */
export function toSentNumber(text: string): number | SentNumber {
  const value = Number(text)
  return String(value) === text ? value : new SentNumber(text)
}

/**
 * Converts a number for code, by one rule: a number that a double does not hold is a string of its digits. A double does not hold a whole number
 * that is written out and beyond ±(2^53 − 1), a number with more digits than it keeps, and a number outside its range.
 */
export function toHeldNumber(text: string): number | string {
  return isHeld(text) ? Number(text) : text
}

/** The digits of a number that a double does not hold; undefined for every other value. */
export function findDigits(value: unknown): string | undefined {
  if (typeof value === 'number' && !(Math.abs(value) > Number.MAX_SAFE_INTEGER)) return undefined
  const text = isNumber(value) ? String(value) : undefined
  return text === undefined || isHeld(text) ? undefined : text
}

export function isHeld(text: string): boolean {
  const value = Number(text)
  if (/^-?\d+$/.test(text)) return Number.isSafeInteger(value)
  const sent = toDecimal(text)
  const count = sent.digits.length
  if (count === 0) return true
  // `toPrecision` has at most 100 digits. All digits that were sent are compared: 0.10000000000000001 is how C prints 0.1
  const isPrinted = (printed: string) => compareDecimals(toDecimal(printed), sent) === 0
  // it rounds a half up, and other programs print 850078703750833.25 as 850078703750833.2
  return Number.isFinite(value) && count <= 100 && (isPrinted(value.toPrecision(count)) || isPrinted(String(value)))
}

/** Negative if the first number is smaller, 0 if they are equal. Exact; but numbers that doubles hold are compared as doubles. */
export function compareNumbers(one: number | SentNumber, other: number | SentNumber): number {
  const held = toDouble(one)
  const otherHeld = toDouble(other)
  if (held !== undefined && otherHeld !== undefined) return held - otherHeld
  return compareDecimals(toDecimal(String(one)), toDecimal(String(other)))
}

function toDouble(value: number | SentNumber): number | undefined {
  if (typeof value === 'number') return value
  return findDigits(value) === undefined ? Number(String(value)) : undefined
}

/** ± 0.`digits` × 10^`exponent`. `digits` neither begins nor ends with a zero; it is empty for 0. */
type Decimal = { readonly isNegative: boolean; readonly digits: string; readonly exponent: number }

function toDecimal(text: string): Decimal {
  const [, sign, whole = '', fraction = '', power = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(text) ?? []
  const all = whole + fraction
  let from = 0
  let to = all.length
  // a regular expression would take quadratic time for zeros inside
  while (from < to && all[from] === '0') from += 1
  while (to > from && all[to - 1] === '0') to -= 1
  if (from === to) return { isNegative: false, digits: '', exponent: 0 }
  return { isNegative: sign === '-', digits: all.slice(from, to), exponent: whole.length - from + Number(power) }
}

function compareDecimals(one: Decimal, other: Decimal): number {
  const signOfOne = readSign(one)
  const signOfOther = readSign(other)
  if (signOfOne !== signOfOther || signOfOne === 0) return signOfOne - signOfOther
  if (one.exponent !== other.exponent) return one.exponent < other.exponent ? -signOfOne : signOfOne
  if (one.digits === other.digits) return 0
  return one.digits < other.digits ? -signOfOne : signOfOne
}

function readSign({ isNegative, digits }: Decimal): number {
  if (digits === '') return 0
  return isNegative ? -1 : 1
}
