// The rows about requests alone: throughput, a constant rate, a burst, and the largest bodies.
import { setTimeout as pause } from 'node:timers/promises'
import type { Figures } from '../probes.ts'
import { type RowOptions, type Stage, withStage } from './stage.ts'

/** L1 */
export function measureThroughput(options: RowOptions): Promise<Figures> {
  return withStage(options, async ({ send }) => {
    const { perSecond, p50Ms, p99Ms } = await send({ connections: 64, seconds: options.seconds })
    return { perSecond, p50: p50Ms, p99: p99Ms }
  })
}

/** L2: ten times as long as the others. */
export function measureConstantRate(options: RowOptions): Promise<Figures> {
  return withStage(options, async ({ send }) => {
    const constant = { perSecond: 500, connections: 64, isPatient: true, seconds: options.seconds * 10 }
    const { p50Ms, p99Ms, p999Ms, maxMs, lateMs, later, others } = await send(constant)
    return { p50: p50Ms, p99: p99Ms, p999: p999Ms, max: maxMs, late: lateMs, errors: later + others }
  })
}

const burst = { perSecond: 2_000, seconds: 5, connections: 512, isPatient: true }
const memoryMs = 60_000
/** The share of the memory before a burst to which it must come back. */
const memoryShare = 1.25

/** L4. The second burst shows whether the memory that the first one took is used again. */
export function measureBurst(options: RowOptions): Promise<Figures> {
  return withStage(options, async ({ gateway, send }) => {
    const before = gateway.readMemory().nowMb
    const sendBurst = async () => {
      gateway.resetPeak()
      return { ...(await send(burst)), peakMb: gateway.readMemory().peakMb }
    }
    const first = await sendBurst()
    const back = await waitForMemory(gateway, before * memoryShare)
    const after = gateway.readMemory().nowMb
    const again = (await sendBurst()).peakMb / first.peakMb
    const { tookSeconds, later, others, peakMb } = first
    return { took: tookSeconds, later, others, before, peak: peakMb, after, back, again }
  })
}

/** The seconds until the memory is at most this. Infinity if it never is in a minute. */
async function waitForMemory(gateway: Stage['gateway'], mostMb: number): Promise<number> {
  const begun = performance.now()
  while (gateway.readMemory().nowMb > mostMb) {
    if (performance.now() - begun > memoryMs) return Number.POSITIVE_INFINITY
    await pause(250)
  }
  return (performance.now() - begun) / 1_000
}

const maxBytes = 262_144
const megabyte = 1_048_576

/** L8 */
export function measureLargest(options: RowOptions): Promise<Figures> {
  return withStage(options, async ({ gateway, send }) => {
    const base = gateway.readMemory().nowMb
    gateway.resetPeak()
    // an event of this size has up to one comment more
    const { perSecond, p99Ms } = await send({ connections: 32, bytes: maxBytes - 500, seconds: options.seconds })
    const peak = gateway.readMemory().peakMb
    return { perSecond, p99: p99Ms, base, peak, bodies: ((peak - base) * megabyte) / maxBytes }
  })
}
