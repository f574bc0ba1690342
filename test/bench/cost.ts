// The cost of a piece of work, in figures that are equal on all machines: system calls, and pages and bytes of the WAL.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { readTransactions } from './wal.ts'

/** Why system calls cannot be counted here. Undefined if they can. */
export const whyNoCalls =
  spawnSync('strace', ['-o', '/dev/null', 'true']).status === 0 ? undefined : 'strace does not work here'

/** The calls that V8 and its threads make to collect garbage or to compile. Their number does not depend on requests. */
const ofRuntime: ReadonlySet<string> = new Set([
  'futex',
  'mmap',
  'munmap',
  'mprotect',
  'madvise',
  'brk',
  'getpid',
  'sched_yield',
])

/** Counts the system calls of all threads of a process while `work` runs, by the name of the call. */
export async function countCalls(
  pid: number,
  file: string,
  work: () => Promise<unknown>,
): Promise<Record<string, number>> {
  const strace = spawn('strace', ['-c', '-f', '-o', file, '-p', String(pid)], { stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = once(strace, 'exit')
  try {
    await waitUntilAttached(strace)
    await work()
  } finally {
    strace.kill('SIGINT')
    await ended
  }
  const rows = readFileSync(file, 'utf8').matchAll(/^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(?:\d+ +)?(\w+)$/gm)
  const calls = [...rows].map(([, count, name]) => [name ?? '', Number(count)] as const)
  return Object.fromEntries(calls.filter(([name]) => name !== 'total' && !ofRuntime.has(name)))
}

/** Resolves when strace is attached. strace reports each thread; a process has at least the main thread and the threads of its pool. */
async function waitUntilAttached({ stderr }: ChildProcess): Promise<void> {
  let text = ''
  for await (const chunk of stderr?.setEncoding('utf8').iterator({ destroyOnReturn: false }) ?? []) {
    text += String(chunk)
    if (/attached/.test(text)) return
  }
  throw new Error(`strace ended: ${text}`)
}

/** The commits, pages and bytes that `work` wrote to the WAL. The WAL must not be restarted during `work`. */
export async function measureWal(wal: string, work: () => Promise<unknown>) {
  const before = readTransactions(readFileSync(wal)).length
  await work()
  const written = readTransactions(readFileSync(wal)).slice(before)
  return {
    commits: written.length,
    pages: written.reduce((all, { pages }) => all + pages, 0),
    bytes: written.reduce((all, { bytes }) => all + bytes, 0),
  }
}

const quietMs = 400

/** Resolves when the WAL has not changed for a while: the job is then done. */
export async function waitUntilQuiet(wal: string): Promise<void> {
  for (let size = -1; size !== statSync(wal).size; await pause(quietMs)) size = statSync(wal).size
}
