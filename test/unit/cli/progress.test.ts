import { spawnSync } from 'node:child_process'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { withProgress } from '../../../src/cli/terminal/context.ts'
import { mainFile, makeFolder } from '../../e2e/gateway.ts'

describe('the line of long work', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  const run = async (seconds: number, drawLine?: (text: string) => void) =>
    withProgress({ drawLine }, 'Copying', async (report) => {
      report('10 rows')
      await vi.advanceTimersByTimeAsync(1_000 * seconds + 500)
      return seconds
    })

  test('on a terminal it says each second how long it takes and what is done, and it is gone at the end', async () => {
    const lines: string[] = []
    expect(await run(2, (text) => lines.push(text))).toBe(2)
    expect(lines).toEqual(['Copying … 1 s: 10 rows', 'Copying … 2 s: 10 rows', ''])
    expect(vi.getTimerCount()).toBe(0)
  })

  test('short work draws nothing, work in a pipe neither, and work that fails leaves no line', async () => {
    const lines: string[] = []
    await run(0, (text) => lines.push(text))
    expect(lines).toEqual([])
    expect(await run(2)).toBe(2)
    const failing = withProgress({ drawLine: (text) => lines.push(text) }, 'Copying', async () => {
      await vi.advanceTimersByTimeAsync(1_500)
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    expect(lines).toEqual(['Copying … 1 s', ''])
  })
})

/** A store that answers nobody, so that the copy waits. */
const slow = `const net = require('node:net'); const { spawn } = require('node:child_process')
const silent = net.createServer(() => {}).listen(0, '127.0.0.1', () => {
  const to = 'postgres://u:p@127.0.0.1:' + silent.address().port + '/x'
  spawn(process.execPath, [process.argv[1], 'store', 'copy', '--to', to], { stdio: 'inherit' }).on('exit', () => process.exit())
})`

test.skipIf(spawnSync('script', ['--version']).status !== 0)(
  'a real terminal gets the line, and a pipe gets the result only (needs script)',
  () => {
    const env = { ...process.env, HOOKLOOM_HOME: makeFolder(), COLUMNS: '40' }
    spawnSync(process.execPath, [mainFile, 'init'], { env })
    const inPipe = spawnSync(process.execPath, ['-e', slow, mainFile], { env, encoding: 'utf8' })
    const command = `'${process.execPath}' -e "$SLOW" '${mainFile}'`
    const onTerminal = spawnSync('script', ['-qec', command, '/dev/null'], {
      env: { ...env, SLOW: slow },
      encoding: 'utf8',
    })
    expect(onTerminal.stdout).toContain('\r\u001B[KCopying to ')
    expect(onTerminal.stdout).toContain(' … 1 s')
    expect(inPipe.stderr + inPipe.stdout).not.toContain(' … ')
    expect(inPipe.stderr).toContain('✗')
  },
)
