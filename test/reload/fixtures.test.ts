import { describe, expect, test } from 'vitest'
import { createStage, says } from './stage.ts'

const renderFixture = (expected: object, payload: object = {}) =>
  JSON.stringify({ request: { path: 'x', payload }, expect: expected })
const good = renderFixture({ decision: 'accept', actions: [{ message: 'good' }] })

describe('the fixtures of a module', () => {
  test('a module whose fixtures pass goes live, and the log line counts them', async () => {
    const stage = await createStage({ 'x.ts': says('old'), 'x.fixtures/one.json': good, 'x.fixtures/two.json': good })
    await stage.write({ 'x.ts': says('good') })
    expect((await stage.waitForLine(/^x\.ts is live/)).text).toMatch(/^x\.ts is live \(\d+ ms, 2 fixtures passed\)$/)
    expect(await stage.answer('x')).toBe('good')
  })

  test('a failing fixture keeps its module from going live, its error names the field, and the module goes live once the fixture is fixed', async () => {
    const stage = await createStage({ 'x.ts': says('good'), 'x.fixtures/one.json': good })
    await stage.write({ 'x.ts': says('bad') })
    const line = await stage.waitForLine(/fails its fixture/)
    expect(line.text).toContain('transforms/x.ts fails its fixture one.json at actions[0].message.')
    expect(line.frame).toBe('one.json\n  actions[0].message: expected "good", got "bad"')
    expect(await stage.answer('x')).toBe('good')
    expect(stage.live.status().problems).toMatchObject([{ module: 'x.ts' }])
    await stage.write({ 'x.fixtures/one.json': good.replace('"good"', '"bad"') })
    await stage.waitForAnswer('x', 'bad')
    expect(stage.live.status().degraded).toBe(false)
  })

  test('a fixture file that is not a fixture fails with its reason', async () => {
    const stage = await createStage({ 'x.ts': says('old'), 'x.fixtures/one.json': '{"request":{}}' })
    await stage.write({ 'x.ts': says('new') })
    expect((await stage.waitForLine(/fails its fixture/)).frame).toContain(
      'request.path: expected a string, found nothing',
    )
    expect(await stage.answer('x')).toBe('old')
  })

  test('an edited fixture that fails is reported, and the code keeps serving', async () => {
    const stage = await createStage({ 'x.ts': says('good'), 'x.fixtures/one.json': good })
    await stage.write({ 'x.fixtures/one.json': good.replace('"good"', '"better"') })
    await stage.waitForLine(/fails its fixture one\.json/)
    expect(await stage.answer('x')).toBe('good')
    await stage.write({ 'x.fixtures/one.json': good })
    await stage.waitForLine(/x\.ts is valid again; the code that serves has not changed/)
    expect(stage.live.status().degraded).toBe(false)
  })

  test('fixtures that exceed the time limit are reported as not run, not as failed', async () => {
    const slow = `export default async ({ payload }) => {
  if (payload.slow) await new Promise((done) => setTimeout(done, 3000))
  return { message: 'good' }
}`
    const stage = await createStage({
      'x.ts': says('old'),
      'x.fixtures/1.json': good,
      'x.fixtures/2.json': renderFixture({ decision: 'accept' }, { slow: true }),
      'x.fixtures/3.json': good,
    })
    await stage.write({ 'x.ts': slow })
    expect((await stage.waitForLine(/^x\.ts is live/)).text).toMatch(/1 fixture passed, 2 not run: out of time/)
    expect(await stage.answer('x')).toBe('good')
  })

  test('a failing fixture after a failed build is reported, and the code goes live because there is no better version', async () => {
    const stage = await createStage({ 'x.ts': 'export default (', 'x.fixtures/one.json': good })
    expect(stage.live.status().problems).toMatchObject([{ code: 'transform-build-failed' }])
    await stage.write({ 'x.ts': says('bad') })
    await stage.waitForAnswer('x', 'bad')
    expect((await stage.waitForLine(/fails its fixture/)).text).toContain('It is live anyway')
    expect(stage.live.status().problems).toMatchObject([{ code: 'transform-load-failed' }])
    await stage.write({ 'x.ts': says('worse') })
    await stage.write({ 'x.fixtures/one.json': good.replace('"good"', '"worse"') })
    await stage.waitForAnswer('x', 'worse')
    expect(stage.live.status().degraded).toBe(false)
  })

  test('a fixture that fails at the start is reported, and the code serves because there is no better version', async () => {
    const stage = await createStage({ 'x.ts': says('bad'), 'x.fixtures/one.json': good }, { watch: false })
    expect(await stage.answer('x')).toBe('bad')
    const { degraded, problems } = stage.live.status()
    expect(degraded).toBe(true)
    const detail = expect.stringMatching(/^transforms\/x\.ts fails its fixture one\.json at actions\[0\]\.message\./)
    expect(problems).toMatchObject([{ module: 'x.ts', detail }])
    expect((await stage.waitForLine(/fails its fixture/)).text).toContain('It is live anyway')

    await stage.live.watch()
    expect(stage.live.status().problems[0]?.since).toBe(problems[0]?.since)
    expect(stage.lines.filter(({ text }) => /fails its fixture/.test(text))).toHaveLength(1)
    await stage.write({ 'x.ts': says('good') })
    await stage.waitForAnswer('x', 'good')
    expect(stage.live.status().degraded).toBe(false)
  })
})
