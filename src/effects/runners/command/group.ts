// A process group: a command and whatever it started. It is signalled as one, so that no grandchild outlives a run.
import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'

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
