// The same tests with a gateway on each engine.
import { describe } from 'vitest'
import { newSchema, whyNoPostgres } from '../contract/postgres-stage.ts'
import { onFileEnd } from '../file-end.ts'
import { startInside } from './inside.ts'

type Start = typeof startInside

/** Calls `describe` for each engine. `start`: `startInside` with a new store of the engine, unless a directory is given. */
export function describeEngines(title: string, tests: (start: Start) => void): void {
  describe(`${title}, on SQLite`, () => {
    tests(startInside)
  })
  const reason = whyNoPostgres === undefined ? '' : ` (skipped: ${whyNoPostgres})`
  describe.skipIf(whyNoPostgres !== undefined)(`${title}, on Postgres${reason}`, () => {
    tests(startOnPostgres)
  })
}

const startOnPostgres: Start = async ({ config, ...options } = {}) => {
  if (options.dir !== undefined) return startInside({ ...options, ...(config && { config }) })
  const { url, drop } = await newSchema()
  onFileEnd(drop)
  return startInside({ ...options, config: { ...config, store: { url } } })
}
