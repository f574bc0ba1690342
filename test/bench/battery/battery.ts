// The rows of the load battery that are measured. Each is a probe of its own.
import type { ProbeOptions, RunningProbe } from '../probe.ts'
import type { Figures } from '../probes.ts'
import { measureBurst, measureConstantRate, measureLargest, measureThroughput } from './intake.ts'
import { measureMapped, measureSaves } from './mapped.ts'
import { measureBadTraffic, measureHeldConnections, measureNoisyNeighbour } from './neighbours.ts'
import type { LoadRow } from './rows.ts'
import { measureFleet, measureQueuedRuns } from './runs.ts'
import type { RowOptions } from './stage.ts'

const measures: Readonly<Record<LoadRow, (options: RowOptions) => Promise<Figures>>> = {
  L1: measureThroughput,
  L2: measureConstantRate,
  L3: measureMapped,
  L4: measureBurst,
  L5: measureQueuedRuns,
  L6: measureNoisyNeighbour,
  L8: measureLargest,
  L9: measureBadTraffic,
  L10: measureSaves,
  L12: measureFleet,
  L13: measureHeldConnections,
}

export function createLoadProbe(options: ProbeOptions & { readonly name: LoadRow }): RunningProbe {
  return () => measures[options.name](options)
}
