// The cost of a piece of work in figures that do not depend on the machine: system calls, and pages and bytes of the WAL.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { readTransactions } from './wal.ts'

/** Why system calls cannot be counted here; undefined if they can. */
export const whyNoCalls =
  spawnSync('strace', ['-o', '/dev/null', 'true']).status === 0 ? undefined : 'strace does not work here'

/** V8 and its threads make these calls when they collect garbage or compile. Their number does not depend on requests. */
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

/** Counts the calls of all threads of a process while `work` runs, by their names. */
export async function countCalls(
  pid: number,
  file: string,
  work: () => Promise<unknown>,
): Promise<Record<string, number>> {
  const strace = spawn('strace', ['-c', '-f', '-o', file, '-p', String(pid)], { stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = once(strace, 'exit')
  try {
    await attached(strace)
    await work()
  } finally {
    strace.kill('SIGINT')
    await ended
  }
  const rows = readFileSync(file, 'utf8').matchAll(/^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(?:\d+ +)?(\w+)$/gm)
  const calls = [...rows].map(([, count, name]) => [name ?? '', Number(count)] as const)
  return Object.fromEntries(calls.filter(([name]) => name !== 'total' && !ofRuntime.has(name)))
}

/** strace names each thread that it has attached; a process has at least the main thread and those of its pool. */
async function attached({ stderr }: ChildProcess): Promise<void> {
  let text = ''
  for await (const chunk of stderr?.setEncoding('utf8').iterator({ destroyOnReturn: false }) ?? []) {
    text += String(chunk)
    if (/attached/.test(text)) return
  }
  throw new Error(`strace ended: ${text}`)
}

/** Commits, pages and bytes that `work` wrote into the WAL. The WAL must not have been restarted since. */
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

/** Resolves when the WAL has not changed for a while, which means that the job is done. */
export async function untilQuiet(wal: string): Promise<void> {
  for (let size = -1; size !== statSync(wal).size; await pause(quietMs)) size = statSync(wal).size
}
