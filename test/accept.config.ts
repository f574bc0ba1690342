// `npm run accept`: the battery that shows the promises over real processes, sockets, disks and databases, with what each case counted. It takes
// half an hour; `README.md` says what the cases prove.
import { readdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import tests from './vitest.config.ts'

const long =
  'await-kills|bit-flips|crash|durable|event-server-kills|flow-model|fuzz|gmail-kills|imap-kills|interleaved|mcp-events-kills|missed-hour|others|overload|power-loss|receivers|refused-kept|relay-kills|rolling|simulation|soak|status-kills|step-kills|storm'
const e2e =
  'answer-table|canary[a-z-]*|fsync|gone-client|hops|hostile[a-z-]*|interrupted|late-bodies|nodes|patience|postgres-faults|private-files|strangers|versions'

const list = (folder: string, names: string) =>
  readdirSync(new URL(folder, import.meta.url))
    .filter((name) => new RegExp(`^(?:${names})\\.test\\.ts$`).test(name))
    .map((name) => `test/${folder}/${name}`)

const given = process.env
// each process of the run has the same one
const seed = given['HOOKLOOM_SEED'] ?? String(Date.now() % 1_000_000)
const { projects: _, ...all } = tests.test ?? {}

export default defineConfig({
  ...tests,
  test: {
    ...all,
    include: [
      ...list('long', long),
      ...list('e2e', e2e),
      ...list('contract', 'older|postgres-older'),
      'test/property/*.test.ts',
    ],
    env: {
      ...all.env,
      HOOKLOOM_SEED: seed,
      HOOKLOOM_SIMULATION_STEPS: given['HOOKLOOM_SIMULATION_STEPS'] ?? '1000000',
      HOOKLOOM_SOAK_MINUTES: given['HOOKLOOM_SOAK_MINUTES'] ?? '20',
      HOOKLOOM_OVERLOAD_SECONDS: given['HOOKLOOM_OVERLOAD_SECONDS'] ?? '300',
    },
    retry: 0,
    maxWorkers: availableParallelism(),
    reporters: [[new URL('accept-report.ts', import.meta.url).pathname, { seed }]],
  },
})
