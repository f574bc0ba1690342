import { mkdirSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { createContext, formatInvocation } from '../../../src/cli/terminal/context.ts'
import { makeFolder } from '../../e2e/gateway.ts'

function formatNextCommand(script: string, env: Record<string, string>): string {
  const dir = join(homedir(), '.hookloom')
  const io = { env, script, stdin: Readable.from([]), writeOut: () => {}, writeError: () => {} }
  return formatInvocation(createContext(io, { configDir: dir }), ['check'])
}

describe('the next command line that a command prints', () => {
  test.each([
    ['/usr/bin/hookloom', {}, 'hookloom check'],
    ['/usr/bin/hookloom', { npm_command: 'run-script' }, 'hookloom check'],
    ['/cache/_npx/1/hookloom', { npm_command: 'exec' }, 'npx hookloom check'],
    ['/app/node_modules/.bin/hookloom', {}, 'npx hookloom check'],
    ['/elsewhere/dist/main.js', { npm_command: 'exec' }, 'node /elsewhere/dist/main.js check'],
  ])(
    'a program that was started as %s with the environment %j prints the next command as "%s"',
    (script, env, line) => {
      expect(formatNextCommand(script, env)).toBe(line)
    },
  )

  test.each([
    [
      'file:../../downloads/hookloom-0.1.0.tgz',
      (folder: string) => `file:${join(folder, 'downloads/hookloom-0.1.0.tgz')}`,
    ],
    ['^0.1.0', () => 'hookloom'],
    [7, () => 'hookloom'],
  ])('after npx with the package %j, the next command has the package that npx took', (hookloom, expected) => {
    const folder = makeFolder()
    const place = join(folder, '_npx/cc2c33de9a71a1fc')
    mkdirSync(place, { recursive: true })
    writeFileSync(join(place, 'package.json'), JSON.stringify({ dependencies: { hookloom } }))
    const line = formatNextCommand(join(place, 'node_modules/.bin/hookloom'), { npm_command: 'exec' })
    expect(line).toBe(`npx ${expected(folder)} check`)
  })
})
