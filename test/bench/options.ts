import { parseArgs } from 'node:util'
import { loadRows } from './battery/rows.ts'
import { type Probe, probes } from './figures.ts'
import { type Suite, suites, buildPeersSuite, usual } from './suites.ts'

export type BenchOptions = {
  readonly rounds: number
  readonly seconds: number
  readonly suites: readonly Suite[]
  readonly probes: readonly Probe[]
  /** True: also measures other programs. */
  readonly peers: boolean
  readonly json: boolean
}

const rows: readonly string[] = loadRows.map(({ name }) => name)
const names: readonly string[] = [...new Set([...suites, ...probes].map(({ name }) => name))]

export const usage = `npm run bench -- [options]
  --rounds N      rounds, of which the tables show the median (3)
  --seconds S     measured time of each variant under each load (1)
  --only a,b      suites: ${names.filter((name) => !rows.includes(name)).join(', ')} (${usual.join(',')})
                  load: the rows of the load battery, ${rows.join(', ')}. Four minutes for
                  --rounds 1 --seconds 3, and half an hour for --rounds 1 --seconds 60, its full length
  --all           every suite
  --peers         other servers on the same work, if they are installed
  --json          one JSON object instead of tables
The exit code is 1 when a measurement misses its floor, 64 for a wrong option.`

/** Throws an Error whose message is for the user of the command line. */
export function parseOptions(args: readonly string[]): BenchOptions | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: 'string', default: '3' },
      seconds: { type: 'string', default: '1' },
      only: { type: 'string' },
      all: { type: 'boolean', default: false },
      peers: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help) return 'help'
  // with --peers, other suites run only if --only names them
  const wanted = values.only?.split(',').map((name) => name.trim()) ?? (values.peers ? [] : usual)
  const only = values.all ? names : wanted.flatMap((name) => (name === 'load' ? rows : [name]))
  const unknown = only.find((name) => !names.some((known) => known === name))
  if (unknown !== undefined) throw new Error(`--only: there is no suite "${unknown}".`)
  const rounds = parsePositive('--rounds', values.rounds)
  if (!Number.isInteger(rounds)) throw new Error(`--rounds must be a whole number, found "${values.rounds}".`)
  return {
    rounds,
    seconds: parsePositive('--seconds', values.seconds),
    suites: [...suites.filter(({ name }) => only.includes(name)), ...(values.peers ? [buildPeersSuite()] : [])],
    probes: probes.filter(({ name }) => only.includes(name)),
    peers: values.peers,
    json: values.json,
  }
}

function parsePositive(option: string, text: string): number {
  const value = Number(text)
  if (!(value > 0) || !Number.isFinite(value)) throw new Error(`${option} must be a number above 0, found "${text}".`)
  return value
}
