#!/usr/bin/env node
// The program `hookloom`: the command line of this process, its streams and its exit code.
import { exitCodes } from '../model/problem.ts'
import { main } from './main.ts'

// `hookloom list | head` closes the pipe early, and that is no failure
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
