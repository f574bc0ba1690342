import { describe, expect, test } from 'vitest'
import { type ArgumentValues, fillArguments } from '../../../src/runners/command/spec.ts'

const nothing: ArgumentValues = {
  prompt: 'Hello',
  sessionId: 'id-1',
  provider: undefined,
  model: undefined,
  thinking: undefined,
  system: undefined,
}

describe('an argument without its value', () => {
  test.each([
    ['goes with the flag right before it', ['--json', '--model', '{model}', '{prompt}'], ['--json', 'Hello']],
    ['goes alone when it is a flag itself', ['--json', '--model={model}', '{prompt}'], ['--json', 'Hello']],
    ['goes alone behind what is no flag', ['run', '{model}', '{prompt}'], ['run', 'Hello']],
    ['goes alone behind the end of flags', ['--', '{model}', '{prompt}'], ['--', 'Hello']],
    ['goes alone behind a flag that is filled in', ['--id={sessionId}', '{model}'], ['--id=id-1']],
    ['goes as a whole, with what else is in it', ['-c', 'effort={thinking}', '-m', '{provider}/{model}'], []],
    ['takes a flag with it that stands twice only once', ['-c', 'a=1', '-c', 'b={thinking}'], ['-c', 'a=1']],
  ])('%s', (_, args, expected) => {
    expect(fillArguments(args, nothing)).toEqual(expected)
  })
})

describe('a value', () => {
  test('is not filled in again, and keeps what would mean something to a replacement', () => {
    const values = { ...nothing, prompt: '{model} $& $1 {prompt}', model: 'm' }
    expect(fillArguments(['{prompt}', '{model}'], values)).toEqual(['{model} $& $1 {prompt}', 'm'])
  })

  test('never becomes a flag, whoever wrote it', () => {
    const values = { ...nothing, prompt: '-x', model: '--yolo' }
    expect(fillArguments(['{prompt}', '-m', '{model}', '--model={model}'], values)).toEqual([
      ' -x',
      '-m',
      ' --yolo',
      '--model=--yolo',
    ])
  })

  test('holds no NUL, which would end it', () => {
    expect(fillArguments(['{prompt}'], { ...nothing, prompt: 'a\0b' })).toEqual(['a\uFFFDb'])
  })
})

test('braces that name nothing are left as they are', () => {
  expect(fillArguments(['{"a":1}', '{other}', '{}'], nothing)).toEqual(['{"a":1}', '{other}', '{}'])
})
