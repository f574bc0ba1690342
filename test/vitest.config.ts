import { readdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { relative } from 'node:path'
import { configDefaults, defineConfig } from 'vitest/config'
import type { TestModule } from 'vitest/node'
import { describe } from './counts.ts'
import { LongestFirst } from './longest-first.ts'

/** These count memory, processor time, long tasks or the versions that go live, so nothing else may run. */
const measured = ['cost', 'linear-cost', 'many', 'page', 'scroll', 'thousand'].map(
  (name) => `test/long/${name}.test.ts`,
)

/** The files of `e2e/` in the short form: the pipe of a request from the port to the reply, and hostile requests. */
const quick =
  /^(?:answer-table|hostile(?:-body|-credentials|-framing|-payloads)?|plain-schemes|signed-hooks|values)\.test\.ts$/
/** Whole gateways, commands and browsers, and what needs Postgres. */
const whole = [
  'test/browser/**/*.test.ts',
  'test/contract/postgres*.test.ts',
  'test/unit/store/postgres/*.test.ts',
  ...readdirSync(new URL('e2e', import.meta.url))
    .filter((name) => name.endsWith('.test.ts') && !quick.test(name))
    .map((name) => `test/e2e/${name}`),
]

/** Prints what the cases counted: see `npm run accept`. */
function printCounts(modules: readonly TestModule[]): void {
  for (const { moduleId, children } of modules) {
    for (const test of children.allTests('passed')) {
      const counts = describe(test.meta().counts ?? {})
      if (counts !== '') console.log(`COUNTED ${relative('.', moduleId)} > ${test.fullName}: ${counts}`)
    }
  }
}

/** Prints the tests that passed only when they were tried again, with what failed before, so that they are mended. */
function printFlaky(modules: readonly TestModule[]): void {
  for (const { moduleId, children } of modules) {
    for (const test of children.allTests('passed')) {
      const { flaky = false, retryCount = 0 } = test.diagnostic() ?? {}
      if (!flaky) continue
      const errors = (test.result().errors ?? []).map(({ message, stacks }) => {
        const { file, line } = stacks?.find((frame) => frame.file === moduleId) ?? stacks?.[0] ?? {}
        return `\n    ${message.split('\n').slice(0, 5).join('\n    ')}\n    at ${relative('.', file ?? '')}:${line}`
      })
      console.log(
        `FLAKY, passed at try ${retryCount + 1}: ${relative('.', moduleId)} > ${test.fullName}${errors.join('')}`,
      )
    }
  }
}

const shared = {
  // two processes for each core: half of the time, a test waits for a timer or for a process that it started
  maxWorkers: 2 * availableParallelism(),
  // modules are evaluated once for each thread: once for each file would add a third of the time
  isolate: false,
}

export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  resolve: { alias: { hookloom: new URL('../src/index.ts', import.meta.url).pathname } },
  test: {
    // these end a test that hangs. None is short enough to depend on the speed of the machine
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } },
    // in CI other processes can slow a test down. A defect fails each time, because CI fixes the seed of random cases
    retry: process.env['CI'] === undefined ? 0 : 2,
    reporters: ['default', { onTestRunEnd: printCounts }, { onTestRunEnd: printFlaky }],
    sequence: { sequencer: LongestFirst },
    setupFiles: ['test/setup.ts'],
    // printed text is compared without colours, even where CI sets them
    env: { NO_COLOR: '1' },
    // `npm test` runs the first project, before each commit; `npm run test:all` runs all of them
    projects: [
      {
        extends: true,
        test: {
          ...shared,
          name: 'short',
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...whole, 'test/long/**'],
        },
      },
      { extends: true, test: { ...shared, name: 'whole', include: whole } },
      // kills and loads, which take tens of seconds each, and wait for most of them
      {
        extends: true,
        test: {
          name: 'long',
          include: ['test/long/**/*.test.ts'],
          exclude: measured,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      // one at a time, with the machine to itself
      { extends: true, test: { name: 'long-measured', include: measured, maxWorkers: 1, sequence: { groupOrder: 2 } } },
    ],
  },
})
