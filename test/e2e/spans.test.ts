// The spans that OpenTelemetry's SDK receives from a gateway, from the request to the reply.
import { AsyncLocalStorage } from 'node:async_hooks'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import {
  type Context,
  context,
  type ContextManager,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { runProcess } from './command.ts'
import { chatCompletions } from './fakes/chat-completions.ts'
import { apiKey, refuseWith, startFakeProvider } from './fakes/provider.ts'
import { hookToken, makeConfigDir, post, toChildEnv } from './gateway.ts'
import { type Inside, startInside } from './inside.ts'

const exporter = new InMemorySpanExporter()
const secretText = 'quarterly figures'
let gateway: Inside

beforeAll(async () => {
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }))
  gateway = await startInside({ config: { channels: { default: { channel: 'console', to: 'me' } } } })
})

beforeEach(() => exporter.reset())

afterAll(() => trace.disable())

async function waitForSpans(count: number) {
  await vi.waitFor(() => expect(exporter.getFinishedSpans()).toHaveLength(count), { timeout: 60_000 })
  return exporter.getFinishedSpans()
}

test('a request, its turn, its summary and its reply are one trace, whose id is the id of the delivery', async () => {
  const answer = await post({ url: gateway.url, token: hookToken }, 'agent', {
    message: secretText,
    wakeMode: 'next-heartbeat',
  })
  const spans = await waitForSpans(4)
  // the span of the request may end after the first step
  const byName = new Map(spans.map((span) => [span.name, span]))
  expect([...byName.keys()].toSorted()).toEqual(['hook', 'step deliver', 'step run', 'step summary'])
  const traceId = String(answer['deliveryId']).replaceAll('-', '')
  expect(new Set(spans.map((span) => span.spanContext().traceId))).toEqual(new Set([traceId]))
  expect(byName.get('hook')?.kind).toBe(SpanKind.SERVER)
  expect(byName.get('hook')?.attributes).toMatchObject({
    'http.request.method': 'POST',
    'hookloom.hook': 'agent',
    'hookloom.outcome': 'accepted',
    'http.response.status_code': 200,
  })
  expect(byName.get('step run')?.attributes).toMatchObject({
    'hookloom.job': answer['runId'],
    'hookloom.outcome': 'done',
  })
  expect(
    JSON.stringify(spans.map(({ attributes, name, events, status }) => [attributes, name, events, status])),
  ).not.toContain(secretText)
})

test('a refused request has a span with its problem, and its trace is the request id', async () => {
  const answer = await fetch(`${gateway.url}/agent`, { method: 'POST', body: secretText })
  expect(answer.status).toBe(401)
  const [span] = await waitForSpans(1)
  expect(span?.spanContext().traceId).toBe(answer.headers.get('x-request-id')?.replaceAll('-', ''))
  expect(span?.attributes).toMatchObject({
    'http.request.method': 'POST',
    'http.response.status_code': 401,
    'hookloom.hook': 'agent',
    'hookloom.outcome': 'refused',
    'hookloom.problem': 'unauthorized',
  })
  expect(JSON.stringify([span?.attributes, span?.events])).not.toContain(secretText)
})

test('a call to a model is a span inside its step, with its tokens, but without its text and without a model that a request named', async () => {
  const stack = new AsyncLocalStorage<Context>()
  const manager: ContextManager = {
    active: () => stack.getStore() ?? ROOT_CONTEXT,
    with: (inner, work, self, ...args) => stack.run(inner, () => work.call(self, ...args)),
    bind: (_, target) => target,
    enable: () => manager,
    disable: () => manager,
  }
  context.setGlobalContextManager(manager)
  onTestFinished(() => context.disable())
  const fake = await startFakeProvider(chatCompletions)
  onTestFinished(() => fake.close())
  const provider = { kind: chatCompletions.kind, baseUrl: fake.baseUrl, apiKey }
  const { url } = await startInside({
    config: { models: { providers: { mine: provider } }, agents: { defaults: { model: 'mine/small' } } },
  })
  const ask = (fields: object) =>
    post({ url, token: hookToken }, 'agent', {
      message: secretText,
      deliver: false,
      wakeMode: 'next-heartbeat',
      ...fields,
    })
  const answer = await ask({})
  const spans = await waitForSpans(4)
  const [call, step] = ['model call', 'step run'].map((name) => spans.find((span) => span.name === name))
  expect(call?.kind).toBe(SpanKind.CLIENT)
  expect(call?.parentSpanContext?.spanId).toBe(step?.spanContext().spanId)
  expect(call?.spanContext().traceId).toBe(String(answer['deliveryId']).replaceAll('-', ''))
  expect(call?.attributes).toMatchObject({
    'gen_ai.request.model': 'mine/small',
    'gen_ai.usage.input_tokens': 11,
    'gen_ai.usage.output_tokens': 7,
    'gen_ai.usage.cache_read.input_tokens': 4,
    'hookloom.job': answer['runId'],
    'hookloom.outcome': 'ok',
  })
  exporter.reset()
  fake.answer = refuseWith(400)
  await ask({ model: 'mine/named-by-a-request' })
  await vi.waitFor(() => expect(exporter.getFinishedSpans().map(({ name }) => name)).toContain('step run'), {
    timeout: 60_000,
  })
  const failed = exporter.getFinishedSpans().find(({ name }) => name === 'model call')
  expect(failed?.status.code).toBe(SpanStatusCode.ERROR)
  expect(failed?.attributes).toMatchObject({ 'hookloom.outcome': 'error' })
  const shown = [call, failed].map((span) => JSON.stringify([span?.attributes, span?.events, span?.status]))
  for (const secret of [secretText, 'named-by-a-request', 'Hello', apiKey]) expect(shown.join()).not.toContain(secret)
})

test('a valid trace header of a sender becomes a link of the span, and an invalid header does not', async () => {
  const [traceId, spanId] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7']
  const wake = { text: 'x', mode: 'next-heartbeat' }
  const send = (traceparent: string) => post({ url: gateway.url, token: hookToken }, 'wake', wake, { traceparent })
  await send(`00-${traceId}-${spanId}-01`)
  await send(`00-${traceId}-${spanId}-01; DROP`)
  const [linked, other] = await waitForSpans(2)
  expect(linked?.links.map((link) => link.context)).toMatchObject([{ traceId, spanId, traceFlags: 1 }])
  expect(other?.links).toEqual([])
})

test('an SDK that a host registers after the start of the built gateway gets the spans too', async () => {
  const root = resolve(import.meta.dirname, '../..')
  const dir = makeConfigDir()
  const host = `
    import { createHookloom } from ${JSON.stringify(pathToFileURL(join(root, 'dist/index.js')).href)}
    import { trace } from ${JSON.stringify(pathToFileURL(join(root, 'node_modules/@opentelemetry/api/build/src/index.js')).href)}
    const gateway = await createHookloom({ dir: ${JSON.stringify(dir)}, env: {}, write: () => {} })
    const started = []
    const none = trace.wrapSpanContext({ traceId: '0'.repeat(32), spanId: '0'.repeat(16), traceFlags: 0 })
    const startSpan = (name) => { started.push(name); return none }
    trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan }) })
    const headers = { authorization: 'Bearer ${hookToken}', 'content-type': 'application/json' }
    const wake = { method: 'POST', headers, body: '{"text":"x","mode":"next-heartbeat"}' }
    const { status } = await fetch(gateway.url + '/wake', wake)
    await gateway.stop()
    console.log(status, started.join())
    process.exit()
  `
  const ran = await runProcess(process.execPath, ['--input-type=module', '-e', host], { env: toChildEnv() })
  expect(ran).toMatchObject({ code: 0, stdout: '200 hook\n' })
})
