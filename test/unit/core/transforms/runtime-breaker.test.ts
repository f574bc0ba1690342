import { describe, expect, test } from 'vitest'
import { createBreakers } from '../../../../src/core/transforms/pool/breaker.ts'
import { Problem } from '../../../../src/core/model/problem.ts'
import { createStage, readResult } from './runtime-stage.ts'

const minute = 60_000
const x = { module: 'x.ts', version: 1 }
const y = { module: 'y.ts', version: 2 }

function createClock() {
  const clock = { now: new Date(2026, 0, 5, 11, 59, 1).getTime(), recovered: [] as string[] }
  const breakers = createBreakers({
    clock: () => clock.now,
    onHalfOpen: () => {},
    onRecovered: (module) => void clock.recovered.push(module),
  })
  const stop = (isTrial = false) => breakers.recordEnd(x, { end: 'stopped', isTrial })
  return Object.assign(clock, { breakers, stop })
}

describe('breakers of modules', () => {
  test('a breaker opens at the third stop within a minute, for its own module only, and reports until when it is open', () => {
    const { breakers, stop } = createClock()
    stop()
    stop()
    expect(breakers.admit(x)).toBe('free')
    stop()
    expect(breakers.admit(x)).toMatchObject({
      code: 'transform-failed',
      message:
        'transforms/x.ts was stopped three times within a minute. Its deliveries are parked until 12:00:01, or until you save it.',
    })
    expect(breakers.admit(y)).toBe('free')
    breakers.close()
  })

  test('a breaker stays closed if three stops take longer than a minute', () => {
    const clock = createClock()
    for (let n = 0; n < 10; n++) {
      clock.stop()
      clock.now += minute / 2
      expect(clock.breakers.admit(x)).toBe('free')
    }
  })

  test('an open breaker admits one call after a minute, and closes when that call ends normally', () => {
    const clock = createClock()
    for (let n = 0; n < 3; n++) clock.stop()
    clock.now += minute - 1
    expect(clock.breakers.admit(x)).toBeInstanceOf(Problem)
    clock.now += 1
    expect(clock.breakers.admit(x)).toBe('trial')
    expect(clock.breakers.admit(x)).toBeInstanceOf(Problem)
    clock.breakers.recordEnd(x, { end: 'ended', isTrial: false })
    expect(clock.recovered).toEqual([])
    clock.breakers.recordEnd(x, { end: 'ended', isTrial: true })
    expect(clock.recovered).toEqual(['x.ts'])
    expect(clock.breakers.admit(x)).toBe('free')
  })

  test('a breaker stays open for another minute if the trial call is stopped', () => {
    const clock = createClock()
    for (let n = 0; n < 3; n++) clock.stop()
    clock.now += minute
    expect(clock.breakers.admit(x)).toBe('trial')
    // this call began before the breaker opened
    clock.stop()
    expect(clock.breakers.admit(x)).toBeInstanceOf(Problem)
    clock.stop(true)
    clock.now += minute - 1
    expect(clock.breakers.admit(x)).toBeInstanceOf(Problem)
    clock.now += 1
    expect(clock.breakers.admit(x)).toBe('trial')
    expect(clock.recovered).toEqual([])
    clock.breakers.close()
  })
})

describe('code that keeps ending its worker', () => {
  const bad = `import { existsSync } from 'node:fs'
    export default () => existsSync(import.meta.dirname + '/mended') ? 'fine' : process.exit(1)`

  test('code that ended three workers gets no call for a minute, and then a single one', async () => {
    const recovered: string[] = []
    let now = Date.now()
    const stage = await createStage({ clock: () => now, workers: 1, onRetry: (module) => void recovered.push(module) })
    await stage.write({ 'bad.ts': bad, 'good.ts': `export default () => 'good'` })
    const modules = await stage.load('bad.ts', 'good.ts')
    const ended = 'transforms/bad.ts ended its worker (process.exit).'
    for (let n = 0; n < 3; n++) expect(await readResult(modules['bad.ts'])).toBe(ended)
    const open = expect.stringContaining('was stopped three times within a minute. Its deliveries are parked until')
    expect(await readResult(modules['bad.ts'])).toEqual(open)
    expect(await readResult(modules['good.ts'])).toBe('good')
    now += minute
    expect(await readResult(modules['bad.ts'])).toBe(ended)
    expect(await readResult(modules['bad.ts'])).toEqual(open)
    now += minute
    await stage.write({ mended: '' })
    expect(await readResult(modules['bad.ts'])).toBe('fine')
    expect(recovered).toEqual(['bad.ts'])
    expect(await readResult(modules['bad.ts'])).toBe('fine')
  })

  test('code that ended three workers gets no further call when no worker can be started for its single call', async () => {
    const recovered: string[] = []
    const env: Record<string, string> = {}
    let now = Date.now()
    const stage = await createStage({
      clock: () => now,
      workers: 1,
      env,
      onRetry: (module) => void recovered.push(module),
    })
    await stage.write({ 'bad.ts': bad })
    const { 'bad.ts': transform } = await stage.load('bad.ts')
    for (let n = 0; n < 2; n++) await readResult(transform)
    // one worker has started already, and no other one starts
    env['NODE_OPTIONS'] = '--no-such-option'
    expect(await readResult(transform)).toContain('ended its worker')
    now += minute
    expect(await readResult(transform)).toBe('The transform worker does not start.')
    expect(await readResult(transform)).toContain('was stopped three times within a minute')
    expect(recovered).toEqual([])
  })

  test('late timeouts of an old version do not count against the new version', async () => {
    const stage = await createStage({ workers: 1, timeoutMs: 300 })
    await stage.write({ 'slow.ts': `export default () => new Promise(() => {})` })
    const { 'slow.ts': old } = await stage.load('slow.ts')
    const late = Array.from({ length: 4 }, () => readResult(old))
    await stage.write({ 'slow.ts': `export default () => 'mended'` })
    const { 'slow.ts': mended } = await stage.load('slow.ts')
    expect(await readResult(mended)).toBe('mended')
    for (const result of await Promise.all(late)) expect(result).toContain('did not end within 300 ms')
    for (let n = 0; n < 3; n++) expect(await readResult(old)).toContain('did not end within 300 ms')
    expect(await readResult(mended)).toBe('mended')
  })

  test('a module whose breaker is open is called again as soon as new code is saved', async () => {
    const stage = await createStage({ workers: 1 })
    await stage.write({ 'bad.ts': bad })
    const before = await stage.load('bad.ts')
    for (let n = 0; n < 3; n++) await readResult(before['bad.ts'])
    await stage.load('bad.ts')
    expect(await readResult(before['bad.ts'])).toContain('three times within a minute')
    await stage.write({ 'bad.ts': `export default () => 'mended'` })
    expect(await readResult((await stage.load('bad.ts'))['bad.ts'])).toBe('mended')
  })

  test('a module whose top level blocks each thread after the first one fails its own calls, opens its breaker, and delays other calls only once', async () => {
    const stage = await createStage({ workers: 1, timeoutMs: 500 })
    await stage.write({
      'bad.ts': `import { existsSync, writeFileSync } from 'node:fs'
        const flag = import.meta.dirname + '/loaded'
        if (existsSync(flag)) while (true);
        writeFileSync(flag, '')
        export default () => 'first'`,
      'good.ts': `export default () => 'good'`,
      'end.ts': 'export default () => process.exit(1)',
    })
    const modules = await stage.load('bad.ts', 'good.ts', 'end.ts')
    expect(await readResult(modules['bad.ts'])).toBe('first')
    await readResult(modules['end.ts'])
    expect(await readResult(modules['good.ts'])).toBe('good')
    const late = 'transforms/bad.ts was not loaded within 500 ms.'
    for (let n = 0; n < 2; n++) expect(await readResult(modules['bad.ts'])).toBe(late)
    expect(await readResult(modules['bad.ts'])).toContain('three times within a minute')
    await readResult(modules['end.ts'])
    expect(await readResult(modules['good.ts'])).toBe('good')
    // a new thread does not load the module any more before a call needs it
    expect(stage.runtime.state().serving).toEqual([{ bundles: 2, inFlight: 0 }])
  })
})
