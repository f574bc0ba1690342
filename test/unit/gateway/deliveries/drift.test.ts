// Changes of payloads that mappings depend on: each planted change is reported once, and payloads that do not change cause no report.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../src/base/json.ts'
import { z } from 'zod'
import { defineTransform } from '../../../../src/define.ts'
import { createDriftWatch } from '../../../../src/gateway/deliveries/shapes/drift.ts'
import type { MappingInput } from '../../../../src/core/model/mapping.ts'
import { type Log, silentLog } from '../../../../src/base/log.ts'
import { toJsonBody } from '../../../../src/core/model/body.ts'
import { readEvent } from '../../../../src/core/mapping/sources.ts'
import {
  createEventShape,
  type EventKey,
  learnPayload,
  nameShapes,
} from '../../../../src/gateway/shapes/event-shape.ts'
import { renderSchemas } from '../../../../src/gateway/shapes/zod.ts'
import { listSchemaPaths } from '../../../../src/core/transforms/worker/schema-paths.ts'
import { toGeneration } from '../../core/mapping/decide.ts'
import { builtInSenders } from '../../../../src/gateway/built-in.ts'

const { recognise: recogniseSender } = builtInSenders

function createStage(
  mappings: readonly MappingInput[],
  canTell = () => true,
  reads: readonly (readonly string[])[] = [],
) {
  const generation = toGeneration(mappings, { transforms: { 'orders.ts': () => null } })
  for (const { transform } of generation.mappings) if (transform) Object.assign(transform, { reads })
  const told: string[] = []
  const causes: string[] = []
  const warn = vi.fn<Log['warn']>()
  const drift = createDriftWatch({
    generation: () => generation,
    alert: async ({ cause, text }) => {
      causes.push(cause)
      if (canTell()) told.push(text)
      return canTell()
    },
    log: { ...silentLog, warn },
  })
  const send = (
    payload: JsonValue,
    { times = 1, event = '', source = '' }: Partial<EventKey> & { times?: number } = {},
  ) => {
    for (let count = 0; count < times; count += 1) drift.look({ hook: 'orders', source, event }, payload, 'd-1')
  }
  /** `causes` has the causes of each attempt to report. */
  return { told, causes, warn, send, drift }
}

function useFakeTime() {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  return (minutes: number) => vi.advanceTimersByTimeAsync(minutes * 60_000)
}

const mapping: MappingInput = {
  id: 'orders',
  match: { path: 'orders' },
  messageTemplate: '{{id}} {{customer.email}} {{lines[0].sku}} {{note | default: "none"}}',
}
const payload: JsonObject = {
  id: 1,
  customer: { email: 'ada@example.org' },
  lines: [{ sku: 'a' }],
  other: 1,
  note: 'x',
}

describe('a field that a template reads', () => {
  const changes: [string, JsonObject, string][] = [
    ['is missing', { ...payload, customer: {} }, '"customer.email" is missing in the last'],
    ['is in an object that is missing', { ...payload, customer: null }, '"customer.email" is missing in the last'],
    ['is missing in an array', { ...payload, lines: [{}] }, '"lines[0].sku" is missing in the last'],
    ['has another kind of value', { ...payload, id: '1' }, '"id" is a string in the last'],
    ['is null', { ...payload, id: null }, '"id" is null in the last'],
  ]

  test.each(changes)('a field that %s is reported to the operator once, without a value', (_, changed, text) => {
    const { told, send } = createStage([mapping])
    send(payload, { times: 25 })
    send(changed, { times: 60 })
    expect(told).toHaveLength(1)
    expect(told[0]).toContain(text)
    expect(told[0]).toContain('messageTemplate of the mapping "orders" reads it')
    expect(told[0]).toContain('hookloom capture d-1')
    expect(told[0]).not.toContain('ada')
  })

  test('a field is not reported if it changes in only two requests, if nothing is known yet, or if the template has a default for it or does not read it', () => {
    const { told, send } = createStage([mapping])
    send(payload, { times: 15 })
    send({ ...payload, id: 'x' }, { times: 2 })
    send({ ...payload, note: null, other: null }, { times: 60 })
    expect(told).toEqual([])
    const fresh = createStage([mapping])
    fresh.send({ ...payload, id: 'x' }, { times: 4 })
    fresh.send(payload, { times: 15 })
    expect(fresh.told).toEqual([])
  })

  test('a field is reported if it is missing and a condition only denies values of it, which it can then deny no more; a field that a condition wants missing is not', () => {
    const match = {
      path: 'orders',
      payload: { 'sender.type': { not: 'Bot' }, login: { not: { matches: '_bot$' } }, bot_id: { exists: false } },
    }
    const { told, send } = createStage([{ id: 'orders', match, messageTemplate: 'x' }])
    send({ sender: { type: 'User' }, login: 'ada' }, { times: 25 })
    send({ sender: {}, bot_id: 'B1' }, { times: 60 })
    expect(told).toHaveLength(1)
    expect(told[0]).toContain('"sender.type" is missing')
    expect(told[0]).toContain('"login" is missing')
    expect(told[0]).not.toContain('bot_id')
  })

  test('a field is not reported if it was often missing before', () => {
    const { told, send } = createStage([mapping])
    for (let count = 0; count < 200; count += 1) send({ ...payload, id: count % 3 === 0 ? null : 1 })
    send({ ...payload, id: null }, { times: 5 })
    expect(told).toEqual([])
  })

  test('a field that changes after a restart is reported, because the shape of the payload is in the store', () => {
    const { told, send, drift } = createStage([mapping])
    const learnt = createEventShape({ hook: 'orders' })
    for (let count = 0; count < 50; count += 1) learnPayload(learnt, payload, 1)
    drift.begin([learnt])
    send({ ...payload, customer: {} }, { times: 10 })
    expect(told).toHaveLength(1)
  })

  test('a field is reported again after five minutes if the message could not be queued, with one line in the log', async () => {
    const pass = useFakeTime()
    let isUp = false
    const { told, causes, warn, send } = createStage([mapping], () => isUp)
    send(payload, { times: 25 })
    for (let minute = 0; minute < 12; minute += 1) {
      send({ ...payload, id: '1' }, { times: 10 })
      await pass(1)
    }
    expect(causes).toHaveLength(3)
    expect(warn).toHaveBeenCalledTimes(1)
    isUp = true
    send({ ...payload, id: '1' })
    expect(told).toEqual([])
    await pass(5)
    send({ ...payload, id: '1' })
    expect(told).toHaveLength(1)
    expect(warn).toHaveBeenCalledTimes(1)
  })

  test('the fields of one event are reported in one message, five of them by name', () => {
    const fields = ['one', 'two', 'three', 'four', 'five', 'six', 'seven']
    const messageTemplate = fields.map((field) => `{{${field}}}`).join(' ')
    const { told, causes, send } = createStage([{ ...mapping, messageTemplate }])
    send(Object.fromEntries(fields.map((field) => [field, 1])), { times: 25, event: 'order.paid' })
    send({ two: 'x' }, { times: 60, event: 'order.paid' })
    expect(causes).toEqual(['drift ["orders","","order.paid"]'])
    expect(told[0]).toContain('"one" is missing in the last')
    expect(told[0]).toContain(
      ' Also, "two" is a string, "three" is missing, "four" is missing, "five" is missing, and 2 more changed.',
    )
    expect(told[0]?.length).toBeLessThan(1_000)
  })

  test('the report of a field waits for an hour if another field of its event was reported', async () => {
    const pass = useFakeTime()
    const { told, send } = createStage([mapping])
    send(payload, { times: 25 })
    send({ ...payload, id: '1' }, { times: 10 })
    await pass(59)
    send({ ...payload, id: '1', customer: {} }, { times: 10 })
    expect(told).toHaveLength(1)
    await pass(1)
    send({ ...payload, id: '1', customer: {} })
    expect(told).toEqual([
      expect.stringContaining('"id" is a string'),
      expect.stringContaining('"customer.email" is missing'),
    ])
  })
})

test('changes that cannot be reported now are reported later, and the log has each change once', async () => {
  const pass = useFakeTime()
  let canTell = true
  const { told, causes, warn, send } = createStage([mapping], () => canTell)
  const events = [...'abcdefgh'].map((letter) => `order.${letter}`)
  for (const event of events) send(payload, { times: 60, event })
  told.length = 0
  await pass(60)
  causes.length = 0
  warn.mockClear()
  canTell = false
  for (let minute = 0; minute < 55; minute += 1) {
    for (const event of events) send({ ...payload, id: '1' }, { times: 4, event })
    await pass(1)
  }
  expect(new Set(causes).size).toBe(8)
  expect(told).toEqual([])
  expect(warn).toHaveBeenCalledTimes(8)
  canTell = true
  await pass(10)
  for (const event of events) send({ ...payload, id: '1' }, { times: 4, event })
  await pass(0)
  expect(told).toHaveLength(8)
})

describe('the limits on names from requests', () => {
  const letters = [...'abcdefghijklmnopqrstuvwxyz']
  const words = letters.flatMap((one) => letters.map((other) => one + other))

  test('new events of a hook are no longer reported beyond 200 events', () => {
    const { told, send } = createStage([mapping])
    for (const word of words.slice(0, 200)) send(payload, { times: 15, event: `order.${word}` })
    told.length = 0
    send(payload, { times: 3, event: 'order.lost' })
    expect(told).toEqual([])
  })

  test('a field is not reported if 5,000 fields of other events were seen before its event', () => {
    const fields = words.slice(0, 100).map((word) => `f_${word}`)
    const messageTemplate = fields.map((field) => `{{${field}}}`).join(' ')
    const { told, send } = createStage([{ ...mapping, messageTemplate }])
    const sent = Object.fromEntries(fields.map((field) => [field, 1]))
    for (const source of words.slice(0, 50)) send(sent, { times: source === 'aa' ? 25 : 1, source })
    send(sent, { times: 25, source: 'late' })
    send({}, { times: 10, source: 'late' })
    expect(told).toEqual([])
    send({}, { times: 10, source: 'aa' })
    expect(told).toHaveLength(1)
  })
})

describe('a field that the schema of a transform names', () => {
  const schema = z.object({
    id: z.number(),
    customer: z.looseObject({ email: z.string().optional() }),
    note: z.string().default('none'),
    lines: z.array(z.object({ sku: z.string() })),
  })
  const transform = { id: 'orders', match: { path: 'orders' }, transform: { module: 'orders.ts' } }
  const createSchemaStage = () =>
    createStage([transform], () => true, listSchemaPaths(defineTransform({ payload: schema, run: () => null })))

  test('a field that the schema of a transform names is reported once if it is missing or has another kind of value', () => {
    for (const [changed, text] of [
      [{ ...payload, customer: {} }, '"customer.email" is missing in the last'],
      [{ ...payload, customer: null }, '"customer.email" is missing in the last'],
      [{ ...payload, lines: 'x' }, '"lines" is a string in the last'],
    ] as const) {
      const { told, send } = createSchemaStage()
      send(payload, { times: 25 })
      send(changed, { times: 60 })
      expect(told).toEqual([expect.stringContaining(text)])
      expect(told[0]).toContain('the schema in the transform of the mapping "orders" reads it')
    }
  })

  test('a field that a transform reads is not reported if the schema has a default for it or does not name it', () => {
    const { told, send } = createSchemaStage()
    send(payload, { times: 25 })
    const { note: _, other: __, ...changed } = payload
    send(changed, { times: 60 })
    expect(told).toEqual([])
  })
})

describe('an event', () => {
  test('an event that never came before is reported once, with its name', () => {
    const { told, send } = createStage([mapping])
    for (const event of ['order.paid', 'order.sent']) send(payload, { times: 15, event })
    send(payload, { times: 3, event: 'order.lost' })
    expect(told).toEqual([expect.stringContaining('the hook "orders" got the event "order.lost" for the first time')])
  })

  test('an event is not reported if a mapping names it, or if nearly every request has a new event', () => {
    const named = createStage([mapping, { ...mapping, id: 'lost', match: { path: 'orders', event: 'order.lost' } }])
    named.send(payload, { times: 30, event: 'order.paid' })
    named.send(payload, { event: 'order.lost' })
    expect(named.told).toEqual([])
    const varied = createStage([mapping])
    for (const letter of 'abcdefghijklmnopqrstuvwxyz') varied.send(payload, { event: `order.${letter}` })
    expect(varied.told).toEqual([])
  })
})

const corpus = process.env['HOOKLOOM_CORPUS'] ?? ''

describe.skipIf(corpus === '')('real payloads (skipped: HOOKLOOM_CORPUS names no folder)', () => {
  type Request = { readonly key: EventKey; readonly payload: JsonObject }

  function readRequestsOf(source: string): Request[] {
    const files = readdirSync(join(corpus, source)).filter((name) => name.endsWith('.json'))
    return files.toSorted().flatMap((name) => {
      // as: the form of the corpus
      const read = JSON.parse(readFileSync(join(corpus, source, name), 'utf8')) as {
        headers?: Record<string, string>
        body: JsonValue
      }
      if (!isJsonObject(read.body)) return []
      const headers = read.headers ?? {}
      const sender = recogniseSender({ verifiedBy: source, headers })
      const event = sender && readEvent(sender, { headers, body: toJsonBody(read.body) })
      return [{ key: createEventShape({ hook: source, source, event: event ?? '' }), payload: read.body }]
    })
  }

  /** The paths of the plain values of one request, and those of the fields one level below. */
  function listPaths({ payload: sent }: Request): string[] {
    return Object.entries(sent).flatMap(([key, value]) => {
      if (!/^\w+$/.test(key) || ['event', 'path', 'source', 'now', 'body', 'query', 'headers', 'payload'].includes(key))
        return []
      if (!isJsonObject(value)) return Array.isArray(value) ? [] : [key]
      return Object.keys(value).flatMap((inner) => (/^\w+$/.test(inner) ? `payload.${key}.${inner}` : []))
    })
  }

  /** Numbers that are the same in each run. */
  function createRandom(seed: number): () => number {
    let state = seed
    return () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
      return state / 2 ** 32
    }
  }

  const sources = corpus === '' ? [] : readdirSync(corpus).filter((source) => readRequestsOf(source).length > 0)

  function createCorpusStage(source: string) {
    const requests = readRequestsOf(source)
    const paths = [...new Set(requests.flatMap(listPaths))].slice(0, 40)
    const messageTemplate = paths.length === 0 ? 'x' : paths.map((path) => `{{${path}}}`).join(' ')
    const generation = toGeneration([{ id: source, match: { path: source }, messageTemplate }])
    const told: string[] = []
    const alert = async ({ text }: { text: string }) => told.push(text) > 0
    return { requests, told, paths, drift: createDriftWatch({ generation: () => generation, alert, log: silentLog }) }
  }

  /** The schema that `hookloom types --zod` writes for the first event. */
  function createSchemaStage(source: string) {
    const requests = readRequestsOf(source)
    const learnt = createEventShape({ hook: source })
    for (const request of requests) learnPayload(learnt, request.payload, 1)
    const text = [...renderSchemas(source, nameShapes([learnt]), () => false)]
      .join('')
      .replace(/^import .*$/m, '')
      .replace(/^export const \w+ =/m, 'return')
    // as: the text is one schema
    const schema = new Function('z', text)(z) as z.ZodType
    const reads = listSchemaPaths(defineTransform({ payload: schema, run: () => null }))
    const paths = reads.map((path) => path.join('.'))
    const generation = toGeneration([{ id: source, match: { path: source }, transform: { module: 'x.ts' } }], {
      transforms: { 'x.ts': () => null },
    })
    for (const { transform } of generation.mappings) if (transform) Object.assign(transform, { reads })
    const told: string[] = []
    const alert = async ({ text: sentence }: { text: string }) => told.push(sentence) > 0
    return { requests, told, paths, drift: createDriftWatch({ generation: () => generation, alert, log: silentLog }) }
  }

  const stages = [
    ['templates', createCorpusStage],
    ['schemas', createSchemaStage],
  ] as const

  test.each(stages)('ten thousand requests that do not change cause no alert about %s', (_, create) => {
    const random = createRandom(7)
    const each = Math.ceil(10_000 / sources.length)
    const told = sources.flatMap((source) => {
      const stage = create(source)
      for (let count = 0; count < each; count += 1) {
        const request = stage.requests[Math.floor(random() * stage.requests.length)]
        if (request !== undefined) stage.drift.look(request.key, request.payload, 'd')
      }
      return stage.told
    })
    expect(told).toEqual([])
  })

  test.each(stages)('each of twenty planted changes of fields that %s read is reported', (_, create) => {
    const random = createRandom(11)
    const plants = sources.filter((source) => createCorpusStage(source).paths.length > 0).slice(0, 20)
    const missed = plants.filter((source, at) => {
      const { requests, told, drift } = create(source)
      const [first] = requests
      if (first === undefined) return true
      const pick = () => requests[Math.floor(random() * requests.length)] ?? first
      for (let count = 0; count < 1_000; count += 1) {
        const request = pick()
        drift.look(request.key, request.payload, 'd')
      }
      told.length = 0
      const [field = ''] = Object.keys(first.payload).filter((key) =>
        listPaths(first).some((path) => path === key || path.startsWith(`payload.${key}.`)),
      )
      const { [field]: value, ...others } = first.payload
      const planted = [
        () => drift.look(first.key, others, 'd'),
        () => drift.look(first.key, { ...first.payload, [field]: typeof value === 'number' ? 'x' : 1 }, 'd'),
        () => drift.look({ ...first.key, event: 'some.new.event' }, first.payload, 'd'),
      ]
      for (let count = 0; count < 30; count += 1) planted[at % planted.length]?.()
      return told.length === 0
    })
    expect(plants).toHaveLength(20)
    expect(missed).toEqual([])
  })
})
