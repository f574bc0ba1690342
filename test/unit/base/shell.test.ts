import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { formatCommand, quoteShellWord } from '../../../src/base/shell.ts'

const mark = join(mkdtempSync(join(tmpdir(), 'hookloom-shell-')), 'ran')

const hostile = [
  'a b',
  "it's $(id) `id` !!",
  `fix;touch\${IFS}${mark};#`,
  `$(touch ${mark})`,
  `'; touch ${mark}; '`,
  `"; touch ${mark}; "`,
  `\`touch ${mark}\``,
  `x\\'; touch ${mark}; #`,
  `a\ntouch ${mark}\n`,
  `a&&touch ${mark}|cat<${mark}`,
  '!!',
  '-x',
  '--refused',
  'a\n\u001b[201~b',
  "\u009b'\\u0041",
  '\ttab',
  '\u202egnp.exe',
  'a\u200bb',
  '~root',
  '*',
  '',
]

/** What a shell makes of lines that are pasted. `hookloom` prints its arguments there. Errors are ignored. */
function paste([shell = '', ...options]: readonly string[], lines: readonly string[]): string[][] {
  const program = `hookloom() { printf '%s\\0' "$@"; printf '\\001'; }`
  const env = { PATH: process.env['PATH'], PS1: '', PS2: '' }
  const input = [program, ...lines, 'exit 0', ''].join('\n')
  const printed = execFileSync(shell, options, { input, env, stdio: ['pipe', 'pipe', 'ignore'] }).toString()
  return printed
    .split('\u0001')
    .slice(0, -1)
    .map((args) => args.split('\0').slice(0, -1))
}

const formatResume = (name: string) => formatCommand`hookloom resume ${name}`

test.each(['-i', '+H'])(
  'each name is one argument of a command that is pasted into bash %s, and never an option',
  (mode) => {
    const bash = ['bash', '--norc', mode]
    expect(paste(bash, hostile.map(formatResume))).toEqual(
      hostile.map((name) => (name.startsWith('-') ? ['resume', '--', name] : ['resume', name])),
    )
    const retries = hostile.map((name) => formatCommand`hookloom retry --hook ${name} --refused`)
    expect(paste(bash, retries)).toEqual(
      hostile.map((name) => ['retry', ...(name.startsWith('-') ? [`--hook=${name}`] : ['--hook', name]), '--refused']),
    )
    expect(existsSync(mark)).toBe(false)
  },
)

test.each([['bash', '--norc', '-i'], ['bash'], ['sh', '-i'], ['sh']])(
  'no name runs anything in %s, even with the quotes of the sentence around the command',
  (...shell) => {
    for (const line of hostile.map(formatResume)) paste(shell, [line, `"${line}"`])
    paste(
      shell,
      hostile.map((name) => `hookloom resume ${quoteShellWord(name)}`),
    )
    expect(existsSync(mark)).toBe(false)
  },
)

test('a command has no invisible character', () => {
  for (const name of hostile) {
    expect(formatResume(name)).not.toMatch(/[\p{Cc}\p{Cf}]/u)
    expect(quoteShellWord(name)).not.toMatch(/[\p{Cc}\p{Cf}]/u)
  }
})

test('a name without odd characters is not quoted', () => {
  expect(formatResume('session:main/hook:pr:17')).toBe('hookloom resume session:main/hook:pr:17')
})

test('each word of a command that stands alone is one argument in bash', () => {
  const lines = hostile.map((name) => `hookloom ${quoteShellWord(name)}`)
  expect(paste(['bash', '--norc', '-i'], lines)).toEqual(hostile.map((name) => [name]))
})
