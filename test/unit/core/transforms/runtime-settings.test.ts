import { describe, expect, test } from 'vitest'
import { createStage, readResult } from './runtime-stage.ts'

const good = 'export default () => process.env.WORD ?? null\n'
const slow = 'export default () => new Promise((done) => setTimeout(done, 300, process.env.WORD ?? null))\n'

describe('threads with changed settings', () => {
  test('after a change of settings, the next load gets new threads, and a transform that was loaded before keeps its environment', async () => {
    const { write, load, runtime, settings } = await createStage({ env: { WORD: 'old' }, workers: 1 })
    await write({ 'good.ts': good, 'slow.ts': slow })
    const before = await load('good.ts', 'slow.ts')
    const inFlight = readResult(before['slow.ts'])
    expect(await readResult(before['good.ts'])).toBe('old')
    settings.env = { WORD: 'new' }
    const after = await load('good.ts', 'slow.ts')
    expect(await readResult(after['good.ts'])).toBe('new')
    expect(await readResult(before['good.ts'])).toBe('old')
    expect(await inFlight).toBe('old')
    expect(runtime.state().threads).toBeLessThanOrEqual(2)
  })

  test('threads with old settings run while their transforms serve, and end when others serve', async () => {
    const { write, load, runtime, settings } = await createStage({ env: { WORD: 'old' }, timeoutMs: 300, workers: 1 })
    await write({ 'good.ts': good, 'endless.ts': 'export default () => new Promise(() => {})\n' })
    const before = await load('good.ts', 'endless.ts')
    runtime.serve(new Map(Object.entries(before)))
    Object.assign(settings, { env: { WORD: 'new' }, timeoutMs: 60_000 })
    const after = await load('good.ts', 'endless.ts')
    expect(runtime.state().serving).toHaveLength(2)
    expect(await readResult(before['good.ts'])).toBe('old')
    expect(await readResult(before['endless.ts'])).toBe('transforms/endless.ts did not end within 300 ms.')
    expect(await readResult(after['good.ts'])).toBe('new')
    runtime.serve(new Map(Object.entries(after)))
    await Promise.resolve()
    expect(runtime.state().serving).toHaveLength(1)
  })

  test('threads have the memory limit of the newest load', async () => {
    const stage = await createStage({ memoryMb: 512, workers: 1 })
    const hog = `export default async () => {
      const all = []
      for (let n = 0; n < 100; n++) { all.push(Buffer.alloc(1e6, 1)); await new Promise((done) => setTimeout(done, 5)) }
      return all.length
    }`
    await stage.write({ 'hog.ts': hog })
    expect(await readResult((await stage.load('hog.ts'))['hog.ts'])).toBe(100)
    stage.settings.memoryMb = 32
    expect(await readResult((await stage.load('hog.ts'))['hog.ts'])).toBe('transforms/hog.ts used more than 32 MB.')
  })

  test('the newest load sets the number of threads, even to a lower one', async () => {
    const stage = await createStage({ workers: 3 })
    await stage.write({ 'good.ts': good })
    await stage.load('good.ts')
    expect(stage.runtime.state().serving).toHaveLength(3)
    stage.settings.workers = 1
    await stage.load('good.ts')
    expect(stage.runtime.state().serving).toHaveLength(1)
    stage.settings.workers = 2
    const { 'good.ts': transform } = await stage.load('good.ts')
    expect(await readResult(transform)).toBeNull()
    expect(stage.runtime.state().serving).toHaveLength(2)
  })
})
