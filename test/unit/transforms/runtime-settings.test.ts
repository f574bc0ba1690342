import { describe, expect, test } from 'vitest'
import { createStage, resultOf } from './runtime-stage.ts'

const good = 'export default () => process.env.WORD ?? null\n'
const slow = 'export default () => new Promise((done) => setTimeout(done, 300, process.env.WORD ?? null))\n'

describe('threads whose settings have changed', () => {
  test('are replaced at the next load; a call in flight ends where it began, and no thread is left over', async () => {
    let env = { WORD: 'old' }
    const { write, load, runtime } = await createStage({ env: () => env, workers: 1 })
    await write({ 'good.ts': good, 'slow.ts': slow })
    const before = await load('good.ts', 'slow.ts')
    const inFlight = resultOf(before['slow.ts'])
    expect(await resultOf(before['good.ts'])).toBe('old')
    env = { WORD: 'new' }
    const after = await load('good.ts', 'slow.ts')
    expect(await resultOf(after['good.ts'])).toBe('new')
    // also for whoever holds the transform of before
    expect(await resultOf(before['good.ts'])).toBe('new')
    expect(await inFlight).toBe('old')
    expect(runtime.state().threads).toBeLessThanOrEqual(2)
  })

  test('have the memory limit of now', async () => {
    const stage = await createStage({ memoryMb: 512, workers: 1 })
    const hog = `export default async () => {
      const all = []
      for (let n = 0; n < 100; n++) { all.push(Buffer.alloc(1e6, 1)); await new Promise((done) => setTimeout(done, 5)) }
      return all.length
    }`
    await stage.write({ 'hog.ts': hog })
    expect(await resultOf((await stage.load('hog.ts'))['hog.ts'])).toBe(100)
    stage.limits.memoryMb = 32
    expect(await resultOf((await stage.load('hog.ts'))['hog.ts'])).toBe('transforms/hog.ts used more than 32 MB.')
  })

  test('are as many as there are to be, also when fewer are wanted', async () => {
    const stage = await createStage({ workers: 3 })
    await stage.write({ 'good.ts': good })
    await stage.load('good.ts')
    expect(stage.runtime.state().serving).toHaveLength(3)
    stage.limits.workers = 1
    await stage.load('good.ts')
    expect(stage.runtime.state().serving).toHaveLength(1)
    stage.limits.workers = 2
    const { 'good.ts': transform } = await stage.load('good.ts')
    expect(await resultOf(transform)).toBeNull()
    expect(stage.runtime.state().serving).toHaveLength(2)
  })
})
