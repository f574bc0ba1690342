// A process that runs one probe. It measures once for each round that it is asked for.
import { createLoadProbe } from './battery/battery.ts'
import { createCostProbe } from './probe-cost.ts'
import { createFlowProbe } from './probe-flow.ts'
import { createGrowthProbe } from './probe-growth.ts'
import { createIsolationProbe } from './probe-isolation.ts'
import { createMicroProbe } from './probe-micro.ts'
import { createPostgresProbe } from './probe-postgres.ts'
import { createQueueProbe } from './probe-queue.ts'
import { createReloadProbe } from './probe-reload.ts'
import { createRunawayProbe } from './probe-runaway.ts'
import { createRunsProbe } from './probe-runs.ts'
import { createVerifyProbe } from './probe-verify.ts'
import type { Figures } from './probes.ts'
import type { Probe } from './figures.ts'

export type ProbeOptions = {
  readonly name: Probe['name']
  /** The folder of the compiled children and of the stores. */
  readonly folder: string
  /** The URL of the built package's `index.js`. */
  readonly built: string
  readonly seconds: number
}
/** Measures a round. The first round is 0. */
export type RunningProbe = (round: number) => Promise<Figures>

async function create(options: ProbeOptions): Promise<RunningProbe> {
  const { name } = options
  switch (name) {
    case 'verify':
      return createVerifyProbe()
    case 'micro':
      return createMicroProbe(options)
    case 'isolation':
      return createIsolationProbe(options)
    case 'cost':
      return createCostProbe(options)
    case 'flow':
      return createFlowProbe(options)
    case 'growth':
      return createGrowthProbe(options)
    case 'queue':
      return createQueueProbe(options)
    case 'postgres':
      return createPostgresProbe(options)
    case 'reload':
      return createReloadProbe(options)
    case 'runaway':
      return createRunawayProbe(options)
    case 'runs':
      return createRunsProbe(options)
    default:
      return createLoadProbe({ ...options, name })
  }
}

function send(answer: Promise<unknown>): void {
  answer.then(
    (result) => process.send?.({ result }),
    (error: unknown) => process.send?.({ failure: String(error) }),
  )
}

// as: probes.ts wrote these options
const starting = create(JSON.parse(process.argv[2] ?? '{}') as ProbeOptions)
send(starting.then(() => 'ready'))
process.on('message', ({ round }: { round: number }) => send(starting.then((run) => run(round))))
process.on('disconnect', () => process.exit())
