import { expect, describe, test } from 'vitest'
import { buildCommandSpec } from '../../../../src/plugins/runners/shared/command/spec.ts'
import { profiles } from '../../../../src/plugins/runners/shared/command/profiles.ts'
import { CommandOptions } from '../../../../src/plugins/runners/shared/command/options.ts'

const specOf = (config: object) => buildCommandSpec('mine', CommandOptions.parse(config), {})

describe('a command runner', () => {
  test.each([
    [{}, 'Set runners.mine.command'],
    [{ command: 'x', input: 'arg', args: ['run'] }, 'runners.mine.args has no "{prompt}"'],
    [{ command: 'x', args: ['{prompt}'], resumeArgs: ['-r'] }, 'runners.mine.resumeArgs has no "{prompt}"'],
    [{ command: 'x', output: 'json' }, 'Set runners.mine.textField'],
  ])('the settings %j cannot work and are refused with the key to set', (config, expected) => {
    expect(() => specOf(config)).toThrow(expected)
  })

  test.each(['./agent', 'bin/agent', '../agent', '~/agent', ' '])(
    'a program that depends on the working directory is refused: %j',
    (command) => {
      expect(CommandOptions.safeParse({ command }).success).toBe(false)
    },
  )

  test.each(['agent', '/opt/my agent/bin/agent', 'C:\\agents\\agent.exe'])(
    'the program name %j is accepted',
    (command) => {
      expect(CommandOptions.safeParse({ command }).success).toBe(true)
    },
  )
})

test('the prompt is an argument if the arguments have a place for it, and otherwise it is sent on stdin', () => {
  expect(specOf({ command: 'x', args: ['{prompt}'] }).input).toBe('arg')
  expect(specOf({ command: 'x', args: ['-q'] }).input).toBe('stdin')
  expect(specOf({ command: 'x' }).input).toBe('stdin')
})

test.each(Object.entries(profiles))('the profile of %s allows only reading', (_, { args, resumeArgs, input }) => {
  const words = [...args, ...resumeArgs].join(' ')
  expect(words).not.toMatch(/danger|bypass|yolo|full-access|workspace-write|acceptEdits|Bash|Write|Edit/i)
  expect(input).toBe('stdin')
})
