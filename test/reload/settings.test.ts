import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { baseConfig, createStage } from './stage.ts'

const reads = `const atLoad = process.env.WORD
export default () => ({ message: [atLoad, process.env.WORD, Object.keys(process.env).length].join() })
`
const buildConfig = (transforms: object) => ({ hooks: { ...baseConfig.hooks, transforms } })

describe('settings of transforms', () => {
  test('transforms see only the variables that hooks.transforms.env names', async () => {
    const stage = await createStage({ 'x.ts': reads })
    expect(await stage.answer('x')).toBe(',,0')
    await writeFile(join(stage.dir, '.env'), 'WORD=one\nOTHER=secret\n')
    await writeFile(join(stage.dir, 'hookloom.jsonc'), JSON.stringify(buildConfig({ env: ['WORD'] })))
    await stage.waitForAnswer('x', 'one,one,1')
  })

  test('an edit of .env alone reaches transforms, names the modules whose parked deliveries may run, and logs a line without the value', async () => {
    const stage = await createStage({ 'x.ts': reads }, { config: buildConfig({ env: ['WORD'] }) })
    const mended: unknown[] = []
    stage.onSwap((_generation, swap) => mended.push(swap.retryable))
    await writeFile(join(stage.dir, '.env'), 'WORD=hidden\n')
    await stage.waitForAnswer('x', 'hidden,hidden,1')
    await stage.waitForLine(/the environment of transforms is live/)
    expect(mended).toEqual([['x.ts']])
    expect(stage.lines.filter(({ text }) => text.includes('hidden'))).toEqual([])
  })

  test('a module loads once its variable is set, and keeps serving with the old value if a new one breaks it', async () => {
    const picky = `if (process.env.WORD !== 'right') throw new Error('no word')\nexport default () => ({ message: 'loaded' })\n`
    const stage = await createStage({ 'x.ts': picky }, { config: buildConfig({ env: ['WORD'] }) })
    expect(await stage.answer('x')).toMatch(/^park/)
    await writeFile(join(stage.dir, '.env'), 'WORD=right\n')
    await stage.waitForAnswer('x', 'loaded')
    expect(stage.live.status().degraded).toBe(false)
    await writeFile(join(stage.dir, '.env'), 'WORD=wrong\n')
    await stage.waitForLine(/does not load: it threw an Error at x\.ts:1.* The last good version/)
    expect(stage.live.status().problems).toMatchObject([{ module: 'x.ts' }])
    expect(await stage.answer('x')).toBe('loaded')
  })

  test('a new time limit applies to the next call', async () => {
    const stage = await createStage({ 'x.ts': 'export default () => new Promise(() => {})\n' })
    await writeFile(join(stage.dir, 'hookloom.jsonc'), JSON.stringify(buildConfig({ timeoutMs: 150 })))
    await stage.waitForLine(/hookloom\.jsonc is live/)
    expect(await stage.answer('x')).toMatch(/did not end within 150 ms/)
  })
})

describe('an edit of hooks.agent', () => {
  test('an edit of hooks.agent applies to the next message of the built-in hook, and makes a new generation', async () => {
    const stage = await createStage({ 'x.ts': reads })
    const ask = () => stage.decide('agent', { message: 'What is next?' })
    const before = stage.live.current().id
    expect(await ask()).toMatchObject({ actions: [{ action: { allowUnsafeExternalContent: false } }] })
    const agent = { instructions: 'Be brief.', allowUnsafeExternalContent: true }
    await writeFile(
      join(stage.dir, 'hookloom.jsonc'),
      JSON.stringify({ ...baseConfig, hooks: { ...baseConfig.hooks, agent } }),
    )
    await stage.waitForLine(/hookloom\.jsonc is live/)
    expect(await ask()).toMatchObject({
      actions: [{ instructions: 'Be brief.', action: { allowUnsafeExternalContent: true } }],
    })
    expect(stage.live.current().id).not.toBe(before)
  })
})
