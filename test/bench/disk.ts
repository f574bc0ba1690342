// Measures the disk: the time of one small append and its fdatasync. No durable answer is faster.
import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { computeQuantile } from './statistics.ts'

export type DiskTimes = { readonly p50Ms: number; readonly p99Ms: number }

const appends = 300
/** About the size of a row of the benched hook. */
const appendBytes = 1200

export function measureDisk(folder: string): DiskTimes {
  const file = join(folder, 'fsync.bin')
  const handle = openSync(file, 'a')
  const block = Buffer.alloc(appendBytes, 'x')
  const times: number[] = []
  for (let index = 0; index < appends; index += 1) {
    const start = performance.now()
    writeSync(handle, block)
    fdatasyncSync(handle)
    times.push(performance.now() - start)
  }
  closeSync(handle)
  rmSync(file)
  return { p50Ms: computeQuantile(times, 0.5), p99Ms: computeQuantile(times, 0.99) }
}
