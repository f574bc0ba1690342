// Runs one command without a shell and with bounded output. When the promise settles, each process of its group has ended, unless the system
// cannot kill it.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { findErrorCode } from '../../../../base/exceptions.ts'
import { readdir, readFile } from 'node:fs/promises'

/** The time for output that is still in the pipes after the exit. A process that keeps them open longer is killed. */
const drainMs = 1_000
/** The bytes at the end of stderr that are kept. */
const maxStderrBytes = 8_192

type ChildOptions = {
  /** The program: a name in the PATH of `env`, or an absolute path. */
  readonly command: string
  readonly args: readonly string[]
  readonly cwd: string
  /** The whole environment of the command. */
  readonly env: Readonly<Record<string, string>>
  /** The stdin of the command; undefined if it is empty. */
  readonly input: string | undefined
  /** The limit of stdout. A command that prints more is killed. */
  readonly maxOutputBytes: number
  readonly killAfterMs: number
  readonly signal: AbortSignal
  readonly log: (message: string) => void
}

/** `stopped`: the signal was aborted. `flooded`: the output was too long. `not-started`: `code` is a system code such as ENOENT. */
export type ChildEnd =
  | {
      readonly kind: 'exited'
      /** Null if `signal` killed the command. */
      readonly code: number | null
      readonly signal: string | null
      readonly output: string
      /** The end of stderr. */
      readonly complaint: string
    }
  | { readonly kind: 'stopped' }
  | { readonly kind: 'flooded' }
  | { readonly kind: 'not-started'; readonly code: string }

/** Never rejects. Settles when the whole process group has ended, unless the system cannot kill it. */
export async function runChild(options: ChildOptions): Promise<ChildEnd> {
  if (options.signal.aborted) return { kind: 'stopped' }
  let child: ChildProcessWithoutNullStreams
  try {
    child = spawnChild(options)
  } catch (thrown) {
    return { kind: 'not-started', code: findErrorCode(thrown) ?? 'unknown' }
  }
  if (child.pid === undefined) {
    const [thrown] = await once(child, 'error')
    return { kind: 'not-started', code: findErrorCode(thrown) ?? 'unknown' }
  }
  return await supervise(child, child.pid, options)
}

function spawnChild({ command, args, cwd, env }: ChildOptions): ChildProcessWithoutNullStreams {
  // detached: the leader of a new process group, whose id is its pid
  return spawn(command, args, { cwd, env, detached: true, shell: false, windowsHide: true, stdio: 'pipe' })
}

async function supervise(
  child: ChildProcessWithoutNullStreams,
  pid: number,
  { input, maxOutputBytes, killAfterMs, signal, log }: ChildOptions,
): Promise<ChildEnd> {
  trackGroup(pid)
  const flood = new AbortController()
  const stop = AbortSignal.any([signal, flood.signal])
  const stopped = new Promise<undefined>((resolve) => {
    stop.addEventListener('abort', () => resolve(undefined), { once: true })
  })
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const exited = new Promise<{ code: number | null; signal: string | null }>((resolve) =>
    child.once('exit', (code, bySignal) => resolve({ code, signal: bySignal })),
  )
  const output = keepHead(child.stdout, maxOutputBytes, () => flood.abort())
  const complaint = keepTail(child.stderr, maxStderrBytes)
  // a command may ignore its input: EPIPE is not a failure of the run
  child.stdin.on('error', () => {})
  child.stdin.end(input)

  const exit = await Promise.race([exited, stopped])
  if (exit !== undefined) await Promise.race([closed, stopped, delay(drainMs, undefined, { ref: false })])
  const isGone = await endGroup(pid, killAfterMs)
  for (const stream of child.stdio) stream?.destroy()
  untrackGroup(pid)
  if (!isGone) log(`the process group ${pid} of a command survived SIGKILL and is left running`)
  if (signal.aborted) return { kind: 'stopped' }
  if (exit === undefined || flood.signal.aborted) return { kind: 'flooded' }
  return { kind: 'exited', ...exit, output: output(), complaint: complaint() }
}

function keepHead(stream: Readable, maxBytes: number, onOverflow: () => void): () => string {
  const chunks: Buffer[] = []
  let bytes = 0
  stream.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > maxBytes) onOverflow()
    else chunks.push(chunk)
  })
  return () => Buffer.concat(chunks).toString('utf8')
}

function keepTail(stream: Readable, maxBytes: number): () => string {
  let tail: Buffer = Buffer.alloc(0)
  stream.on('data', (chunk: Buffer) => {
    tail = Buffer.concat([tail, chunk]).subarray(-maxBytes)
  })
  return () => tail.toString('utf8')
}

/**
 * The pause between two checks of a group: first twice `base`, then doubled each time up to `cap`. The checks are needed because the system
 * reports the end of a child, but not of a grandchild.
 */
const pollMs = { base: 10, cap: 320 }
/** The time that the system has to remove a killed process. A process that hangs inside the kernel stays longer. */
const reapMs = 5_000

const trackedGroups = new Set<number>()

/** Kills a group when this process exits, until `untrackGroup` is called. */
function trackGroup(id: number): void {
  if (trackedGroups.size === 0) process.on('exit', killTrackedGroups)
  trackedGroups.add(id)
}

function untrackGroup(id: number): void {
  trackedGroups.delete(id)
  if (trackedGroups.size === 0) process.off('exit', killTrackedGroups)
}

function killTrackedGroups(): void {
  for (const id of trackedGroups) signalGroup(id, 'SIGKILL')
}

/** Sends SIGTERM, and SIGKILL after `killAfterMs`. Returns false if a process is still running. */
async function endGroup(id: number, killAfterMs: number): Promise<boolean> {
  if (!signalGroup(id, 'SIGTERM') || (await waitUntilGone(id, killAfterMs))) return true
  return !signalGroup(id, 'SIGKILL') || (await waitUntilGone(id, reapMs))
}

async function waitUntilGone(id: number, ms: number): Promise<boolean> {
  let waitMs = pollMs.base
  for (let leftMs = ms; leftMs > 0; leftMs -= waitMs) {
    waitMs = Math.min(leftMs, waitMs * 2, pollMs.cap)
    await delay(waitMs)
    if (!signalGroup(id, 0) || (await hasOnlyZombies(id))) return true
  }
  return false
}

/** Whether only zombies are left in the group. A signal still reaches zombies, and a container's first process may never reap them. */
async function hasOnlyZombies(id: number): Promise<boolean> {
  // only Linux has these files; elsewhere the system reaps orphans
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name))
  const stats = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '')))
  // proc_pid_stat(5): pid (name) state parent group; a name may contain parentheses and spaces
  const states = stats.flatMap((stat) => {
    const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ', 3)
    return Number(group) === id ? [state] : []
  })
  return states.length > 0 && states.every((state) => state === 'Z' || state === 'X')
}

/** Sends a signal to a group; signal 0 only checks. Returns false if there is no process that this user may signal. */
function signalGroup(id: number, signal: 'SIGTERM' | 'SIGKILL' | 0): boolean {
  try {
    return process.kill(-id, signal)
  } catch {
    return false
  }
}
