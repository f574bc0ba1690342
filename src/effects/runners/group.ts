// A process group: a command and whatever it started. It is signalled as one, so that no grandchild outlives a run.
import { setTimeout as delay } from 'node:timers/promises'

/** Between two looks at whether a group is gone. The system tells us of our child's end, never of a grandchild's. */
const pollMs = 20
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
  for (let waitedMs = 0; waitedMs < ms; waitedMs += pollMs) {
    await delay(Math.min(pollMs, ms - waitedMs))
    if (!signalGroup(id, 0)) return true
  }
  return false
}

/** False: nobody is there whom we may signal. Signal 0 only asks. */
function signalGroup(id: number, signal: 'SIGTERM' | 'SIGKILL' | 0): boolean {
  try {
    return process.kill(-id, signal)
  } catch {
    return false
  }
}
