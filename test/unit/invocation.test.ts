import { homedir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createContext } from '../../src/cli/terminal/context.ts'
import { toInvocation } from '../../src/cli/terminal/invocation.ts'

afterEach(() => vi.unstubAllGlobals())

function invocation(script: string, env: Record<string, string>): string {
  vi.stubGlobal('process', { ...process, cwd: process.cwd, argv: [process.execPath, script] })
  const dir = join(homedir(), '.hookloom')
  return toInvocation({ ...createContext({ configDir: dir }), env }, ['check'])
}

describe('what a command tells to type next', () => {
  test.each([
    ['/usr/bin/hookloom', {}, 'hookloom check'],
    ['/usr/bin/hookloom', { npm_command: 'run-script' }, 'hookloom check'],
    ['/cache/_npx/1/hookloom', { npm_command: 'exec' }, 'npx hookloom check'],
    ['/app/node_modules/.bin/hookloom', {}, 'npx hookloom check'],
    ['/elsewhere/dist/main.js', { npm_command: 'exec' }, 'node /elsewhere/dist/main.js check'],
  ])('of %s run with %j is what runs it again', (script, env, line) => {
    expect(invocation(script, env)).toBe(line)
  })
})
