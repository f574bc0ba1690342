import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { runBuilt, runCommand } from './command.ts'
import { makeConfigDir, makeFolder } from './gateway.ts'

describe('the command line', () => {
  test('an unknown flag exits 64, and the error suggests the nearest flag', async () => {
    const dir = makeConfigDir()
    const wrong = await runCommand(['list', '--limti', '3'], { dir })
    expect(wrong).toMatchObject({ code: 64, stdout: '', stderr: "✗ Unknown option '--limti'. Did you mean --limit?\n" })
    expect(await runCommand(['list', '--limit', '3'], { dir })).toMatchObject({ code: 0, stderr: '' })
  })

  test('a flag of one command is unknown to another command', async () => {
    expect(await runCommand(['init', '--json'], { dir: makeFolder() })).toMatchObject({ code: 64, stdout: '' })
  })

  test('an unknown command exits 64, and the error suggests the nearest command', async () => {
    const { code, stderr } = await runBuilt(['sesions'])
    expect({ code, stderr }).toEqual({ code: 64, stderr: "✗ Unknown command 'sesions'. Did you mean sessions?\n" })
  })

  test.each([
    [['list', '--limit', 'many'], 'a whole number from 1 to 10000'],
    [['list', '--limit', '0'], 'a whole number from 1 to 10000'],
    [['list', '--state', 'paked'], 'Did you mean parked?'],
    [['list', '--refused', '--state', 'parked'], 'cannot be used with'],
    [['show'], 'Missing required argument \'id\'. "hookloom show --help" shows the options.'],
    [['gmail'], 'Which command? "hookloom gmail --help" lists the commands.'],
    [['gmail', 'run', '--port', '80'], 'Unknown option \'--port\'. "hookloom gmail run --help" shows the options.'],
    [
      ['gmail', 'setup', '--account', 'ada@example.org', '--credentials', 'no-such-file.json'],
      'no-such-file.json cannot be read: the file does not exist.',
    ],
    [['drop', 'one', 'two'], 'Expected 1 argument but got 2'],
    [['show', 'one', 'two'], 'show takes one id, or two ids with --diff.'],
    [['run', 'github', 'no-such-file.json'], 'the file does not exist'],
    [['run', 'github', 'package.json', '--header', 'no colon'], '--header takes "name: value"'],
  ])('the command line %j exits 64 with the reason', async (args, why) => {
    const { code, stderr, stdout } = await runCommand(args, { dir: makeConfigDir({ config: anyHook }) })
    expect(stderr).toContain(why)
    expect({ code, stdout }).toEqual({ code: 64, stdout: '' })
  })

  test('--help and --version exit 0', async () => {
    const root = resolve(import.meta.dirname, '../..')
    const fields: unknown = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    const version = await runBuilt(['--version'])
    expect(fields).toMatchObject({ version: version.stdout.trim() })
    const asked = await runBuilt(['--help'])
    expect([asked.code, version.code]).toEqual([0, 0])
    for (const name of ['init', 'dev', 'start', 'check', 'run', 'send', 'list', 'show', 'retry', 'drop', 'doctor']) {
      expect(asked.stdout).toMatch(new RegExp(`^  ${name}\\b`, 'm'))
    }
  })

  test('without a command, it shows the five commands of the first day and where the rest is', async () => {
    const { code, stdout, stderr } = await runBuilt([])
    expect([code, stderr]).toEqual([0, ''])
    const commands = [...stdout.matchAll(/^ {2}hookloom (\w+)/gm)].map(([, name]) => name)
    expect(commands).toEqual(['dev', 'new', 'add', 'list', 'doctor'])
    expect(stdout).toContain('"hookloom --help" lists all commands')
    expect(existsSync(/The pages begin at (.*)\n/.exec(stdout)?.[1] ?? '')).toBe(true)
  })

  test('HOOKLOOM_HOME names the config directory, and --config-dir takes precedence over it', async () => {
    const [named, given] = [makeConfigDir(), makeConfigDir({ config: { hooks: { nonsense: 1 } } })]
    const env = { HOOKLOOM_HOME: named }
    expect(await runCommand(['check'], { env })).toMatchObject({ code: 0 })
    expect(await runCommand(['check'], { env, dir: given })).toMatchObject({ code: 78 })
  })
})

const anyHook = { hooks: { mappings: [{ id: 'github', match: { path: 'github' } }] } }
