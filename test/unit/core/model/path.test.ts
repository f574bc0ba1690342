import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { JsonValue } from '../../../../src/base/json.ts'
import { Problem } from '../../../../src/core/model/problem.ts'
import { anyItem, formatPath, formatPlaceholder, type ConditionPath } from '../../../../src/base/path-text.ts'
import { parseConditionPath, parsePath, readPath, readValues } from '../../../../src/core/model/path.ts'
import { listReadPaths } from '../../../../src/core/mapping/template.ts'

const payload: JsonValue = JSON.parse(`{
  "messages": [{ "subject": "Lunch", "labels": ["INBOX", "UNREAD"] }],
  "pull_request": { "draft": false, "merged_at": null },
  "event-data": { "first name": "Ada" },
  "rows": { "0": "by name" },
  "fields": { "System.Title": "A bug", "a|b}}\\"'\\\\": "odd", "": "empty", "*": "star", "\\u00e9\\n": "line" },
  "data[email]": "ada@example.org",
  "length": 7,
  "__proto__": { "polluted": "yes" },
  "constructor": "own and still not read"
}`)

function read(expression: string, value: JsonValue = payload): JsonValue | undefined {
  return readPath(value, parsePath(expression))
}

function catchMessage(expression: string): string {
  try {
    parsePath(expression)
  } catch (error) {
    if (error instanceof Problem && error.code === 'config-invalid') return error.message
  }
  return 'parsed'
}

describe('paths into a payload', () => {
  test.each<[string, JsonValue]>([
    ['messages[0].subject', 'Lunch'],
    ['messages.0.subject', 'Lunch'],
    ['messages[0].labels[1]', 'UNREAD'],
    ['messages.length', 1],
    ['messages[0].labels', ['INBOX', 'UNREAD']],
    ['pull_request.draft', false],
    ['pull_request.merged_at', null],
    ['event-data.first name', 'Ada'],
    ['rows.0', 'by name'],
    ['length', 7],
    ['fields["System.Title"]', 'A bug'],
    ["fields['System.Title']", 'A bug'],
    [`fields[ "a|b}}\\"'\\\\" ]`, 'odd'],
    [`fields['a|b}}"\\'\\\\']`, 'odd'],
    ["fields['']", 'empty'],
    ["fields['\\u00e9\\n']", 'line'],
    ["['fields']['System.Title']", 'A bug'],
    ['fields["*"]', 'star'],
    ['["data[email]"]', 'ada@example.org'],
  ])('the path %s finds its value', (expression, expected) => {
    expect(read(expression)).toEqual(expected)
  })

  test('a path begins with an index if the payload is an array', () => {
    expect(read('[1].event', [{ event: 'open' }, { event: 'click' }])).toBe('click')
    expect(read('[2].event', [{ event: 'open' }, { event: 'click' }])).toBeUndefined()
  })

  test.each([
    'missing',
    'messages[1].subject',
    'messages[-1]',
    'messages.-1',
    'messages[99999999999999999999999].subject',
    'messages[0].subject.length',
    'messages[0].subject[0]',
    'rows[0]',
    'pull_request.merged_at.day',
    'pull_request.draft.valueOf',
    'messages.push',
    'messages.map.name',
    'toString',
    'pull_request.hasOwnProperty',
    '__proto__',
    '__proto__.polluted',
    'constructor',
    'messages.constructor.name',
    'pull_request.prototype',
    'fields.System.Title',
    "['__proto__'].polluted",
    '["constructor"]',
  ])('the path %s finds no value', (expression) => {
    expect(read(expression)).toBeUndefined()
  })

  test('a path finds no property of a scalar payload', () => {
    expect(read('length', 'text')).toBeUndefined()
    expect(read('a', null)).toBeUndefined()
  })

  test.each([
    ['', 'column 1: expected the name of a field, found the end'],
    ['a..b', 'column 3: expected the name of a field, found ".b"'],
    ['.a', 'column 1: expected the name of a field, found ".a"'],
    ['a.', 'column 3: expected the name of a field, found the end'],
    ['a[0', 'column 2: expected a closing "]", found "[0"'],
    [
      'a[b]',
      'column 3: expected the number of an array item, or a key in quotes (write .field for a field), found "b]"',
    ],
    ['a[b c]', 'column 3: expected the number of an array item, or a key in quotes'],
    ['a["b', `column 2: expected a closing '"]', found "[\\"b"`],
    ["a['b]", `column 2: expected a closing "']"`],
    ['a["b\\x"]', 'column 5: expected one of'],
    ['a[*].b', 'column 3: expected the number of an array item, because only conditions have "[*]"'],
    [
      'a.*.b',
      'column 3: expected [*] for any item of a list, which only conditions have, or ["*"] for a field of this name',
    ],
    ['a[]', 'column 3: expected the number of an array item'],
    ['a[0]b', 'column 5: expected a "." or a "[", found "b"'],
    ['a]', 'column 2: expected a "." or a "[", found "]"'],
    ['a .b', 'column 1: expected the name of a field without spaces around it, found "a .b"'],
  ])('the path %j is refused with the column, what was expected and what was found', (expression, message) => {
    expect(catchMessage(expression)).toContain(message)
    expect(catchMessage(expression)).toContain(JSON.stringify(expression))
  })
})

const anyKey = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    'event',
    'payload',
    'body',
    'headers',
    'query',
    'else',
    'else if',
    '#a',
    '*',
    '0',
    'a.b',
    "it's",
    '\ud83d',
    '\u202e',
  ),
)
const isReadable = (key: string) => !['__proto__', 'prototype', 'constructor'].includes(key)

test('a written path reads as the same path again, in a template and in a condition', () => {
  const step = fc.oneof(anyKey.filter(isReadable), fc.nat(99))
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 4 }), (path) => {
      expect(parsePath(formatPath(path))).toEqual(path)
      expect(formatPath(path)).not.toMatch(/[\p{C}\u2028]/u)
      expect(listReadPaths(`a {{ ${formatPlaceholder(path)} | default: "x" }} b`).map((read) => read.path)).toEqual([
        path,
      ])
    }),
  )
  fc.assert(
    fc.property(
      fc.array(fc.oneof(step, fc.constant(anyItem)), { minLength: 1, maxLength: 4 }),
      (path: ConditionPath) => {
        expect(parseConditionPath(formatPath(path))).toEqual(path)
      },
    ),
  )
})

test('"[*]" reads the value of each item, and no value if there is no list', () => {
  const issue = { labels: [{ name: 'bug' }, {}, { name: 'ui' }], user: { name: 'ada' }, rows: [[1, 2], [], [3]] }
  const values = (path: string) => readValues(issue, parseConditionPath(path))
  expect(values('labels[*].name')).toEqual(['bug', undefined, 'ui'])
  expect(values('rows[*][*]')).toEqual([1, 2, 3])
  expect(values('rows[*][0]')).toEqual([1, undefined, 3])
  for (const path of ['user[*].name', 'missing[*]', 'labels[*].name[*]']) expect(values(path)).toEqual([])
  expect(values('user.name')).toEqual(['ada'])
  expect(values('missing.name')).toEqual([undefined])
})
