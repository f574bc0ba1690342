// What the numbers were made on, and whether it was ours alone.
import { arch, cpus, loadavg, platform, release } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'

const watchedMs = 400
/** From this share on, others take so much of the machine that a missed floor says little. */
export const busyShare = 0.15

export function describeMachine(): string {
  const load = loadavg().map((value) => value.toFixed(1))
  return [
    `node ${process.version}`,
    `${platform()} ${release()} ${arch()}`,
    `${cpus().length} × ${cpus()[0]?.model.trim() ?? 'unknown'}`,
    `load average before ${load.join(' ')}`,
  ].join(', ')
}

/** Share of the processors, 0 to 1, that is in use; asked while the bench itself stands still. */
export async function measureBusy(): Promise<number> {
  const before = toTimes()
  await pause(watchedMs)
  const after = toTimes()
  return 1 - (after.idle - before.idle) / (after.all - before.all)
}

function toTimes(): { idle: number; all: number } {
  const times = cpus().map((cpu) => cpu.times)
  const all = times.reduce((sum, { user, nice, sys, idle, irq }) => sum + user + nice + sys + idle + irq, 0)
  return { idle: times.reduce((sum, { idle }) => sum + idle, 0), all }
}
