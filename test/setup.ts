// Runs before each test file. Files share a process, so a file that leaves a change for the next one fails.
import * as fc from 'fast-check'
import { afterAll, vi } from 'vitest'
import { endFile } from './file-end.ts'

// the same cases in each run; without it, each run tries others
const seed = process.env['HOOKLOOM_SEED']
if (seed !== undefined) fc.configureGlobal({ seed: Number(seed) })

type Fact = readonly [name: string, value: unknown]

// without getters, because Node loads their values when they are first read; without later globals, because libraries add their own
const globals = Object.entries(Object.getOwnPropertyDescriptors(globalThis)).flatMap(([name, property]) =>
  'value' in property ? name : [],
)

/** The state that all files of a process share and a test can change. */
function readShared(): ReadonlyMap<string, unknown> {
  return new Map<string, unknown>([
    ['the working directory', process.cwd()],
    ...Object.entries(process.env).map(([name, value]): Fact => [`the variable ${name}`, value]),
    ...globals.map((name): Fact => [`the global ${name}`, Reflect.get(globalThis, name)]),
    ...process.eventNames().map((name): Fact => [`the listeners of ${String(name)}`, process.listenerCount(name)]),
  ])
}

const before = readShared()

afterAll(async () => {
  vi.useRealTimers()
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
  await endFile()
  const after = readShared()
  const names = [...new Set([...before.keys(), ...after.keys()])]
  // names only, because a variable may be a secret
  const changed = names.filter((name) => !Object.is(before.get(name), after.get(name)))
  if (changed.length > 0) {
    throw new Error(
      `The test file left these changed: ${changed.join(', ')}. Restore each, for example in onTestFinished.`,
    )
  }
})
