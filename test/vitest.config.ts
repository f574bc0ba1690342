import { availableParallelism } from 'node:os'
import { configDefaults, defineConfig } from 'vitest/config'

export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  resolve: { alias: { hookloom: new URL('../src/index.ts', import.meta.url).pathname } },
  test: {
    testTimeout: 20_000,
    hookTimeout: 30_000,
    setupFiles: ['test/setup.ts'],
    // printed text is compared without colours, even where CI sets them
    env: { NO_COLOR: '1' },
    // `npm test` runs the first project, `npm run test:long` the second
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
      // kills, loads and measurements, which take tens of seconds each
      {
        extends: true,
        test: { name: 'long', include: ['test/long/**/*.test.ts'], maxWorkers: 1, sequence: { groupOrder: 1 } },
      },
    ],
  },
})
