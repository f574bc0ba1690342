// Turns samples into verdicts. Two variants are compared within each round; the verdict is the median of the rounds.
import type { ProbeSample } from './probes.ts'
import type { Sample } from './run.ts'
import { computeMedian } from './statistics.ts'
import { type Figure, type Probe } from './figures.ts'
import { type Comparison, comparisons, floorShare, type Load, type Suite, type Variant } from './suites.ts'

export type Verdict = {
  readonly title: string
  /** The load. Undefined for a probe, which has none. */
  readonly load: Load | undefined
  readonly as: Comparison['as'] | 'figure'
  readonly value: number
  /** The lowest value of all rounds. */
  readonly lowest: number
  readonly highest: number
  readonly goal: number | undefined
  /** The limit for a pass: `value` must not be below it, or with `isMost` not above it. */
  readonly floor: number | undefined
  readonly isMost: boolean
  readonly holds: boolean
}

export type Row = {
  readonly suite: Suite['name']
  readonly variant: string
  readonly load: Load
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly cpuMicros: number
  readonly mainMicros: number
  readonly jobsPerSecond: number | undefined
}

export function buildVerdicts(samples: readonly Sample[]): Verdict[] {
  const measured = new Set(samples.map(({ variant }) => variant))
  return comparisons.flatMap((comparison) => {
    // the peer is not installed
    if (comparison.suite === 'peers' && !measured.has(comparison.to)) return []
    const rounds = new Set(samples.filter(({ suite }) => suite === comparison.suite).map(({ round }) => round))
    const values = [...rounds].map((round) => {
      const ofRound = samples.filter((sample) => sample.suite === comparison.suite && sample.round === round)
      return compare(comparison, ofRound)
    })
    return values.length === 0 ? [] : [buildVerdict(comparison, values)]
  })
}

function compare({ of, to, load, as }: Comparison, samples: readonly Sample[]): number {
  const find = (variant: Variant) => samples.find((sample) => sample.variant === variant && sample.load === load)
  const [a, b] = [find(of), find(to)]
  if (!a || !b) return Number.NaN
  switch (as) {
    case 'throughput':
      return a.perSecond / b.perSecond
    case 'processor':
      return a.cpuMicros / b.cpuMicros
    case 'latency':
      return a.p50Ms / b.p50Ms
    case 'lag':
      return (a.p99Ms - b.p99Ms) / of.server.delayMs
    case 'added':
      return (a.p50Ms - b.p50Ms) * 1000
    case 'added work':
      return a.cpuMicros - b.cpuMicros
  }
}

/** The verdicts of the probes. A figure without a sample was not measured, and misses its goal. */
export function buildProbeVerdicts(probes: readonly Probe[], samples: readonly ProbeSample[]): Verdict[] {
  return probes.flatMap((probe) => {
    const own = samples.filter((sample) => sample.probe === probe.name)
    return probe.figures.map((figure) => buildFigureVerdict(figure, own))
  })
}

function buildFigureVerdict({ key, title, most, least }: Figure, samples: readonly ProbeSample[]): Verdict {
  const values = samples.map(({ figures }) => figures[key] ?? Number.NaN)
  return buildVerdict({ title, load: undefined, as: 'figure', goal: least ?? most }, values, least === undefined)
}

type Judged = Pick<Verdict, 'title' | 'load' | 'as'> & { readonly goal?: number | undefined }

function buildVerdict(
  { title, load, as, goal }: Judged,
  values: readonly number[],
  isMost = as !== 'throughput',
): Verdict {
  const value = computeMedian(values)
  const floor = goal === undefined ? undefined : isMost ? goal / floorShare : goal * floorShare
  // NaN misses each goal
  const holds = floor === undefined || (isMost ? value <= floor : value >= floor)
  const [lowest, highest] = [Math.min(...values), Math.max(...values)]
  return { title, load, as, value, lowest, highest, goal, floor, isMost, holds }
}

export function buildRows(samples: readonly Sample[]): Row[] {
  const groups = new Map<string, Sample[]>()
  for (const sample of samples) {
    const { suite, variant, load } = sample
    const name = JSON.stringify([suite, load, variant.name])
    groups.set(name, [...(groups.get(name) ?? []), sample])
  }
  return [...groups.values()].flatMap(buildRow).toSorted((a, b) => computeRank(a) - computeRank(b))
}

function buildRow(group: readonly Sample[]): Row[] {
  const [first] = group
  if (!first) return []
  const computeMedianOf = (pick: (sample: Sample) => number) => computeMedian(group.map(pick))
  return [
    {
      suite: first.suite,
      variant: first.variant.name,
      load: first.load,
      perSecond: computeMedianOf((sample) => sample.perSecond),
      p50Ms: computeMedianOf((sample) => sample.p50Ms),
      p99Ms: computeMedianOf((sample) => sample.p99Ms),
      cpuMicros: computeMedianOf((sample) => sample.cpuMicros),
      mainMicros: computeMedianOf((sample) => sample.mainMicros),
      jobsPerSecond:
        first.jobsPerSecond === undefined ? undefined : computeMedianOf((sample) => sample.jobsPerSecond ?? Number.NaN),
    },
  ]
}

/** The order of rows: by suite, then by load from light to heavy. */
function computeRank({ suite, load }: Row): number {
  return (
    ['accept', 'slow', 'agent', 'flow', 'signed', 'isolation', 'peers'].indexOf(suite) * 1e12 +
    load.bytes * 1e4 +
    load.connections
  )
}
