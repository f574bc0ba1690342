import { availableParallelism } from 'node:os'
import { configDefaults, defineConfig } from 'vitest/config'

/** These count memory, processor time or the versions that go live, so nothing else may run. */
const measured = ['cost', 'linear-cost', 'many', 'page', 'thousand'].map((name) => `test/long/${name}.test.ts`)

export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  resolve: { alias: { hookloom: new URL('../src/index.ts', import.meta.url).pathname } },
  test: {
    testTimeout: 20_000,
    // in CI other processes can slow a test down. A defect fails both times, because CI fixes the seed of random cases
    retry: process.env['CI'] === undefined ? 0 : 1,
    hookTimeout: 30_000,
    setupFiles: ['test/setup.ts'],
    // printed text is compared without colours, even where CI sets them
    env: { NO_COLOR: '1' },
    // `npm test` runs the first project, `npm run test:long` the others
    projects: [
      {
        extends: true,
        test: {
          name: 'short',
          // two processes for each core: half of the time, a test waits for a timer or for a process that it started
          maxWorkers: 2 * availableParallelism(),
          // modules are evaluated once for each thread: once for each file would add a third of the time
          isolate: false,
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, 'test/long/**'],
        },
      },
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
