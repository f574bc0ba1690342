import { describe, expect, test, vi } from 'vitest'
import { createConfigDir, load, runModule, toCall, writeFiles } from './stage.ts'

const adviceOnNothing = "return {} to keep the mapping's action, null to skip"

describe('the input of a transform', () => {
  test('a transform gets the delivery and a log', async () => {
    const text = `export default (input, { log }) => { log('seen'); return { ...input, keys: Object.keys(input).sort() } }`
    const { kind, ...rest } = await runModule(text, { payload: { a: [1, { b: null }] } })
    const { source: _source, event: _event, ...head } = toCall({}).head
    expect({ kind, ...rest }).toEqual({
      kind: 'returned',
      value: {
        ...head,
        payload: { a: [1, { b: null }] },
        keys: Object.keys({ ...toCall({}).head, payload: {} }).toSorted(),
      },
      log: ['seen'],
    })
  })

  test('a transform gets a copy: neither the next call nor the caller sees its changes', async () => {
    const text = `export default (input) => {
      const before = JSON.stringify([input.payload, input.headers])
      input.payload.n = 2; input.headers.evil = '1'; delete input.query; input.payload.list.push(1)
      return before
    }`
    const { root } = await createConfigDir()
    await writeFiles(root, { 'x.js': text })
    const transform = await load(root, 'x.js')
    const input = toCall({ n: 1, list: [] })
    const frozen = structuredClone(input)
    const first = await transform.run(input)
    expect(await transform.run(input)).toEqual(first)
    expect(input).toEqual(frozen)
  })
})

describe('exceptions in a transform', () => {
  test.each([
    ['a field of the schema', `{ items: [{ id: 7 }] }`, 'a ZodError for items[0].id'],
    ['a key that is data', `{ people: { 'ada@example.org': 7 } }`, 'a ZodError'],
    ['the payload itself', `'SECRET'`, 'a ZodError'],
  ])('an answer that a schema refuses is reported with its field: %s', async (_what, value, what) => {
    const text = `import { z } from 'zod'
      const Answer = z.object({ items: z.array(z.object({ id: z.string() })).optional(), people: z.record(z.string(), z.string()).optional() })
      export default () => Answer.parse(${value})`
    const outcome = await runModule(text)
    expect(outcome).toMatchObject({ problem: { detail: `transforms/x.ts threw ${what} at x.ts:3.` } })
  })

  test('an exception is reported with its type and source line, and only the operator sees its message', async () => {
    const text = `type Payload = { user?: { name: string } }

const shout = (word: string | undefined): string => {
  throw new TypeError('no name in SECRET')
}
export default ({ payload }: { payload: Payload }) => shout(payload.user?.name)`
    expect(await runModule(text)).toEqual({
      kind: 'failed',
      problem: {
        code: 'transform-failed',
        detail: 'transforms/x.ts threw a TypeError at x.ts:4.',
        frame: [
          'TypeError: no name in SECRET',
          '  at x.ts:4:9',
          '  3 | const shout = (word: string | undefined): string => {',
          "> 4 |   throw new TypeError('no name in SECRET')",
          '    |         ^',
          '  5 | }',
        ].join('\n'),
      },
      log: [],
    })
  })

  test('an exception after an await is reported with its line, and the log of the call is kept', async () => {
    const text = `export default async (_, { log }) => {\n  log('before')\n  await new Promise(setImmediate)\n  throw new Error('late')\n}`
    expect(await runModule(text)).toMatchObject({
      problem: { detail: 'transforms/x.ts threw an Error at x.ts:4.' },
      log: ['before'],
    })
  })

  test('half of a character in the log or in an exception becomes U+FFFD', async () => {
    const text = `export default (_, { log }) => {\n  log('a😀'.slice(0, 2))\n  throw new Error('b😀'.slice(0, 2))\n}`
    expect(await runModule(text)).toMatchObject({
      problem: { frame: expect.stringMatching(/^Error: b\ufffd\n/) },
      log: ['a\ufffd'],
    })
  })

  const thrown: [what: string, thrower: string, detail: string, frame: RegExp][] = [
    ['a string', `throw 'SECRET'`, 'a string', /^a string: SECRET$|^string: SECRET$/],
    ['null', 'throw null', 'null', /^threw null$/],
    ['undefined', 'throw undefined', 'undefined', /^threw undefined$/],
    ['an object', `throw { message: 'SECRET' }`, 'an object', /SECRET/],
    ['a number', 'throw 42', 'a number', /42/],
    ['a symbol', 'throw Symbol("SECRET")', 'a symbol', /^threw a symbol$/],
    ['a rejection', 'return Promise.reject(new RangeError("SECRET"))', 'a RangeError at x.ts:1', /RangeError: SECRET/],
    [
      'a proxy whose every trap throws',
      `throw new Proxy(new Error('SECRET'), new Proxy({}, { get() { throw 1 } }))`,
      'a proxy',
      /^threw a proxy$/,
    ],
    [
      'an error whose getters throw',
      `throw Object.defineProperties(new Error(''), { message: { get() { throw 1 } }, name: { get() { throw 1 } } })`,
      'an Error',
      /^threw an Error$/,
    ],
    [
      'an error whose stack throws',
      `throw Object.defineProperty(new Error('m'), 'stack', { get() { throw 1 } })`,
      'an Error',
      /^Error: m$/,
    ],
    [
      'an error with a name from outside',
      `throw Object.assign(new Error('m'), { name: 'SECRET text' })`,
      'an Error at x.ts:1',
      /^Error: m\n/,
    ],
    [
      'an error without a prototype',
      `throw Object.setPrototypeOf(new Error('m'), null)`,
      'an Error at x.ts:1',
      /^Error: m\n/,
    ],
    ['a stack overflow', `const f = () => f() + 1; return f()`, 'a RangeError at x.ts:1', /Maximum call stack/],
  ]
  test.each(thrown)(
    '%s that a transform throws fails its call, and the detail does not contain its text',
    async (_, thrower, detail, frame) => {
      const outcome = await runModule(`export default () => { ${thrower} }`)
      expect(outcome).toEqual({
        kind: 'failed',
        problem: {
          code: 'transform-failed',
          detail: `transforms/x.ts threw ${detail}.`,
          frame: expect.stringMatching(frame),
        },
        log: [],
      })
    },
  )

  test('an exception message of 10 MB is cut, and its lines are not taken for the stack', async () => {
    const text = `export default () => {\n  throw new Error('x'.repeat(10_000_000) + '\\n    at fake (/etc/passwd:1:1)')\n}`
    const outcome = await runModule(text)
    expect(outcome).toMatchObject({ problem: { detail: 'transforms/x.ts threw an Error at x.ts:2.' } })
    expect(JSON.stringify(outcome).length).toBeLessThan(1500)
  })
})

describe('slow transforms', () => {
  test('a transform that never ends times out', async () => {
    expect(await runModule('export default () => new Promise(() => {})', { timeoutMs: 60 })).toEqual({
      kind: 'failed',
      problem: { code: 'transform-timeout', detail: 'transforms/x.ts did not end within 60 ms.' },
      log: [],
    })
  })

  test('a slow transform that ends in time returns its result', async () => {
    const text = 'export default () => new Promise((done) => setTimeout(done, 5, "done"))'
    expect(await runModule(text)).toMatchObject({ kind: 'returned', value: 'done' })
  })

  test('a transform that rejects after its time limit has no effect', async () => {
    const text = `export default (_, { log }) => new Promise((_, reject) => setTimeout(() => { log('late'); reject(1); globalThis.rejected?.() }, 80))`
    const rejected = new Promise<void>((resolve) => void vi.stubGlobal('rejected', resolve))
    const outcome = await runModule(text, { timeoutMs: 60 })
    await rejected
    await new Promise(setImmediate)
    expect(outcome).toMatchObject({ problem: { code: 'transform-timeout' }, log: [] })
  })
})

describe('results of transforms', () => {
  const plain = [
    'null',
    '{}',
    '[]',
    '[{}, null]',
    '42',
    '"x"',
    'true',
    '({ a: [1.5, "é", { b: null }] })',
    '"y".repeat(262_142)',
  ]
  test.each(plain)('the result %s is plain data and is returned unchanged', async (code) => {
    // the test evaluates the same expression
    const value: unknown = new Function(`return ${code}`)()
    expect(await runModule(`export default () => (${code})`)).toEqual({ kind: 'returned', value, log: [] })
    expect(await runModule(`export default async () => (${code})`)).toEqual({ kind: 'returned', value, log: [] })
  })

  test('a result loses fields that are undefined, and keeps `__proto__` as data', async () => {
    const outcome = await runModule(
      `export default () => ({ a: undefined, ...JSON.parse('{"o":{"__proto__":{"evil":1}}}') })`,
    )
    expect(JSON.stringify(outcome)).toBe('{"kind":"returned","value":{"o":{"__proto__":{"evil":1}}},"log":[]}')
    expect(outcome.kind === 'returned' && Object.getPrototypeOf((outcome.value as { o: object }).o)).toBe(
      Object.prototype,
    ) // as: the shape is checked one line above
  })

  const bad: [code: string, reason: string][] = [
    ['undefined', ''],
    ['() => 1', 'result is a function'],
    ['Symbol("s")', 'result is a symbol'],
    ['10n', 'result is a bigint'],
    ['({ to: () => 1 })', 'result.to is a function'],
    ['[{ to: 1n }]', 'result[0].to is a bigint'],
    ['({ "a secret": { b: 1n } })', 'result[…].b is a bigint'],
    ['[1, undefined]', 'result[1] is nothing'],
    ['[1, , 2]', 'result[1] is nothing'],
    ['new Array(4_000_000_000)', 'the result is larger than 256 kB'],
    ['({ n: NaN })', 'result.n is a number that JSON cannot represent'],
    ['({ n: -Infinity })', 'result.n is a number that JSON cannot represent'],
    ['({ at: new Date(0) })', 'result.at is an instance of Date'],
    ['new Map([[1, 2]])', 'result is an instance of Map'],
    ['new Error("secret")', 'result is an instance of Error'],
    ['new (class Pull { a = 1 })()', 'result is an instance of Pull'],
    ['new (class extends Array {})()', 'result is an instance of a class'],
    [
      'Object.setPrototypeOf({}, new Proxy({}, { getOwnPropertyDescriptor() { throw 1 } }))',
      'result is an instance of a class',
    ],
    ['new String("x")', 'result is an instance of String'],
    ['new Uint8Array(8)', 'result is an instance of Uint8Array'],
    ['Object.create({ toString: null })', 'result is an instance of a class'],
    ['(() => { const a = { b: {} }; a.b.c = a; return a })()', 'result.b.c contains itself'],
    [
      '(() => { let a = {}; for (let i = 0; i < 100_000; i++) a = { a }; return a })()',
      'the result has more than 64 levels',
    ],
    [
      '(() => { let a = ["x"]; for (let i = 0; i < 60; i++) a = [a, a]; return a })()',
      'the result is larger than 256 kB',
    ],
    ['"x".repeat(100_000_000)', 'the result is larger than 256 kB'],
    ['"y".repeat(262_143)', 'the result is larger than 256 kB'],
    ['"\\n".repeat(140_000)', 'the result is larger than 256 kB'],
    ['"é".repeat(140_000)', 'the result is larger than 256 kB'],
    ['({ get bomb() { while (true); } })', 'result.bomb is a getter'],
    ['Object.defineProperty([1], 0, { get() { while (true); }, enumerable: true })', 'result[0] is a getter'],
    ['({ toJSON: () => 1 })', 'result.toJSON is a function'],
    ['({ a: new Proxy({}, { ownKeys() { while (true); } }) })', 'result.a is a proxy'],
  ]
  test.each(bad)(
    'the result %s is refused with the place and kind of the value that is not plain data',
    async (code, reason) => {
      const detail =
        reason === ''
          ? `transforms/x.ts returned nothing: ${adviceOnNothing}.`
          : `transforms/x.ts must return plain JSON data: ${reason}.`
      const expected = { kind: 'failed', problem: { code: 'transform-result-invalid', detail }, log: [] }
      expect(await runModule(`export default () => (${code})`)).toEqual(expected)
      expect(await runModule(`export default async () => (${code})`)).toEqual(expected)
    },
  )

  test('a result whose `then` throws counts as a failure', async () => {
    const outcome = await runModule(`export default () => ({ get then() { throw new TypeError('no') } })`)
    expect(outcome).toMatchObject({
      problem: { code: 'transform-failed', detail: 'transforms/x.ts threw a TypeError at x.ts:1.' },
    })
  })
})

describe('logs of calls', () => {
  test('a log keeps 100 lines of 500 characters', async () => {
    const outcome = await runModule(
      `export default (_, { log }) => { for (let i = 0; i < 5000; i++) log(i + 'x'.repeat(100_000)); return {} }`,
    )
    expect(outcome.log).toHaveLength(100)
    expect(outcome.log.every((line) => line.length === 500)).toBe(true)
    expect(outcome.log[99]).toMatch(/^99x/)
  })

  test('a log line of any type does not fail the delivery', async () => {
    const text = `export default (_, { log }) => {
      for (const line of [1, null, undefined, Symbol('s'), {}, Object.create(null), { toString() { throw 1 } }]) log(line)
      return {}
    }`
    expect(await runModule(text)).toMatchObject({
      kind: 'returned',
      log: [
        '1',
        'null',
        'undefined',
        'Symbol(s)',
        '[object Object]',
        'a log line that is not text',
        'a log line that is not text',
      ],
    })
  })
})
