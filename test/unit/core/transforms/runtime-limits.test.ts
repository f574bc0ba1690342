import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createStage, readResult, type Stage } from './runtime-stage.ts'

const canMeasureThreads = 'getHeapStatistics' in Worker.prototype
const good = `export default ({ payload }) => payload`
/** Records the beginning of each call in a file, then waits. */
const noted = `import { appendFileSync } from 'node:fs'
export default async ({ payload }) => {
  appendFileSync(import.meta.dirname + '/noted', payload.n + ' ')
  await new Promise((done) => setTimeout(done, payload.ms))
  return payload
}`
const readBegins = (stage: Stage) => readFileSync(join(stage.root, 'noted'), 'utf8').trim().split(' ')

describe('transforms that do not end', () => {
  test.each([
    ['loops', 'export default () => { while (true); }'],
    ['loops after an await', 'export default async () => { await 1; while (true); }'],
    ['never settles', 'export default () => new Promise(() => {})'],
    ['runs microtasks without end', 'export default async () => { for (;;) await 1 }'],
  ])('a transform that %s times out, and other calls are served before that', async (_, bad) => {
    const { write, load } = await createStage({ timeoutMs: 250 })
    await write({ 'good.ts': good, 'bad.ts': bad })
    const modules = await load('good.ts', 'bad.ts')
    const order: string[] = []
    const failing = readResult(modules['bad.ts']).then((detail) => order.push(String(detail)))
    const served = [1, 2, 3, 4].map(async (n) => {
      expect(await readResult(modules['good.ts'], { n })).toEqual({ n })
      order.push('good')
    })
    await Promise.all([failing, ...served])
    expect(order.at(-1)).toBe('transforms/bad.ts did not end within 250 ms.')
    expect(await readResult(modules['good.ts'], { n: 5 })).toEqual({ n: 5 })
  })

  test('other calls are served while a transform blocks the only worker', async () => {
    const { write, load } = await createStage({ timeoutMs: 15_000, workers: 1 })
    await write({ 'good.ts': good, 'bad.ts': 'export default () => { while (true); }' })
    const modules = await load('good.ts', 'bad.ts')
    const order: string[] = []
    // the blocked call ends with the stage
    void readResult(modules['bad.ts']).then(() => order.push('bad'))
    await Promise.all(
      [1, 2, 3].map(async (n) => order.push(JSON.stringify(await readResult(modules['good.ts'], { n })))),
    )
    expect(order).toEqual(['{"n":1}', '{"n":2}', '{"n":3}'])
  })

  test('a slow transform that ends in time is not stopped', async () => {
    const { write, load, runtime } = await createStage({ timeoutMs: 5000, workers: 1 })
    await write({
      'slow.ts': `export default () => { const end = Date.now() + 150; while (Date.now() < end); return 'slow' }`,
    })
    const modules = await load('slow.ts')
    expect(await Promise.all([readResult(modules['slow.ts']), readResult(modules['slow.ts'])])).toEqual([
      'slow',
      'slow',
    ])
    expect(runtime.state().threads).toBeLessThanOrEqual(3)
  })

  test('time limits apply while the main thread is overloaded, and a call that ends in time is not stopped', async () => {
    const { write, load } = await createStage({ timeoutMs: 400, workers: 1 })
    await write({
      'bad.ts': 'export default () => { while (true); }',
      'hanging.ts': 'export default () => new Promise(() => {})',
      'slow.ts': `export default () => { const end = Date.now() + 250; while (Date.now() < end); return 'slow' }`,
    })
    const modules = await load('bad.ts', 'hanging.ts', 'slow.ts')
    const overload = setInterval(() => {
      const end = performance.now() + 150
      while (performance.now() < end);
    }, 1)
    onTestFinished(() => clearInterval(overload))
    expect(await readResult(modules['bad.ts'])).toBe('transforms/bad.ts did not end within 400 ms.')
    expect(await readResult(modules['hanging.ts'])).toBe('transforms/hanging.ts did not end within 400 ms.')
    expect(await readResult(modules['slow.ts'])).toBe('slow')
  })

  test('calls that wait for a call that blocks its worker move to another worker and run once', async () => {
    const stage = await createStage({ timeoutMs: 15_000, workers: 1 })
    await stage.write({
      'noted.ts': noted,
      'slow.ts': `import { existsSync } from 'node:fs'
        export default ({ payload }) => { while (!existsSync(payload.until)); return 'slow' }`,
    })
    const modules = await stage.load('noted.ts', 'slow.ts')
    const slow = readResult(modules['slow.ts'], { until: join(stage.root, 'until') })
    const noteds = await Promise.all([1, 2].map((n) => readResult(modules['noted.ts'], { n, ms: 1 })))
    await stage.write({ until: '' })
    expect(await slow).toBe('slow')
    expect(noteds).toEqual([1, 2].map((n) => ({ n, ms: 1 })))
    expect(readBegins(stage).toSorted()).toEqual(['1', '2'])
  })
})

describe('calls in progress in a stopped worker', () => {
  test('in a stopped worker, calls that had begun run once more, and calls that had not begun run once', async () => {
    const stage = await createStage({ timeoutMs: 400, workers: 1 })
    await stage.write({ 'noted.ts': noted, 'bad.ts': 'export default () => { while (true); }' })
    const modules = await stage.load('noted.ts', 'bad.ts')
    const results = await Promise.all([
      readResult(modules['noted.ts'], { n: 1, ms: 100 }),
      readResult(modules['bad.ts']),
      readResult(modules['noted.ts'], { n: 2, ms: 1 }),
    ])
    expect(results).toEqual([{ n: 1, ms: 100 }, 'transforms/bad.ts did not end within 400 ms.', { n: 2, ms: 1 }])
    expect(readBegins(stage).toSorted()).toEqual(['1', '1', '2'])
  })

  test('calls that run again run alone, so that only the call that blocks fails', async () => {
    const stage = await createStage({ timeoutMs: 400, workers: 1 })
    await stage.write({
      'noted.ts': noted,
      'bad.ts': `import './noted.ts'\nexport default async () => { await 1; while (true); }`,
    })
    const modules = await stage.load('noted.ts', 'bad.ts')
    const results = await Promise.all([
      readResult(modules['noted.ts'], { n: 1, ms: 50 }),
      readResult(modules['bad.ts']),
      readResult(modules['noted.ts'], { n: 2, ms: 50 }),
    ])
    expect(results).toEqual([{ n: 1, ms: 50 }, 'transforms/bad.ts did not end within 400 ms.', { n: 2, ms: 50 }])
    expect(readBegins(stage).length).toBeLessThanOrEqual(4)
  })

  test('calls in progress run again after process.exit in their worker', async () => {
    const stage = await createStage({ workers: 1 })
    await stage.write({ 'noted.ts': noted, 'bad.ts': 'export default () => process.exit(1)' })
    const modules = await stage.load('noted.ts', 'bad.ts')
    const results = await Promise.all([
      readResult(modules['noted.ts'], { n: 1, ms: 50 }),
      readResult(modules['bad.ts']),
    ])
    expect(results).toEqual([{ n: 1, ms: 50 }, 'transforms/bad.ts ended its worker (process.exit).'])
    expect(readBegins(stage)).toEqual(['1', '1'])
  })
})

describe('transforms that would end the process', () => {
  test('a transform that tries to end the process ends only its worker', async () => {
    const ways = {
      'process.exit': ['process.exit(0)', 'await 1; process.exit()'],
      'process.abort': ['process.abort()'],
      'process.kill': ['process.kill(process.pid)', `process.kill(process.pid, 'SIGKILL')`, 'process.kill(0)'],
      'process.reallyExit': ['process.reallyExit(1)'],
    }
    const { write, load } = await createStage({ workers: 1 })
    const bad = Object.entries(ways).flatMap(([how, codes]) => codes.map((code) => ({ how, code })))
    const named = bad.map(({ how, code }, n) => ({ how, file: `bad${n}.ts`, code }))
    await write({ 'good.ts': good })
    for (const { file, code } of named) {
      await write({ [file]: `export default async () => { ${code}; return 'went on' }` })
    }
    const modules = await load('good.ts', ...named.map(({ file }) => file))
    for (const { how, file } of named) {
      const both = Promise.all([readResult(modules[file]), readResult(modules['good.ts'], { file })])
      expect(await both).toEqual([`transforms/${file} ended its worker (${how}).`, { file }])
    }
  })

  test('a transform may test whether a process exists', async () => {
    const { write, load } = await createStage({ workers: 1 })
    await write({ 'x.ts': 'export default () => process.kill(process.pid, 0)' })
    expect(await readResult((await load('x.ts'))['x.ts'])).toBe(true)
  })
})

describe('transforms that use too much memory', () => {
  test.each([
    ['with a list', 'const all = []; for (;;) all.push({ n: [1, 2, 3] })'],
    ['with a list after an await', 'await 1; const all = []; for (;;) all.push({ n: [1, 2, 3] })'],
    [
      'with a map, whose growth alone would end the process',
      'const all = new Map(); for (let n = 0; ; n++) all.set(n, n)',
    ],
    ['with buffers', 'const all = []; for (;;) all.push(Buffer.alloc(1e6, 1))'],
    [
      'slowly with buffers',
      'const all = []; for (;;) { all.push(Buffer.alloc(1e6, 1)); await new Promise(setImmediate) }',
    ],
    [
      'slowly with texts',
      `const all = []; for (;;) { all.push(JSON.stringify('x'.repeat(1e6))); await new Promise(setImmediate) }`,
    ],
  ])(
    'a transform that fills its memory %s is stopped, and other calls are served',
    { timeout: 700_000 },
    async (_, code) => {
      // on a busy machine this takes minutes, because a call that blocks its thread gets the lowest priority
      const { write, load } = await createStage({ timeoutMs: 600_000, memoryMb: 32 })
      await write({ 'good.ts': good, 'bad.ts': `export default async () => { ${code} }` })
      const modules = await load('good.ts', 'bad.ts')
      const both = Promise.all([readResult(modules['bad.ts']), readResult(modules['good.ts'], { n: 1 })])
      expect(await both).toEqual(['transforms/bad.ts used more than 32 MB.', { n: 1 }])
      expect(await readResult(modules['good.ts'], { n: 2 })).toEqual({ n: 2 })
    },
  )

  test.skipIf(!canMeasureThreads)(
    `a call that blocks its worker is not stopped for memory that other threads use${canMeasureThreads ? '' : ' (skipped: this Node cannot measure the memory of another thread)'}`,
    async () => {
      const stage = await createStage({ memoryMb: 32, workers: 1 })
      await stage.write({
        'slow.ts': `import { appendFileSync, existsSync } from 'node:fs'
          export default ({ payload }) => {
            appendFileSync(import.meta.dirname + '/noted', 'run ')
            const until = Date.now() + 1000
            while (!existsSync(payload.grown) || Date.now() < until);
            return 'slow'
          }`,
      })
      const grown = join(stage.root, 'grown')
      const modules = await stage.load('slow.ts')
      const slow = readResult(modules['slow.ts'], { grown })
      await vi.waitFor(() => expect(readBegins(stage)).toEqual(['run']), { timeout: 60_000 })
      const code = `globalThis.all = Array.from({ length: 300 }, () => Buffer.alloc(1e6, 1))
        require('node:fs').writeFileSync(${JSON.stringify(grown)}, '')
        setInterval(() => {}, 1000)`
      const other = new Worker(code, { eval: true })
      onTestFinished(async () => void (await other.terminate()))
      expect(await slow).toBe('slow')
      expect(readBegins(stage)).toEqual(['run'])
    },
  )

  test('a transform below the memory limit that leaves garbage is not stopped', async () => {
    const { write, load } = await createStage({ memoryMb: 64, workers: 1 })
    await write({
      'x.ts': `export default async () => {
        for (let n = 0; n < 100; n++) { Buffer.alloc(4e6, 1); await new Promise(setImmediate) }
        return 'done'
      }`,
    })
    expect(await readResult((await load('x.ts'))['x.ts'])).toBe('done')
  })
})

describe('uncaught exceptions in a transform', () => {
  test.each([
    ['in a timer', `setTimeout(() => { throw new TypeError('secret') }, 5); await new Promise(() => {})`],
    ['in a promise that nobody awaits', `Promise.reject(new TypeError('secret')); await new Promise(() => {})`],
  ])('an exception %s fails only its own call', async (_, code) => {
    const { write, load } = await createStage({ workers: 1 })
    await write({
      'good.ts': `export default ({ payload }) => new Promise((done) => setTimeout(done, 30, payload))`,
      'bad.ts': `export default async () => {\n  ${code}\n}`,
    })
    const modules = await load('good.ts', 'bad.ts')
    const both = Promise.all([readResult(modules['good.ts'], { n: 1 }), readResult(modules['bad.ts'])])
    expect(await both).toEqual([
      { n: 1 },
      'transforms/bad.ts threw a TypeError at bad.ts:2 outside the call: in a timer, or in a promise without await.',
    ])
    expect(await readResult(modules['good.ts'], { n: 2 })).toEqual({ n: 2 })
  })

  test('an exception after the end of its call fails no call', async () => {
    const { write, load } = await createStage({ workers: 1 })
    await write({
      'late.ts': `export default () => { setTimeout(() => { throw new Error('late') }, 5); return 'fine' }`,
      'good.ts': `export default () => new Promise((done) => setTimeout(done, 40, 'good'))`,
    })
    const modules = await load('late.ts', 'good.ts')
    const both = Promise.all([readResult(modules['late.ts']), readResult(modules['good.ts'])])
    expect(await both).toEqual(['fine', 'good'])
    expect(await readResult(modules['good.ts'])).toBe('good')
  })
})
