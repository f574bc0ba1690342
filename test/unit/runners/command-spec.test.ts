import { expect, describe, test } from 'vitest'
import { toCommandSpec } from '../../../src/runners/command/spec.ts'
import { profiles } from '../../../src/runners/command/profiles.ts'
import { CommandRunnerConfig } from '../../../src/model/agents-config.ts'

const specOf = (config: object) => toCommandSpec('mine', CommandRunnerConfig.parse({ kind: 'command', ...config }), {})

describe('a command runner that cannot work is refused, with the key to set', () => {
  test.each([
    [{}, 'Set runners.mine.command'],
    [{ command: 'x', input: 'arg', args: ['run'] }, 'runners.mine.args has no "{prompt}"'],
    [{ command: 'x', args: ['{prompt}'], resumeArgs: ['-r'] }, 'runners.mine.resumeArgs has no "{prompt}"'],
    [{ command: 'x', output: 'json' }, 'Set runners.mine.textField'],
  ])('%j', (config, expected) => {
    expect(() => specOf(config)).toThrow(expected)
  })

  test.each(['./agent', 'bin/agent', '../agent', '~/agent', ' '])(
    'a program may not depend on where a run works: %j',
    (command) => {
      expect(CommandRunnerConfig.safeParse({ kind: 'command', command }).success).toBe(false)
    },
  )

  test.each(['agent', '/opt/my agent/bin/agent', 'C:\\agents\\agent.exe'])('%j names a program', (command) => {
    expect(CommandRunnerConfig.safeParse({ kind: 'command', command }).success).toBe(true)
  })
})

test('the prompt goes in by argument where the arguments ask for it, else by stdin', () => {
  expect(specOf({ command: 'x', args: ['{prompt}'] }).input).toBe('arg')
  expect(specOf({ command: 'x', args: ['-q'] }).input).toBe('stdin')
  expect(specOf({ command: 'x' }).input).toBe('stdin')
})

test.each(Object.entries(profiles))('%s gets no more than reading by its profile', (_, { args, resumeArgs, input }) => {
  const words = [...args, ...resumeArgs].join(' ')
  expect(words).not.toMatch(/danger|bypass|yolo|full-access|workspace-write|acceptEdits|Bash|Write|Edit/i)
  expect(input).toBe('stdin')
})
