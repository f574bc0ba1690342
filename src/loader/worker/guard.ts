// What a transform may not do to the process that it runs in: in a worker thread, `process.kill` would still end the gateway.
import type { AsyncLocalStorage } from 'node:async_hooks'

/** A call as it is known inside the worker; `log` takes what its code prints, while it is open. */
export type OpenCall = { readonly seq: number; readonly bundle: number; readonly log: string[]; isOpen: boolean }

const logLines = 100
const logLineLength = 500

/** Adds a line to a call's log: 100 lines of 500 characters. Takes anything, and never throws. */
export function addLine(log: string[], message: unknown): void {
  if (log.length >= logLines) return
  try {
    log.push(String(message).slice(0, logLineLength))
  } catch {
    log.push('a log line that is not text')
  }
}

/**
 * `leave` is told how code ended its worker, right before it ends. What is printed goes into the log of the call that printed it,
 * also after an `await`; outside of calls it goes nowhere, for it may hold a payload.
 */
export function guardProcess(options: { calls: AsyncLocalStorage<OpenCall>; leave: (how: string) => void }): void {
  const { calls, leave } = options
  // in a worker, the native ones end the thread and signal the process
  const { reallyExit } = process as unknown as { reallyExit: (code: number) => void } // not in the types, but in every Node
  const { _kill } = process as unknown as { _kill: (pid: number, signal: number) => number } // as above: process.kill calls it
  const end = (how: string): never => {
    leave(how)
    reallyExit.call(process, 1)
    // the thread ends at its next loop or call: whoever asked for the end must not go on before that
    for (;;);
  }
  const replacements = {
    exit: () => end('process.exit'),
    reallyExit: () => end('process.reallyExit'),
    abort: () => end('process.abort'),
    _kill: (pid: number, signal: number) =>
      // 0 and negative numbers are groups, the own one among them
      signal !== 0 && (pid <= 0 || pid === process.pid) ? end('process.kill') : _kill.call(process, pid, signal),
  }
  for (const [name, value] of Object.entries(replacements)) {
    Object.defineProperty(process, name, { value, configurable: true, writable: true })
  }
  const print = (text: unknown) => {
    const call = calls.getStore()
    if (call?.isOpen !== true) return true
    for (const line of String(text).trimEnd().split('\n')) addLine(call.log, line)
    return true
  }
  process.stdout.write = print
  process.stderr.write = print
}
