// Describes the machine of the measurement, and how busy other programs kept it.
import { arch, cpus, loadavg, platform, release } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'

const watchedMs = 400
/** The share above which other programs use so much of the machine that a missed goal says little. */
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

/** The share of the processors that is in use, from 0 to 1. Measured while the bench does nothing. */
export async function measureBusy(): Promise<number> {
  const before = readProcessorTimes()
  await pause(watchedMs)
  const after = readProcessorTimes()
  return 1 - (after.idle - before.idle) / (after.all - before.all)
}

function readProcessorTimes(): { idle: number; all: number } {
  const times = cpus().map((cpu) => cpu.times)
  const all = times.reduce((sum, { user, nice, sys, idle, irq }) => sum + user + nice + sys + idle + irq, 0)
  return { idle: times.reduce((sum, { idle }) => sum + idle, 0), all }
}
