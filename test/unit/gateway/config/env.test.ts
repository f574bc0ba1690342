import { describe, expect, test } from 'vitest'
import { parseEnv, renderEnvLine } from '../../../../src/gateway/config/env.ts'

describe('.env', () => {
  test('parseEnv reads bare, single-quoted and double-quoted values, with comments and export', () => {
    const { values, problems } = parseEnv(
      [
        '# a comment',
        '',
        'PLAIN=value',
        'export EXPORTED = spaced out ',
        "LITERAL='no \\n escape # here' # but here",
        'ESCAPED="two\\nlines \\"quoted\\" \\\\"',
        'COMMENTED=value # not the value',
        'HASH=a#b',
        'EMPTY=',
        'EQUALS=a=b',
        'ONLY_COMMENT= # nothing',
      ].join('\r\n'),
    )
    expect(problems).toEqual([])
    expect({ ...values }).toEqual({
      PLAIN: 'value',
      EXPORTED: 'spaced out',
      LITERAL: 'no \\n escape # here',
      ESCAPED: 'two\nlines "quoted" \\',
      COMMENTED: 'value',
      HASH: 'a#b',
      EMPTY: '',
      EQUALS: 'a=b',
      ONLY_COMMENT: '',
    })
  })

  test('if several lines of .env set one name, the last line applies, and __proto__ is a name like any other', () => {
    const { values } = parseEnv('A=1\nA=2\n__proto__=3\n')
    expect(values.A).toBe('2')
    expect(Object.entries(values)).toContainEqual(['__proto__', '3'])
  })

  test('a line separator of Unicode ends no line', () => {
    const { values, problems } = parseEnv('A=x\u2028B=1\u2029#y\nC="\u2028"\n')
    expect([{ ...values }, problems]).toEqual([{ A: 'x\u2028B=1', C: '\u2028' }, []])
  })

  test('the error of an invalid line has its number and does not show the line', () => {
    const { values, problems } = parseEnv('A=1\nhush-hush\nB="open hush\n2C=hush\nD="hush" hush')
    expect(problems).toEqual([
      '.env:2 must be NAME=value.',
      '.env:3 has an unterminated quote: B.',
      '.env:4 must be NAME=value.',
      '.env:5 has text after the closing quote: D.',
    ])
    expect({ ...values }).toEqual({ A: '1' })
  })

  test('a line that renderEnvLine writes is read as the same value', () => {
    for (const value of [
      'Zm9v+/==',
      '',
      'a b',
      '#x',
      '"',
      "it's",
      'back\\slash',
      'two\nlines\r',
      '\\n',
      '$A',
      ' padded ',
      'a\u2028B=1\u2029# b',
      '\u2028',
    ]) {
      const { values, problems } = parseEnv(renderEnvLine('NAME', value))
      expect(problems).toEqual([])
      expect(values.NAME).toBe(value)
    }
  })
})
