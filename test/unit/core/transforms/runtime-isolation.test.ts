import { readdirSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { pickEnv } from '../../../../src/gateway/config/env.ts'
import { silentLog } from '../../../../src/base/log.ts'
import { load as loadHere, toCall } from './stage.ts'
import { createStage, readResult, run, requireLoaded } from './runtime-stage.ts'

describe('calls in a worker', () => {
  test('a call in a worker has the same outcome as in the main thread, whatever it returns or throws', async () => {
    const codes = [
      '42',
      'null',
      'undefined',
      '({ a: undefined, b: [1, "é", { c: null }] })',
      'JSON.parse(\'{"__proto__":{"evil":1}}\')',
      'Symbol("s")',
      '10n',
      'new Date(0)',
      'new Map()',
      '() => 1',
      'new SharedArrayBuffer(8)',
      'globalThis',
      'input',
      '(() => { const a = {}; a.a = a; return a })()',
      '({ get bomb() { while (true); } })',
      '({ get then() { throw new TypeError("no") } })',
      '({ then: (done) => done("thenable") })',
      'Promise.reject(new Proxy({}, { get() { throw 1 } }))',
      '(() => { throw "SECRET" })()',
      '(() => { throw null })()',
      '(() => { throw new Error("x".repeat(10_000_000)) })()',
      '(() => { const f = () => f() + 1; return f() })()',
      '"x".repeat(100_000_000)',
    ]
    const { root, write, load } = await createStage({ workers: 1 })
    await write(
      Object.fromEntries(
        codes.map((code, n) => [
          `x${n}.ts`,
          `export default (input, { log }) => {\n  log('seen')\n  return ${code}\n}`,
        ]),
      ),
    )
    const modules = await load(...codes.map((_, n) => `x${n}.ts`))
    for (const [n, code] of codes.entries()) {
      const module = `x${n}.ts`
      const here = await (await loadHere(root, module)).run(toCall({ n }))
      expect([code, await run(modules[module], { n })]).toEqual([code, here])
    }
  })

  test('a call does not take the bytes of the body away from its caller, whatever their size', async () => {
    const { write, load } = await createStage()
    await write({
      'x.ts': `export default ({ payload }) => { const n = payload.length; payload.length = 0; return n }`,
    })
    const transform = requireLoaded((await load('x.ts'))['x.ts'])
    for (const length of [10, 100_000]) {
      const call = toCall(Array.from({ length }, () => 'é'))
      const before = Uint8Array.from(call.body)
      // this is a view into a larger buffer, as a body from a socket is
      const shared = Buffer.concat([Buffer.from('before'), call.body, Buffer.from('after')])
      const body = shared.subarray(6, 6 + before.byteLength)
      expect(await transform.run({ ...call, body })).toMatchObject({ kind: 'returned', value: length })
      expect(Buffer.compare(body, before)).toBe(0)
      expect(shared.toString('latin1', 0, 6)).toBe('before')
    }
  })

  test('each of hundreds of calls in one turn of the event loop gets its own outcome', async () => {
    const { write, load } = await createStage()
    await write({
      'x.ts': `export default async ({ payload, deliveryId }) => { if (payload.n % 3 === 0) await 1; return [payload.n, payload.text.length, deliveryId] }`,
    })
    const transform = requireLoaded((await load('x.ts'))['x.ts'])
    const calls = Array.from({ length: 300 }, async (_, n) => {
      const call = toCall({ n, text: 'ü'.repeat((n % 10) ** 4) })
      const outcome = await transform.run({ ...call, head: { ...call.head, deliveryId: `d-${n}-ü` } })
      expect(outcome).toMatchObject({ value: [n, (n % 10) ** 4, `d-${n}-ü`] })
    })
    await Promise.all(calls)
  })

  test('a body that does not parse is refused as an error of the sender', async () => {
    const { write, load } = await createStage()
    await write({ 'x.ts': 'export default () => 1' })
    const transform = requireLoaded((await load('x.ts'))['x.ts'])
    const outcome = await transform.run({ ...toCall({}), body: Buffer.from('{"a":') })
    expect(outcome).toMatchObject({ kind: 'refused', problem: { code: 'body-invalid' } })
  })
})

describe('changes of globals', () => {
  test.each([
    ['JSON.parse', 'JSON.parse = () => ({ evil: true })'],
    ['Object.prototype', 'Object.prototype.evil = true'],
    ['Object.prototype, hidden', `Object.defineProperty(Object.prototype, 'evil', { value: true })`],
    ['Array.prototype', 'Array.prototype.evil = true'],
    ['Array.prototype.map', 'Array.prototype.map = () => ["evil"]'],
    ['fetch', `globalThis.fetch = () => 'evil'`],
    ['Date', 'globalThis.Date = class extends Date {}'],
    ['process', 'delete globalThis.process'],
    ['a getter that throws', `Object.defineProperty(globalThis, 'setTimeout', { get() { throw 1 } })`],
    ['JSON.parse, after an await', 'await 1; JSON.parse = () => ({ evil: true })'],
  ])('the next call does not see a change of a global: %s', async (_, code) => {
    const { write, load } = await createStage({ workers: 1 })
    await write({
      'good.ts': `const fetched = fetch; const DateThen = Date
        export default ({ payload }) => ({
          ...payload, list: [1].map((n) => n + 1), evil: 'evil' in {} || 'evil' in [], same: fetch === fetched && Date === DateThen, timer: typeof setTimeout, id: typeof process.pid,
        })`,
      'bad.ts': `export default async () => { ${code}; return 'done' }`,
    })
    const modules = await load('good.ts', 'bad.ts')
    const expected = { n: 1, list: [2], evil: false, same: true, timer: 'function', id: 'number' }
    const batch = Promise.all([readResult(modules['bad.ts']), readResult(modules['good.ts'], { n: 1 })])
    // the other call of the batch ended before this call continued after its await
    expect(await batch).toEqual(['done', expected])
    expect(await readResult(modules['good.ts'], { n: 1 })).toEqual(expected)
  })

  test.each([
    'Object.prototype.toJSON = () => undefined',
    'Array.prototype.toJSON = () => undefined',
    'String.prototype.toJSON = () => "evil"',
    'JSON.stringify = () => "evil"',
    'Object.keys = () => ["evil"]',
    'String.prototype.slice = Array.prototype.map = Array.prototype.join = () => "evil"',
    'Number.isFinite = () => false',
  ])('a changed global does not alter the outcome of the call: %s', async (code) => {
    const { write, load } = await createStage({ workers: 1 })
    await write({
      'good.ts': `export default (_, { log }) => { log('said'); ${code}; return { a: [1, 'two', { b: null }] } }`,
      'thrower.ts': `export default (_, { log }) => { log('said'); ${code}; throw new TypeError('no') }`,
    })
    const modules = await load('good.ts', 'thrower.ts')
    expect(await run(modules['good.ts'])).toEqual({
      kind: 'returned',
      value: { a: [1, 'two', { b: null }] },
      log: ['said'],
    })
    // the changed globals may hide the place of the exception
    const detail = expect.stringContaining('transforms/thrower.ts threw a TypeError')
    const problem = { code: 'transform-failed', detail }
    expect(await run(modules['thrower.ts'])).toMatchObject({ kind: 'failed', problem, log: ['said'] })
  })

  test('a new global does not replace the worker, so its modules keep their state', async () => {
    const { write, load } = await createStage({ workers: 1 })
    await write({ 'x.ts': 'let n = 0\nexport default () => { globalThis.mine = 1; return ++n }' })
    const modules = await load('x.ts')
    expect([await readResult(modules['x.ts']), await readResult(modules['x.ts'])]).toEqual([1, 2])
  })

  test('a module that changes a global object while it loads is logged, and works', async () => {
    const warnings: string[] = []
    const log = { ...silentLog, warn: (_: object, message: string) => void warnings.push(message) }
    const { write, load } = await createStage({ log, workers: 1 })
    await write({
      'x.ts': `Array.prototype.last = function () { return this.at(-1) }\nexport default () => [1, 2].last()`,
    })
    const modules = await load('x.ts')
    expect(warnings).toEqual(['transforms/x.ts changes a global object while it loads'])
    expect([await readResult(modules['x.ts']), await readResult(modules['x.ts'])]).toEqual([2, 2])
  })
})

describe('messages of transforms', () => {
  test('a message to parentPort has no effect, and the call continues', async () => {
    const { write, load } = await createStage({ workers: 1 })
    await write({
      'x.ts': `import { parentPort, workerData } from 'node:worker_threads'
        let calls = 0
        export default () => {
          for (const message of [null, 'x', { kind: 'leaving', why: 'globals' }, { kind: 'outcomes', outcomes: '{' }]) parentPort.postMessage(message)
          return [++calls, Object.values(workerData).some((value) => value instanceof MessagePort)]
        }`,
    })
    const modules = await load('x.ts')
    // the second call runs in the worker of the first
    const results = [await readResult(modules['x.ts']), await readResult(modules['x.ts'])]
    expect(results).toEqual([
      [1, false],
      [2, false],
    ])
  })

  test.each(['null', '{ kind: "outcomes", outcomes: "{" }', '{ kind: "unrun" }'])(
    'an invalid message to the gateway ends only its worker: %s',
    async (message) => {
      const { write, load } = await createStage({ workers: 1 })
      await write({
        'bad.ts': `export default () => {
          for (const handle of process._getActiveHandles()) if (handle instanceof MessagePort) handle.postMessage(${message})
          return new Promise(() => {})
        }`,
        'good.ts': `export default () => 'good'`,
      })
      const modules = await load('bad.ts', 'good.ts')
      expect(await readResult(modules['bad.ts'])).toContain('transforms/bad.ts')
      expect(await readResult(modules['good.ts'])).toBe('good')
    },
  )
})

describe('the environment of a transform', () => {
  const text = 'export default () => ({ ...process.env })'
  test('the environment of a transform is empty if the configuration names no variable', async () => {
    const { write, load } = await createStage()
    await write({ 'x.ts': text })
    expect(Object.keys(process.env).length).toBeGreaterThan(0)
    expect(await readResult((await load('x.ts'))['x.ts'])).toEqual({})
  })

  test('a transform sees only the environment variables that the configuration names and that are set', async () => {
    const env = pickEnv(['API_BASE', 'UNSET'], { API_BASE: 'https://example.com', HOOKLOOM_TOKEN: 'secret' })
    const { write, load } = await createStage({ env })
    await write({ 'x.ts': text })
    expect(await readResult((await load('x.ts'))['x.ts'])).toEqual({ API_BASE: 'https://example.com' })
  })

  test('an environment with which no worker starts makes calls fail with a reason', async () => {
    const { write, load } = await createStage({ env: { NODE_OPTIONS: '--no-such-option' } })
    await write({ 'x.ts': text })
    const transform = requireLoaded((await load('x.ts'))['x.ts'])
    expect(transform.problem).toMatchObject({ detail: 'The transform worker does not start.' })
    expect(transform.problem?.frame).toContain('--no-such-option')
    expect(await readResult(transform)).toBe('The transform worker does not start.')
  })
})

describe('printed text', () => {
  test('printed text goes into the log of the call that printed it, even after an await', async () => {
    const { write, load } = await createStage({ workers: 1 })
    await write({
      'x.ts': `export default async ({ payload }, { log }) => {
        console.log('one', payload.n)
        await new Promise((done) => setTimeout(done, 5))
        console.error('two', payload.n)
        process.stdout.write('three\\n')
        log('four')
        return payload.n
      }`,
    })
    const { 'x.ts': transform } = await load('x.ts')
    const logs = await Promise.all([1, 2].map(async (n) => (await run(transform, { n })).log))
    expect(logs).toEqual([1, 2].map((n) => [`one ${n}`, `two ${n}`, 'three', 'four']))
  })

  test('printed bytes are logged as text', async () => {
    const { write, load } = await createStage({ workers: 1 })
    await write({
      'x.ts': `const bytes = new TextEncoder().encode('0 höre\\n1 auf')
        export default () => { process.stdout.write(bytes.subarray(2)); process.stderr.write(Buffer.from('2 é')); return null }`,
    })
    expect((await run((await load('x.ts'))['x.ts'])).log).toEqual(['höre', '1 auf', '2 é'])
  })

  test('a transform that waits until its text is written goes on', async () => {
    const { write, load } = await createStage({ workers: 1 })
    await write({
      'x.ts': `export default async () => {
        await new Promise((done) => process.stdout.write('one', done))
        await new Promise((done) => process.stderr.write('two', 'utf8', done))
        return 'three'
      }`,
    })
    expect(await run((await load('x.ts'))['x.ts'])).toMatchObject({ value: 'three', log: ['one', 'two'] })
  })
})

test('a runtime that is closed has ended every thread, and fails calls instead of hanging', async () => {
  // only Linux shows the number of threads
  const countThreads = () => (process.platform === 'linux' ? readdirSync('/proc/self/task').length : -1)
  const { write, load, runtime } = await createStage()
  await write({
    'x.ts': 'export default () => new Promise(() => {})',
    'y.ts': 'export default () => { while (true); }',
  })
  const modules = await load('x.ts', 'y.ts')
  const alive = countThreads()
  const pending = [readResult(modules['x.ts']), readResult(modules['y.ts'])]
  await new Promise(setImmediate)
  await runtime.close()
  expect(await Promise.all(pending)).toEqual(['The gateway is shutting down.', 'The gateway is shutting down.'])
  expect(await readResult(modules['x.ts'])).toBe('The gateway is shutting down.')
  expect(runtime.state().threads).toBe(0)
  expect(countThreads()).toBeLessThanOrEqual(Math.max(alive - 2, -1))
})
