#!/usr/bin/env node
// The program `hookloom`: connects the command line to this process, its streams and its exit code.
import { accessSync, constants } from 'node:fs'
import * as nodeModule from 'node:module'
import { join } from 'node:path'
import { takeStart } from '../base/text.ts'
import { exitCodes } from '../core/model/problem.ts'

// Node 22 can keep compiled code from one start to the next. It is kept in the folder of the package: a user who can write there can change
// the code too. The default folder of Node is shared by all users of the machine. If the folder is not writable, no code is kept.
if ('enableCompileCache' in nodeModule && typeof nodeModule.enableCompileCache === 'function') {
  nodeModule.enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/hookloom'))
}
// under `sudo -u hookloom …`, the current directory is that of the shell; if this user may not enter it, no process, such as esbuild, can
// be started
try {
  accessSync('.', constants.X_OK)
} catch {
  process.chdir('/')
}
const { main } = await import('./main.ts')

// `hookloom list | head` closes the pipe early, which is not a failure
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? exitCodes.ok : exitCodes.broken)
})

/** A line that is as wide as the terminal could not be replaced. */
function drawLine(text: string): void {
  process.stderr.write(`\r\u001B[K${takeStart(text, (process.stderr.columns || 80) - 1)}`)
}

const [, script = 'hookloom', ...args] = process.argv
const exitCode = await main(args, {
  env: process.env,
  script,
  stdin: process.stdin,
  isTerminal: process.stdout.isTTY,
  drawLine: process.stderr.isTTY ? drawLine : undefined,
  writeOut: (text) => void process.stdout.write(text),
  writeError: (text) => void process.stderr.write(text),
})
// a failed command may have left a thread or a socket open
process.stdout.write('', () => process.exit(exitCode))
