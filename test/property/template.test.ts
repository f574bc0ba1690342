import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { JsonValue } from '../../src/base/json.ts'
import { Problem } from '../../src/core/model/problem.ts'
import { compileTemplate, type TemplateScope } from '../../src/core/mapping/template.ts'

function buildScope(payload: JsonValue): TemplateScope {
  return {
    payload: () => payload,
    headers: {},
    query: {},
    path: 'p',
    source: undefined,
    event: undefined,
    now: () => 'now',
  }
}

// as: the type is unknown, but fast-check documents that the values are JSON
const json = fc.jsonValue().map((value) => value as JsonValue)
const fieldName = fc.stringMatching(/^[a-z_][a-z0-9_-]{0,7}$/).filter((name) => name !== 'else')
const hostile = fc
  .array(
    fc.constantFrom(
      '{{',
      '}}',
      '{',
      '}',
      '|',
      ' ',
      '"',
      "'",
      '\\',
      ':',
      'default',
      'truncate',
      '3',
      'a',
      '.',
      '[',
      ']',
      '\n',
    ),
  )
  .map((pieces) => pieces.join(''))

function describeOutcome(text: string): string {
  try {
    compileTemplate(text).render(buildScope({ a: 'x' }))
    return 'rendered'
  } catch (error) {
    if (error instanceof Problem) return `${error.code}: ${error.message}`
    throw error
  }
}

/** The expected text of a value, computed without the code under test. */
function renderExpected(value: JsonValue): string {
  if (value === null) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}

describe('templates', () => {
  test('any text compiles as a template, or is refused with a column', () => {
    fc.assert(
      fc.property(fc.oneof(hostile, fc.string()), (text) => {
        expect(describeOutcome(text)).toMatch(
          /^(rendered|config-invalid: .*column \d+: (?:expected .+|templates have no logic), found .+\.)$/s,
        )
      }),
      { numRuns: 500 },
    )
  })

  test('a template without {{ renders to itself', () => {
    fc.assert(
      fc.property(hostile, json, (text, payload) => {
        fc.pre(!text.includes('{{'))
        expect(compileTemplate(text).render(buildScope(payload))).toBe(text)
      }),
    )
  })

  test('values are inserted between the literals of a template and are not rendered again', () => {
    const literal = hostile.filter((text) => !text.includes('{'))
    fc.assert(
      fc.property(fc.array(fc.tuple(literal, fieldName, fc.oneof(hostile, fc.string()))), literal, (parts, tail) => {
        const payload = Object.fromEntries(parts.map(([, , value], index) => [`v${index}`, value]))
        const template = parts.map(([before], index) => `${before}{{payload.v${index}}}`).join('') + tail
        const expected = parts.map(([before, , value]) => before + value).join('') + tail
        expect(compileTemplate(template).render(buildScope(payload))).toBe(expected)
      }),
    )
  })

  test('a placeholder renders its field as JSON, and a string without its quotes', () => {
    fc.assert(
      fc.property(fieldName, json, (name, value) => {
        expect(compileTemplate(`{{payload.${name}}}`).render(buildScope({ [name]: value }))).toBe(renderExpected(value))
      }),
    )
  })
})

describe('truncated texts', () => {
  test('truncated text is the beginning of the text within the limit, and never ends in half of a surrogate pair', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'é', '😀', '👩‍💻', '\n'), maxLength: 30 })
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 40 }), (value, limit) => {
        const cut = compileTemplate(`{{value | truncate: ${limit}}}`).render(buildScope({ value }))
        // encodeURIComponent throws on half of a surrogate pair
        expect(() => encodeURIComponent(cut)).not.toThrow()
        const isCut = value.length > limit
        expect(cut.endsWith('…')).toBe(isCut)
        expect(value.startsWith(isCut ? cut.slice(0, -1) : cut)).toBe(true)
        // the text may be one unit shorter than the limit, because no pair is cut in half
        expect(cut.length).toBeLessThanOrEqual(limit)
        expect(cut.length).toBeGreaterThanOrEqual(isCut ? limit - 1 : value.length)
      }),
    )
  })
})
