// Keeps transforms from ending the process: `process.kill` in a worker thread would end the gateway.
import { takeStart } from '../../../base/text.ts'
import type { AsyncLocalStorage } from 'node:async_hooks'
import { isUint8Array } from 'node:util/types'

/** A call inside the worker. While it is open, `log` gets the text that its code prints. */
export type OpenCall = { readonly seq: number; readonly bundle: number; readonly log: string[]; isOpen: boolean }

const logLines = 100
const logLineLength = 500

/** Adds a line to the log of a call, up to 100 lines of 500 characters. Accepts any value and never throws. */
export function addLine(log: string[], message: unknown): void {
  if (log.length >= logLines) return
  try {
    log.push(takeStart(String(message).toWellFormed(), logLineLength))
  } catch {
    log.push('a log line that is not text')
  }
}

/**
 * Calls `leave` with the way in which code ends its worker, just before the worker ends. Printed text goes into the log of the call that
 * printed it, even after an `await`. Text outside of calls is dropped, because it may contain a payload.
 */
export function guardProcess(options: { calls: AsyncLocalStorage<OpenCall>; leave: (how: string) => void }): void {
  const { calls, leave } = options
  // the native functions: in a worker, `reallyExit` ends the thread, and `_kill` sends a signal to the process
  const { reallyExit } = process as unknown as { reallyExit: (code: number) => void } // not in the types, but in every Node
  const { _kill } = process as unknown as { _kill: (pid: number, signal: number) => number } // as above; `process.kill` calls `_kill`
  const end = (how: string): never => {
    leave(how)
    reallyExit.call(process, 1)
    // the thread ends at its next loop or call; the code that called exit must not continue until then
    for (;;);
  }
  const replacements = {
    exit: () => end('process.exit'),
    reallyExit: () => end('process.reallyExit'),
    abort: () => end('process.abort'),
    _kill: (pid: number, signal: number) =>
      // 0 and negative numbers are process groups, which may include this process
      signal !== 0 && (pid <= 0 || pid === process.pid) ? end('process.kill') : _kill.call(process, pid, signal),
  }
  for (const [name, value] of Object.entries(replacements)) {
    Object.defineProperty(process, name, { value, configurable: true, writable: true })
  }
  const decoder = new TextDecoder()
  // the last argument may be a function that waits until the text is written
  const print = (text: unknown, ...rest: unknown[]) => {
    const done = rest.at(-1)
    if (typeof done === 'function') process.nextTick(done)
    const call = calls.getStore()
    if (call?.isOpen !== true) return true
    const printed = isUint8Array(text) ? decoder.decode(text) : String(text)
    for (const line of printed.trimEnd().split('\n')) addLine(call.log, line)
    return true
  }
  process.stdout.write = print
  process.stderr.write = print
}
