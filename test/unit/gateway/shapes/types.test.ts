// Generated types and schemas. The compiler checks the types, and Zod checks the schemas. With a corpus of real payloads, the types and schemas that
// are learnt from one half of the requests of an event accept the other half.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { JsonValue } from '../../../../src/base/json.ts'
import { parseBody, toJsonBody } from '../../../../src/core/model/body.ts'
import { readEvent } from '../../../../src/core/mapping/sources.ts'
import {
  createEventShape,
  type EventKey,
  learnPayload,
  type NamedShape,
  nameShapes,
  parseEventShape,
  renderEventShape,
} from '../../../../src/gateway/shapes/event-shape.ts'
import { renderTypes } from '../../../../src/gateway/shapes/typescript.ts'
import { renderSchemas } from '../../../../src/gateway/shapes/zod.ts'
import { builtInSenders } from '../../../../src/gateway/built-in.ts'

const { find: findSender, recognise: recogniseSender } = builtInSenders

function learnShapes(payloads: readonly JsonValue[], key: Partial<EventKey> = {}): NamedShape[] {
  const learnt = createEventShape({ hook: 'orders', ...key })
  for (const payload of payloads) learnPayload(learnt, payload, 1)
  return nameShapes([learnt])
}

const hasNumbersAsTexts = (source: string) => findSender(source)?.hasNumbersAsTexts === true

function toTypes(hook: string, shapes: readonly NamedShape[]): string {
  return [...renderTypes(hook, shapes, hasNumbersAsTexts)].join('')
}

/** The schema that `hookloom types --zod` writes for all events. */
function toSchema(shapes: readonly NamedShape[]): z.ZodType {
  const text = [...renderSchemas('orders', shapes, hasNumbersAsTexts)]
    .join('')
    .replace(/^import .*$/m, '')
    .replaceAll(/^export /gm, '')
  // as: the text declares this schema
  return new Function('z', `${text}\nreturn ordersPayload`)(z) as z.ZodType
}

/** The errors of the compiler in a program of virtual files, with the names of their files. */
function compile(files: Readonly<Record<string, string>>): { file: string; text: string }[] {
  const options: ts.CompilerOptions = {
    strict: true,
    noEmit: true,
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2022.d.ts'],
    types: [],
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    allowImportingTsExtensions: true,
  }
  const host = ts.createCompilerHost(options)
  const { readFile, fileExists } = host
  const find = (file: string) => files[file.replace(/^\/virtual\//, '')]
  host.readFile = (file) => find(file) ?? readFile.call(host, file)
  host.fileExists = (file) => find(file) !== undefined || fileExists.call(host, file)
  host.directoryExists = () => true
  host.getSourceFile = (file, version) => {
    const text = host.readFile(file)
    return text === undefined ? undefined : ts.createSourceFile(file, text, version)
  }
  const program = ts.createProgram(
    Object.keys(files).map((file) => `/virtual/${file}`),
    options,
    host,
  )
  return ts.getPreEmitDiagnostics(program).map(({ file, messageText }) => ({
    file: file?.fileName ?? '',
    text: ts.flattenDiagnosticMessageText(messageText, ' '),
  }))
}

const many = <Value>(value: Value): Value[] => Array.from({ length: 30 }, () => value)

describe('generated types', () => {
  test('generated types say what is optional, nullable, a list of words, a map, a date and a URL', () => {
    const payloads = [
      ...many({
        id: 1,
        status: 'paid',
        at: '2026-01-02T03:04:05Z',
        page: 'https://a.example/x',
        byUser: { 'a b': 1 },
        tags: [],
      }),
      {
        id: null,
        status: 'open',
        at: '2026-01-02T03:04:05Z',
        page: 'https://a.example/y',
        byUser: {},
        tags: ['x', 1],
        note: 'n',
      },
      { id: null, status: 'open', at: '2026-01-02T03:04:05Z', page: 'https://a.example/y', byUser: {}, tags: [] },
    ]
    expect(toTypes('orders', learnShapes(payloads, { source: 'shop', event: 'order.paid' }))).toBe(
      `// What the requests of the hook "orders" have in common. "hookloom types" writes this file.

/** event "order.paid", source "shop" */
export type OrdersShopOrderPaid = {
  id: number | null
  status: 'open' | 'paid' | (string & {})
  /** a date and time */
  at: string
  /** a URL */
  page: string
  byUser: Record<string, number>
  tags: Array<number | string>
  note?: string | null
}

export type OrdersPayload =
  | OrdersShopOrderPaid
`,
    )
  })

  test('generated types present nothing as certain after few requests', () => {
    expect(toTypes('orders', learnShapes([{ id: 1 }]))).toContain('id?: number | null')
  })

  test('for a sender that also writes numbers as texts, a number may be either after few requests, and has the kind that came after many requests', () => {
    const declare = (source: string, payloads: readonly JsonValue[]) =>
      toTypes('files', learnShapes(payloads, { source, event: 'finalized' }))
    const text = [{ size: '352', name: 'a' }]
    const number = [{ size: 0 }]
    expect(declare('google-cloudevents', text)).toContain('size?: number | string | null')
    expect(declare('google-cloudevents', text)).toContain('name?: string | null')
    expect(declare('google-cloudevents', number)).toContain('size?: number | string | null')
    expect(declare('google-cloudevents', many({ size: '352' }))).toContain('size: string')
    expect(declare('google-cloudevents', many({ size: 0 }))).toContain('size: number')
    expect(declare('shop', text)).toContain('size?: string | null')
    expect(declare('shop', number)).toContain('size?: number | null')
  })

  test('a field in which code gets long numbers as texts is either, also after the shape was stored', () => {
    const payloads = Array.from({ length: 30 }, (_, id) =>
      parseBody(`{"id":65324704036867276${id % 10},"n":1.50}`, 'json'),
    )
    const learnt = createEventShape({ hook: 'orders' })
    for (const payload of payloads) learnPayload(learnt, payload, 1)
    const shapes = nameShapes([parseEventShape(renderEventShape(learnt))])
    expect(toTypes('orders', shapes)).toContain('id: number | string\n  n: number\n')
    expect(toTypes('orders', shapes)).toContain('a number that a double does not hold is a string of its digits')
    expect(toSchema(shapes).safeParse({ id: '653247040368672769', n: 1.5 }).success).toBe(true)
    expect(toSchema(shapes).safeParse({ id: 7, n: '1.5' }).success).toBe(false)
  })

  test('the name of a generated type stays the same, whatever requests follow', () => {
    const listNames = (...keys: Partial<EventKey>[]) =>
      nameShapes(keys.map((key) => createEventShape({ hook: 'github', ...key }))).map(({ name }) => name)
    expect(listNames({ source: 'github', event: 'pull_request' })).toEqual(['GithubPullRequest'])
    expect(
      listNames({ source: 'github', event: 'pull_request' }, { source: 'stripe', event: 'invoice.paid' }, {}),
    ).toEqual(['GithubPayload', 'GithubPullRequest', 'GithubStripeInvoicePaid'])
  })

  test('generated types compile, and the compiler refuses a misspelt field and suggests the right name', () => {
    const types = toTypes(
      'github',
      learnShapes(many({ action: 'opened', pull_request: { title: 'x', 'odd-name': 1 } }), {
        hook: 'github',
        event: 'pull_request',
      }),
    )
    const buildModule = (field: string) =>
      `import type { GithubPullRequest } from './payloads/github.ts'\nexport const read = (payload: GithubPullRequest): string => payload.pull_request.${field}\n`
    expect(compile({ 'payloads/github.d.ts': types, 'pr.ts': buildModule('title') })).toEqual([])
    expect(compile({ 'payloads/github.d.ts': types, 'pr.ts': buildModule('titel') })).toEqual([
      { file: '/virtual/pr.ts', text: expect.stringContaining("Did you mean 'title'?") },
    ])
  })

  test('the schemas of a hook have a union of all events, with the name of the union of the types', () => {
    const shapes = ['paid', 'sent'].flatMap((event) => learnShapes(many({ [event]: 1 }), { event }))
    const text = [...renderSchemas('orders', shapes, hasNumbersAsTexts)].join('')
    expect(text).toMatch(/\nexport const ordersPayload = z\.union\(\[ordersPaid, ordersSent\]\)\n$/)
    const given = [{ paid: 1 }, { sent: 1 }, { paid: '1' }]
    expect(given.map((payload) => toSchema(shapes).safeParse(payload).success)).toEqual([true, true, false])
    const alone = [...renderSchemas('orders', learnShapes(many({ paid: 1 })), hasNumbersAsTexts)].join('')
    expect(alone.match(/export const ordersPayload/g)).toHaveLength(1)
  })

  test('the comment of a text of digits does not call it an integer, and the address of a repository is no email address', () => {
    const payloads = many({
      id: '653247040368672769',
      ssh_url: 'git@github.com:harbour/loom.git',
      mail: 'ada@example.org',
    })
    expect(toTypes('orders', learnShapes(payloads))).toContain(`{
  /** a text of digits */
  id: string
  ssh_url: string
  /** an email address */
  mail: string
}`)
  })

  test('generated types compile for hostile keys', () => {
    const hostile = JSON.parse(
      '{"__proto__": 1, "*/ evil": 1, "a\u2028b": 1, "x\u202ey": 1, "\'": {"`": 1}, "ok-name": {"constructor": 1}, "größe": 1}',
    ) as JsonValue
    const shapes = learnShapes(many(hostile))
    expect(compile({ 'payloads/orders.d.ts': toTypes('orders', shapes) })).toEqual([])
    expect(toSchema(shapes).safeParse(hostile).success).toBe(true)
  })
})

const corpus = process.env['HOOKLOOM_CORPUS'] ?? ''

describe.skipIf(corpus === '')('real payloads (skipped: HOOKLOOM_CORPUS names no folder)', () => {
  type Sample = { readonly event: string; readonly payload: JsonValue }

  function readSamples(source: string): Sample[] {
    const names = readdirSync(join(corpus, source)).filter((name) => name.endsWith('.json'))
    return names.toSorted().flatMap((name) => {
      // as: the form of the corpus
      const read = JSON.parse(readFileSync(join(corpus, source, name), 'utf8')) as {
        headers?: Record<string, string>
        body: JsonValue
      }
      const { headers = {}, body: payload } = read
      if (typeof payload === 'string') return []
      const sender = recogniseSender({ verifiedBy: source, headers })
      const event = sender && readEvent(sender, { headers, body: toJsonBody(payload) })
      return [{ event: event ?? '', payload }]
    })
  }

  type Half = { readonly shapes: readonly NamedShape[]; readonly others: readonly JsonValue[] }

  /** Splits the requests of each event into two halves: types are learnt from each half, and checked with the other. Events with one request are left out. */
  function listHalves(source: string, samples: readonly Sample[]): Half[] {
    return [...new Set(samples.map(({ event }) => event))].flatMap((event) => {
      const same = samples.filter((sample) => sample.event === event).map(({ payload }) => payload)
      const parity = (wanted: number) => same.filter((_, at) => at % 2 === wanted)
      return same.length < 2
        ? []
        : [0, 1].map((taught) => ({ shapes: learnShapes(parity(taught), { source }), others: parity(1 - taught) }))
    })
  }

  test('types and schemas from one half of the requests of each event accept the other half', () => {
    const files: Record<string, string> = {}
    const refusedByZod = new Set<string>()
    let requests = 0
    for (const source of readdirSync(corpus)) {
      for (const { shapes, others } of listHalves(source, readSamples(source))) {
        const schema = toSchema(shapes)
        for (const payload of others) {
          requests += 1
          if (!schema.safeParse(payload).success) refusedByZod.add(source)
          const name = `${source}-${requests}`
          files[`${name}.d.ts`] = toTypes('orders', shapes)
          // the payload is assigned to a variable first: in a literal, the compiler would refuse each field that is not in the type
          files[`${name}.use.ts`] =
            `import type { OrdersPayload } from './${name}.ts'\nconst sent = ${JSON.stringify(payload)}\nexport const read: OrdersPayload = sent\n`
        }
      }
    }
    // the compiler takes two objects with only optional fields and no common field for a typing error, which is left out here
    const errors = compile(files).filter(({ text }) => !text.includes('has no properties in common'))
    const refused = errors.map(({ file }) => file.replace(/^\/virtual\/|-\d+\.use\.ts$/g, ''))
    expect([...refusedByZod]).toEqual([])
    expect([...new Set(refused)]).toEqual([])
    expect(requests).toBeGreaterThan(50)
  })
})
