// Runs the probes of the bench one after the other. Each probe has a child process that runs for all its rounds.
import { join } from 'node:path'
import { startChild } from './child.ts'
import type { ProbeOptions } from './probe.ts'
import type { RunOptions } from './run.ts'
import type { Probe } from './figures.ts'

/** The values, by the keys of the figures. */
export type Figures = Readonly<Record<string, number>>
export type ProbeSample = { readonly probe: Probe['name']; readonly round: number; readonly figures: Figures }

export async function runProbes(options: RunOptions & { probes: readonly Probe[] }): Promise<ProbeSample[]> {
  const { probes, folder, built, onProgress } = options
  const samples: ProbeSample[] = []
  for (const { name, once = false } of probes) {
    const given: ProbeOptions = { name, folder, built, seconds: options.seconds }
    const { child } = await startChild<{ round: number }, Figures>(join(folder, 'probe.mjs'), [JSON.stringify(given)])
    try {
      const rounds = once ? 1 : options.rounds
      for (let round = 0; round < rounds; round += 1) {
        onProgress(`probe ${name}, round ${round + 1} of ${rounds}`)
        samples.push({ probe: name, round, figures: await child.ask({ round }) })
      }
    } finally {
      await child.kill()
    }
  }
  return samples
}
