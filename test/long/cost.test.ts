// The cost of one request besides time: system calls, and pages of the WAL. Both are the same on every machine.
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compileChildren } from '../bench/child.ts'
import { whyNoCalls } from '../bench/cost.ts'
import { createCostProbe } from '../bench/probe-cost.ts'
import type { Figures } from '../bench/probes.ts'

const root = resolve(import.meta.dirname, '../..')
const built = join(root, 'dist/index.js')
const cache = join(root, 'node_modules/.cache')
const reason = whyNoCalls === undefined ? '' : ` (skipped: ${whyNoCalls})`

describe('the cost of one request', () => {
  let folder = ''
  let figures: Figures = {}
  beforeAll(async () => {
    if (!existsSync(built)) throw new Error(`${built} is missing. Run "npm run build" first.`)
    mkdirSync(cache, { recursive: true })
    folder = mkdtempSync(join(cache, 'hookloom-cost-'))
    await compileChildren(folder)
    figures = await createCostProbe({ folder, built: pathToFileURL(built).href })(0)
  }, 120_000)
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  test.skipIf(whyNoCalls !== undefined)(`a lone wake makes at most 28 system calls${reason}`, () => {
    expect(figures['wake calls']).toBeLessThanOrEqual(28)
  })

  test('a lone wake is one commit of at most 6 pages', () => {
    expect(figures).toMatchObject({ 'wake commits': 1 })
    expect(figures['wake pages']).toBeLessThanOrEqual(6)
  })

  test('a signed delivery of 10 kB is one commit of at most 8 pages', () => {
    expect(figures).toMatchObject({ 'signed commits': 1 })
    expect(figures['signed pages']).toBeLessThanOrEqual(8)
  })

  test('a run of two steps with a reply is seven commits, which write at most 70 kB in 30 pages', () => {
    expect(figures).toMatchObject({ 'run commits': 7 })
    expect(figures['run pages']).toBeLessThanOrEqual(30)
    expect(figures['run wal bytes']).toBeLessThanOrEqual(70_000)
  })
})
