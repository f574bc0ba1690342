// One command from start to end: no shell, bounded output, and nothing of it left when the promise settles.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { toErrorCode } from '../../../base/exceptions.ts'
import { readdir, readFile } from 'node:fs/promises'

/** For output that is still in the pipes when the command has exited; whoever holds them open for longer is ended. */
const drainMs = 1_000
/** Of what it writes to stderr: the last of it. */
const maxComplaintBytes = 8_192

export type ChildOptions = {
  /** A name that is looked up in the PATH of `env`, or an absolute path. */
  readonly command: string
  readonly args: readonly string[]
  readonly cwd: string
  /** All that it sees of the environment. */
  readonly env: Readonly<Record<string, string>>
  /** Its stdin, closed afterwards; undefined: empty. */
  readonly input: string | undefined
  /** Of stdout. Who prints more is ended. */
  readonly maxOutputBytes: number
  readonly killAfterMs: number
  readonly signal: AbortSignal
  readonly log: (message: string) => void
}

/** `stopped`: its signal ended. `flooded`: it printed too much. `not-started`: `code` is that of the system, as ENOENT. */
export type ChildEnd =
  | {
      readonly kind: 'exited'
      /** Null: ended by `signal`, which was not ours. */
      readonly code: number | null
      readonly signal: string | null
      readonly output: string
      /** The end of stderr. */
      readonly complaint: string
    }
  | { readonly kind: 'stopped' }
  | { readonly kind: 'flooded' }
  | { readonly kind: 'not-started'; readonly code: string }

/** Never rejects. Settles when the whole process group is gone, unless the system cannot kill it. */
export async function runChild(options: ChildOptions): Promise<ChildEnd> {
  if (options.signal.aborted) return { kind: 'stopped' }
  let child: ChildProcessWithoutNullStreams
  try {
    child = start(options)
  } catch (thrown) {
    return { kind: 'not-started', code: toErrorCode(thrown) ?? 'unknown' }
  }
  if (child.pid === undefined) {
    const [thrown] = await once(child, 'error')
    return { kind: 'not-started', code: toErrorCode(thrown) ?? 'unknown' }
  }
  return await attend(child, child.pid, options)
}

function start({ command, args, cwd, env }: ChildOptions): ChildProcessWithoutNullStreams {
  // detached: the leader of a group of its own, whose id is its pid
  return spawn(command, args, { cwd, env, detached: true, shell: false, windowsHide: true, stdio: 'pipe' })
}

async function attend(
  child: ChildProcessWithoutNullStreams,
  pid: number,
  { input, maxOutputBytes, killAfterMs, signal, log }: ChildOptions,
): Promise<ChildEnd> {
  holdGroup(pid)
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
  const complaint = keepTail(child.stderr, maxComplaintBytes)
  // a command need not read its input: EPIPE is no failure of the run
  child.stdin.on('error', () => {})
  child.stdin.end(input)

  const exit = await Promise.race([exited, stopped])
  if (exit !== undefined) await Promise.race([closed, stopped, delay(drainMs, undefined, { ref: false })])
  const isGone = await endGroup(pid, killAfterMs)
  for (const stream of child.stdio) stream?.destroy()
  letGroupGo(pid)
  if (!isGone) log(`the process group ${pid} of a command outlives SIGKILL; it is left behind`)
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

/** Between two looks at whether a group is gone, doubled up to the cap. The system tells of our child's end, never of a grandchild's. */
const pollMs = { first: 10, cap: 320 }
/** For the system to bury what was killed. A process that hangs inside the kernel outlives it, and everything else too. */
const burialMs = 5_000

const held = new Set<number>()

/** Until it is let go, a group is killed when this process exits. */
export function holdGroup(id: number): void {
  if (held.size === 0) process.on('exit', killHeld)
  held.add(id)
}

export function letGroupGo(id: number): void {
  held.delete(id)
  if (held.size === 0) process.off('exit', killHeld)
}

function killHeld(): void {
  for (const id of held) signalGroup(id, 'SIGKILL')
}

/** SIGTERM, and SIGKILL for what is left after `killAfterMs`. False: something is still there. */
export async function endGroup(id: number, killAfterMs: number): Promise<boolean> {
  if (!signalGroup(id, 'SIGTERM') || (await isGoneWithin(id, killAfterMs))) return true
  return !signalGroup(id, 'SIGKILL') || (await isGoneWithin(id, burialMs))
}

async function isGoneWithin(id: number, ms: number): Promise<boolean> {
  let waitMs = pollMs.first
  for (let leftMs = ms; leftMs > 0; leftMs -= waitMs) {
    waitMs = Math.min(leftMs, waitMs * 2, pollMs.cap)
    await delay(waitMs)
    if (!signalGroup(id, 0) || (await isDead(id))) return true
  }
  return false
}

/**
 * True: what is left of it are processes that ended and that nobody has buried. A signal still reaches those, for as long as
 * the first process of a container does not look after orphans.
 */
async function isDead(id: number): Promise<boolean> {
  // Linux alone has these files; elsewhere the system buries orphans
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name))
  const stats = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '')))
  // proc_pid_stat(5): pid (name) state parent group; a name may hold parentheses and spaces
  const states = stats.flatMap((stat) => {
    const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ', 3)
    return Number(group) === id ? [state] : []
  })
  return states.length > 0 && states.every((state) => state === 'Z' || state === 'X')
}

/** False: nobody is there whom we may signal. Signal 0 only asks. */
function signalGroup(id: number, signal: 'SIGTERM' | 'SIGKILL' | 0): boolean {
  try {
    return process.kill(-id, signal)
  } catch {
    return false
  }
}
