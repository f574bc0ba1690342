import { describe, expect, test } from 'vitest'
import { type ArgumentValues, fillArguments } from '../../../../src/plugins/runners/shared/command/spec.ts'

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
    ['is removed with the flag right before it', ['--json', '--model', '{model}', '{prompt}'], ['--json', 'Hello']],
    ['is removed alone if it is a flag itself', ['--json', '--model={model}', '{prompt}'], ['--json', 'Hello']],
    ['is removed alone after a word that is not a flag', ['run', '{model}', '{prompt}'], ['run', 'Hello']],
    ['is removed alone after the end of the flags', ['--', '{model}', '{prompt}'], ['--', 'Hello']],
    ['is removed alone after a flag that has its value', ['--id={sessionId}', '{model}'], ['--id=id-1']],
    ['is removed whole, even if it has other text', ['-c', 'effort={thinking}', '-m', '{provider}/{model}'], []],
    [
      'is removed with its flag, but an equal flag that has its value stays',
      ['-c', 'a=1', '-c', 'b={thinking}'],
      ['-c', 'a=1'],
    ],
  ])('an argument without its value %s', (_, args, expected) => {
    expect(fillArguments(args, nothing)).toEqual(expected)
  })
})

describe('a value in an argument', () => {
  test('placeholders and replacement patterns inside a value are kept as text', () => {
    const values = { ...nothing, prompt: '{model} $& $1 {prompt}', model: 'm' }
    expect(fillArguments(['{prompt}', '{model}'], values)).toEqual(['{model} $& $1 {prompt}', 'm'])
  })

  test('the value of a placeholder never becomes a flag', () => {
    const values = { ...nothing, prompt: '-x', model: '--yolo' }
    expect(fillArguments(['{prompt}', '-m', '{model}', '--model={model}'], values)).toEqual([
      ' -x',
      '-m',
      ' --yolo',
      '--model=--yolo',
    ])
  })

  test('a NUL in the value of a placeholder is replaced, because it would end the argument', () => {
    expect(fillArguments(['{prompt}'], { ...nothing, prompt: 'a\0b' })).toEqual(['a\uFFFDb'])
  })
})

test('braces around an unknown name in an argument are kept', () => {
  expect(fillArguments(['{"a":1}', '{other}', '{}'], nothing)).toEqual(['{"a":1}', '{other}', '{}'])
})
