// The priority of one thread. Linux schedules threads, each with a niceness of its own; elsewhere nothing is done.
import { readlinkSync } from 'node:fs'
import { constants, setPriority } from 'node:os'

/** The system's number of the thread that asks; undefined where the system has none to give. */
export function readThreadId(): number | undefined {
  try {
    // <process>/task/<thread>
    const id = Number(readlinkSync('/proc/thread-self').split('/').at(-1))
    return Number.isSafeInteger(id) ? id : undefined
  } catch {
    return undefined
  }
}

/** Whoever else has something to do goes before this thread from now on. There is no way back without privileges. */
export function lowerPriority(threadId: number | undefined): void {
  if (threadId === undefined) return
  try {
    setPriority(threadId, constants.priority.PRIORITY_LOW)
  } catch {
    // it has ended, or the system does not let us
  }
}
