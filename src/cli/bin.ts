#!/usr/bin/env node
// The program `hookloom`: connects the command line to this process, its streams and its exit code.
import { accessSync, constants } from 'node:fs'
import * as nodeModule from 'node:module'
import { join } from 'node:path'
import { exitCodes } from '../model/problem.ts'

// Node 22 can keep compiled code from one start to the next. The folder belongs to the package: a user who can write there can change the
// code too. Node's default is a folder that all users of the machine share. If the folder is not writable, nothing is kept.
if ('enableCompileCache' in nodeModule && typeof nodeModule.enableCompileCache === 'function') {
  nodeModule.enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/hookloom'))
}
// `sudo -u hookloom …` keeps the folder of the shell, which may be closed to that user. No process, such as esbuild, can be started there.
try {
  accessSync('.', constants.X_OK)
} catch {
  process.chdir('/')
}
const { main } = await import('./main.ts')

// `hookloom list | head` closes the pipe early, and that is not a failure
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? exitCodes.ok : exitCodes.broken)
})

const [, script = 'hookloom', ...args] = process.argv
const exitCode = await main(args, {
  env: process.env,
  script,
  stdin: process.stdin,
  writeOut: (text) => void process.stdout.write(text),
  writeError: (text) => void process.stderr.write(text),
})
// a command that failed may leave a thread or a socket open
process.stdout.write('', () => process.exit(exitCode))
