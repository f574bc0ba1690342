import { expect, describe, test } from 'vitest'
import {
  createPrintedReader,
  type ReaderOptions,
  createUsageReader,
  toTurnUsage,
} from '../../../../src/plugins/runners/shared/command/printed.ts'

function readerOf(options: Partial<ReaderOptions>) {
  return createPrintedReader({
    id: 'mine',
    output: 'json',
    text: { path: 'reply' },
    session: { path: 'session.id' },
    failure: [],
    usage: undefined,
    ...options,
  })
}

describe('a printed document', () => {
  test('the reply and the session id are found in a document by their paths', () => {
    expect(readerOf({})('{"reply":"Yes","session":{"id":"s-1"}}')).toMatchObject({ text: 'Yes', sessionId: 's-1' })
  })

  test('a document that is a list of events yields its last reply', () => {
    expect(readerOf({})('[{"reply":"One"},{"reply":"Two"},{"session":{"id":"x"}}]')).toMatchObject({
      text: 'Two',
      sessionId: 'x',
    })
  })

  test.each(['', 'Sure!', '"text"', '[]', '{"reply":', 'warning\n{"reply":"x"}'])(
    'the output %j is not accepted as a document',
    (printed) => {
      expect(readerOf({})(printed)).toBeUndefined()
    },
  )

  test.each(['--yolo', '-x', '', 'a b', 'a\nb', 'x'.repeat(201), 7, { id: 1 }])(
    'a session id that does not have the known form is ignored: %j',
    (id) => {
      expect(readerOf({})(JSON.stringify({ reply: 'x', session: { id } }))?.sessionId).toBeUndefined()
    },
  )

  test('a reply that is not a string becomes JSON, an empty string is a reply, and null is not a reply', () => {
    expect(readerOf({})('{"reply":{"a":1}}')?.text).toBe('{"a":1}')
    expect(readerOf({})('{"reply":""}')?.text).toBe('')
    expect(readerOf({})('{"reply":null}')?.text).toBeUndefined()
  })
})

test('output lines of a command that are not JSON objects are ignored', () => {
  const read = readerOf({ output: 'jsonl' })
  expect(read('WARNING: old\n{"reply":"One"}\r\n\n[1]\n{"reply":"Two"}\n')?.text).toBe('Two')
  expect(read('WARNING: old\n')).toBeUndefined()
})

test('plain-text output of a command is the reply, with surrounding white space removed', () => {
  expect(readerOf({ output: 'text' })('\n{"reply":1}\n\n')?.text).toBe('{"reply":1}')
})

test('the error for an invalid path names its key', () => {
  expect(() => readerOf({ text: { path: 'a..b' } })).toThrow('runners.mine.textField is wrong at column 3')
  expect(() => readerOf({ session: { path: '' } })).toThrow('runners.mine.sessionField')
})

describe('token counts in the output of a command', () => {
  const read = createUsageReader({
    inputTokens: ['in', 'cached'],
    outputTokens: ['out'],
    cachedInputTokens: ['cached'],
  })

  test('token counts are the sums of the fields that are present', () => {
    expect(read({ in: 1, cached: 2, out: 3 })).toEqual({ inputTokens: 3, cachedInputTokens: 2, outputTokens: 3 })
    expect(read({ in: 1, out: 3 })).toEqual({ inputTokens: 1, outputTokens: 3 })
  })

  test('a turn has no token counts if the count of its input or output is missing, negative or not a number', () => {
    expect(read({ in: 1 })).toBeUndefined()
    expect(read({ in: '1', out: 3 })).toBeUndefined()
    expect(read({ in: -1, out: 3 })).toBeUndefined()
  })

  test('the token counts of a turn are the increase of those of its session, unless the session began anew', () => {
    const total = { inputTokens: 10, outputTokens: 6, reasoningTokens: 2 }
    expect(toTurnUsage(total, undefined)).toEqual(total)
    expect(toTurnUsage(total, { inputTokens: 4, outputTokens: 6 })).toEqual({
      inputTokens: 6,
      outputTokens: 0,
      reasoningTokens: 2,
    })
    expect(toTurnUsage(total, { inputTokens: 11, outputTokens: 6 })).toEqual(total)
  })
})
