// The cost of each stage of an accepted request alone: time and allocated memory. A slower stage shows which file to read.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createStages, type Stage } from './micro-stages.ts'
import type { ProbeOptions, RunningProbe } from './probe.ts'
import { computeMedian } from './statistics.ts'

const requestsOfWindow = 256
const windows = 16
const warmWindows = 16
const memoryWindows = 7

export async function createMicroProbe({ folder }: ProbeOptions): Promise<RunningProbe> {
  const stages = await createStages(folder)
  for (let window = 0; window < warmWindows; window += 1) for (const stage of stages) await measureTime(stage)
  setFlagsFromString('--expose-gc')
  // as: the flag creates this function
  const collect = runInNewContext('gc') as () => void
  return async () => {
    const micros = stages.map((): number[] => [])
    for (let window = 0; window < windows; window += 1) {
      for (const [index, stage] of stages.entries()) micros[index]?.push(await measureTime(stage))
    }
    const bytes = stages.map((): number[] => [])
    for (let window = 0; window < memoryWindows; window += 1) {
      for (const [index, stage] of stages.entries()) bytes[index]?.push(await measureBytes(stage, collect))
    }
    const yardstick = computeMedian(micros[stages.findIndex(({ name }) => name === 'parse')] ?? [])
    const figures: Record<string, number> = {}
    for (const [index, { name }] of stages.entries()) {
      const each = computeMedian(micros[index] ?? [])
      figures[`${name} micros`] = each
      figures[`${name} parses`] = each / yardstick
      figures[`${name} bytes`] = computeMedian(bytes[index] ?? [])
    }
    return figures
  }
}

/** Microseconds of processor time for one request. The disk and other programs do not count. */
async function measureTime({ prepare, requests }: Stage): Promise<number> {
  const calls = await prepare(requestsOfWindow / requests)
  const start = process.cpuUsage()
  await run(calls)
  const { user, system } = process.cpuUsage(start)
  return (user + system) / requestsOfWindow
}

/** The bytes that one request allocates in the heap and in buffers. Measured with few calls, so that no garbage collection runs. */
async function measureBytes({ prepare, requests }: Stage, collect: () => void): Promise<number> {
  const count = Math.max(1, 64 / requests)
  const calls = await prepare(count)
  collect()
  const start = measureHeldBytes()
  await run(calls)
  return (measureHeldBytes() - start) / (count * requests)
}

async function run(calls: readonly (() => unknown)[]): Promise<void> {
  for (const call of calls) {
    const result = call()
    if (result instanceof Promise) await result
  }
}

function measureHeldBytes(): number {
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
