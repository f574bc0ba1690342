import { describe, expect, test } from 'vitest'
import type { JsonValue } from '../../../src/base/json.ts'
import { Problem } from '../../../src/model/problem.ts'
import { parsePath, readPath } from '../../../src/pipeline/path.ts'

const payload: JsonValue = JSON.parse(`{
  "messages": [{ "subject": "Lunch", "labels": ["INBOX", "UNREAD"] }],
  "pull_request": { "draft": false, "merged_at": null },
  "event-data": { "first name": "Ada" },
  "rows": { "0": "by name" },
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
    ['a[b]', 'column 3: expected the number of an array item (write .field for a field), found "b]"'],
    ['a["b"]', 'column 3: expected the number of an array item'],
    ['a[]', 'column 3: expected the number of an array item'],
    ['a[0]b', 'column 5: expected a "." or a "[", found "b"'],
    ['a]', 'column 2: expected a "." or a "[", found "]"'],
    ['a .b', 'column 1: expected the name of a field without spaces around it, found "a .b"'],
  ])('the path %j is refused with the column, what was expected and what was found', (expression, message) => {
    expect(catchMessage(expression)).toContain(message)
    expect(catchMessage(expression)).toContain(JSON.stringify(expression))
  })
})
