// The keys of `hookloom dev` on a pseudo-terminal, which `script` of util-linux makes.
import { spawn } from 'node:child_process'
import { chmodSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { onFileEnd } from '../file-end.ts'
import { mainFile, makeConfigDir, startGateway, toChildEnv } from './gateway.ts'

const script = '/usr/bin/script'
// another program has this name on macOS
const hasScript = process.platform === 'linux' && existsSync(script)

function startOnTerminal(dir: string) {
  const browser = join(dir, 'browser.sh')
  const words = [process.execPath, mainFile, 'dev', '--config-dir', dir].map((word) => `'${word}'`)
  // `exec` replaces the shell, which would get the signal of Ctrl-C too
  const command = `exec ${words.join(' ')}`
  const child = spawn(script, ['--quiet', '--return', '--command', command, '/dev/null'], {
    env: { ...toChildEnv({ BROWSER: browser }), SHELL: '/bin/sh' },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  onFileEnd(() => child.kill('SIGKILL'))
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  return {
    press: (keys: string) => child.stdin.write(keys),
    /** Reads the output that is printed from now on. */
    next: () => {
      const from = text.length
      return { shows: async (pattern: RegExp) => await expect.poll(() => text.slice(from)).toMatch(pattern) }
    },
    ended: new Promise<number | null>((done) => child.once('close', done)),
  }
}

function makeDir(): string {
  const files = { 'browser.sh': '#!/bin/sh\ncp "${1#file://}" "$(dirname "$0")/opened.html"\n' }
  const dir = makeConfigDir({ files })
  chmodSync(join(dir, 'browser.sh'), 0o755)
  return dir
}

describe.skipIf(!hasScript)('hookloom dev on a terminal (needs script of util-linux)', () => {
  test('hookloom dev prints the link of its page; o opens a new link, ? shows the keys, and q shuts the gateway down cleanly', async () => {
    const dir = makeDir()
    const terminal = startOnTerminal(dir)
    const start = terminal.next()
    await start.shows(/Page +http:\/\/127\.0\.0\.1:\d+\/#k=\S+/)
    await start.shows(/o \+ Enter opens the page/)
    const afterHelp = terminal.next()
    terminal.press('?\n')
    await afterHelp.shows(/o \+ Enter opens the page\r?\nq \+ Enter stops the gateway/)
    terminal.press('o\n')
    const opened = join(dir, 'opened.html')
    await expect.poll(() => existsSync(opened) && readFileSync(opened, 'utf8')).toContain('/#k=')
    const link = /url=([^"]+)/.exec(readFileSync(opened, 'utf8'))?.[1] ?? ''
    const { origin, hash } = new URL(link)
    expect((await fetch(`${origin}/`)).status).toBe(200)
    const exchanged = await fetch(`${origin}/api/page/key`, {
      method: 'POST',
      headers: { authorization: `Bearer ${hash.replace('#k=', '')}` },
    })
    expect(exchanged.status).toBe(200)
    terminal.press('q\n')
    expect(await terminal.ended).toBe(0)
    await expect(fetch(`${origin}/`)).rejects.toThrow('fetch failed')
  })

  test('unknown keys change nothing in hookloom dev, and Ctrl-C still shuts it down cleanly', async () => {
    const terminal = startOnTerminal(makeDir())
    await terminal.next().shows(/Page +http/)
    const after = terminal.next()
    terminal.press('quit\nopen\n')
    terminal.press('?\n')
    await after.shows(/q \+ Enter stops the gateway/)
    terminal.press('\u0003')
    expect(await terminal.ended).toBe(0)
  })
})

test('hookloom dev without a terminal offers no keys and prints no link', async () => {
  const gateway = await startGateway({ command: 'dev' })
  await gateway.printed(/Ctrl-C/)
  await gateway.stop()
  expect(gateway.output()).not.toMatch(/\+ Enter|#k=/)
})
