import { chmod, rename, rm, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { baseConfig, createStage, says } from './stage.ts'

const pair = {
  hooks: {
    ...baseConfig.hooks,
    mappings: ['x', 'y'].map((name) => ({ match: { path: name }, transform: { module: `${name}.ts` } })),
  },
}

describe('a broken save', () => {
  test('a broken save keeps the last good version serving; the log shows the wrong line, and the status has the problem until it is fixed', async () => {
    const stage = await createStage({ 'x.ts': says('good') })
    await stage.write({ 'x.ts': 'export default () => {\n  retrun 1\n}\n' })
    const line = await stage.waitForLine(/does not build/)
    expect(line.text).toContain('transforms/x.ts does not build at x.ts:2')
    expect(line.text).toContain('The last good version keeps serving.')
    expect(line.frame).toContain('retrun 1')
    expect(await stage.answer('x')).toBe('good')
    const { degraded, problems } = stage.live.status()
    expect(degraded).toBe(true)
    expect(problems).toMatchObject([{ module: 'x.ts', code: 'transform-build-failed', since: expect.any(Number) }])

    await stage.live.reload()
    expect(stage.live.status().problems[0]?.since).toBe(problems[0]?.since)
    await stage.write({ 'x.ts': says('mended') })
    await stage.waitForAnswer('x', 'mended')
    expect((await stage.waitForLine(/^x\.ts is live \(\d+ ms\)\n/)).level).toBe('info')
    expect(stage.live.status()).toMatchObject({ degraded: false, problems: [] })
  })

  test.each([
    ['throws at its top level', 'throw new Error("top")', 'transform-load-failed'],
    ['exports no function', 'export default 42', 'transform-load-failed'],
    ['imports a missing file', 'import "./gone.ts"\nexport default () => null', 'transform-build-failed'],
  ])('a save that %s does not go live', async (_what, text, code) => {
    const stage = await createStage({ 'x.ts': says('good') })
    await stage.write({ 'x.ts': text })
    await stage.waitForLine(/The last good version keeps serving/)
    expect(await stage.answer('x')).toBe('good')
    expect(stage.live.status().problems).toMatchObject([{ code }])
  })

  test('a broken module does not prevent another one from going live', async () => {
    const stage = await createStage({ 'x.ts': says('good'), 'y.ts': says('old') }, { config: pair })
    await stage.write({ 'x.ts': 'export default (', 'y.ts': says('new') })
    await stage.waitForAnswer('y', 'new')
    expect(await stage.answer('x')).toBe('good')
    expect(stage.live.status().problems).toMatchObject([{ module: 'x.ts' }])
  })

  test('a removed file keeps the last good version serving, and goes live again when it is back', async () => {
    const stage = await createStage({ 'x.ts': says('good') })
    await rm(join(stage.root, 'x.ts'))
    await stage.waitForLine(/x\.ts does not exist/)
    expect(await stage.answer('x')).toBe('good')
    await stage.write({ 'x.ts': says('back') })
    await stage.waitForAnswer('x', 'back')
    expect(stage.live.status().degraded).toBe(false)
  })

  test('deliveries of a module without a good version are parked until one goes live', async () => {
    const stage = await createStage({ 'x.ts': 'export default (' })
    expect(await stage.answer('x')).toMatch(/^park/)
    const swaps: unknown[] = []
    stage.onSwap((_generation, { retryable }) => swaps.push(retryable))
    await stage.write({ 'x.ts': says('mended') })
    await stage.waitForAnswer('x', 'mended')
    expect(swaps).toEqual([['x.ts']])
  })

  test('a broken save that is reverted is no problem any more, and the generation does not change', async () => {
    const stage = await createStage({ 'x.ts': says('good') })
    const { id } = stage.live.current()
    await stage.write({ 'x.ts': 'export default (' })
    await stage.waitForLine(/does not build/)
    await stage.write({ 'x.ts': says('good') })
    await stage.waitForLine(/x\.ts is valid again; the code that serves has not changed/)
    expect(stage.live.current().id).toBe(id)
    expect(stage.live.status().degraded).toBe(false)
  })
})

describe('a saved file', () => {
  test('a touched file with the same content is not evaluated again and makes no new generation', async () => {
    const text = `const loadedAt = process.hrtime.bigint()\nexport default () => ({ message: String(loadedAt) })\n`
    const stage = await createStage({ 'x.ts': text })
    const [generation, loaded] = [stage.live.current(), await stage.answer('x')]
    await utimes(join(stage.root, 'x.ts'), new Date(), new Date())
    expect(await stage.live.reload()).toMatchObject({ swapped: false, modules: [{ kind: 'same' }] })
    expect(stage.live.current()).toBe(generation)
    expect(await stage.answer('x')).toBe(loaded)
  })

  // skipped for root, which can read every file
  test.skipIf(process.getuid?.() === 0)(
    'a file without read permission keeps the last good version serving until it can be read',
    async () => {
      const stage = await createStage({ 'x.ts': says('good') })
      const file = join(stage.root, 'x.ts')
      await writeFile(`${file}~`, says('newer'))
      await chmod(`${file}~`, 0o000)
      await rename(`${file}~`, file)
      expect((await stage.waitForLine(/The last good version keeps serving/)).text).toContain('x.ts')
      expect(await stage.answer('x')).toBe('good')
      await chmod(file, 0o600)
      await stage.waitForAnswer('x', 'newer')
      expect(stage.live.status().degraded).toBe(false)
    },
  )
})

describe('an edit of the configuration', () => {
  const buildConfig = (path: string) =>
    JSON.stringify({ hooks: { ...baseConfig.hooks, mappings: [{ match: { path }, transform: { module: 'x.ts' } }] } })

  test('a mapping that is added by a save answers requests', async () => {
    const stage = await createStage({ 'x.ts': says('code') })
    expect(await stage.answer('new')).toBe('skip')
    await writeFile(join(stage.dir, 'hookloom.jsonc'), buildConfig('new'))
    await stage.waitForAnswer('new', 'code')
    expect(await stage.answer('x')).toBe('skip')
    await stage.waitForLine(/hookloom\.jsonc is live/)
  })

  test('a broken configuration leaves the last generation live, and goes live with all other saves once it is fixed', async () => {
    const stage = await createStage({ 'x.ts': says('code') })
    const before = stage.live.current()
    const file = join(stage.dir, 'hookloom.jsonc')
    await writeFile(file, '{ "hooks": ')
    const line = await stage.waitForLine(/The last good configuration keeps serving/)
    expect(line.frame).toContain('hookloom.jsonc:1')
    expect(line.problems).toEqual([expect.stringMatching(/^hookloom\.jsonc:1:\d+ /)])
    await stage.write({ 'x.ts': says('newer') })
    await stage.live.reload()
    expect(stage.live.current()).toBe(before)
    expect(stage.live.status().problems).toMatchObject([{ module: undefined, code: 'config-invalid' }])
    await writeFile(`${file}.new`, buildConfig('new'))
    await rename(`${file}.new`, file)
    await stage.waitForAnswer('new', 'newer')
    expect(stage.live.status().degraded).toBe(false)
  })

  test('an edit of .env alone goes live', async () => {
    const stage = await createStage(
      { 'x.ts': says('code') },
      { config: { hooks: { enabled: true, token: 'the-token-before-it', defaultSessionKey: 'hook:a' } } },
    )
    await writeFile(
      join(stage.dir, 'hookloom.jsonc'),
      buildConfig('x').replace('"hook-secret-of-the-stage"', '"${TOKEN}"'),
    )
    await stage.waitForLine(/TOKEN/)
    await writeFile(join(stage.dir, '.env'), 'TOKEN=from-the-env-file\n')
    await stage.waitForAnswer('x', 'code')
    expect(stage.live.current().config.hooks.token).toBe('from-the-env-file')
  })

  test('a configuration that names a module outside the root is refused, and the last generation keeps serving', async () => {
    const stage = await createStage({ 'x.ts': says('code') })
    await writeFile(join(stage.dir, 'hookloom.jsonc'), buildConfig('x').replace('x.ts', '../x.ts'))
    await stage.waitForLine(/keeps serving/)
    expect(await stage.answer('x')).toBe('code')
  })
})

describe('a transforms directory', () => {
  test('a transforms directory that is created after the start is watched', async () => {
    const stage = await createStage({})
    expect(await stage.answer('x')).toMatch(/^park/)
    await stage.write({ 'x.ts': says('first') })
    await stage.waitForAnswer('x', 'first')
    await stage.write({ 'x.ts': says('second') })
    await stage.waitForAnswer('x', 'second')
  })

  test('a transforms directory that is moved away and back is still watched', async () => {
    const stage = await createStage({ 'x.ts': says('good') })
    await rename(stage.root, `${stage.root}.old`)
    await stage.waitForLine(/does not exist/)
    await rename(`${stage.root}.old`, stage.root)
    await stage.waitForLine(/is valid again/)
    await stage.write({ 'x.ts': says('later') })
    await stage.waitForAnswer('x', 'later')
    expect(stage.live.status().degraded).toBe(false)
  })
})
