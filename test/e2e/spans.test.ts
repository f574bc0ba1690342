// The spans that OpenTelemetry's SDK receives from a gateway, from the request to the reply.
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { trace } from '@opentelemetry/api'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { runProcess } from './command.ts'
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

async function finished(count: number) {
  await vi.waitFor(() => expect(exporter.getFinishedSpans()).toHaveLength(count), { timeout: 10_000 })
  return exporter.getFinishedSpans()
}

test('a request, its turn, its summary and its reply are one trace, whose id is the id of the delivery', async () => {
  const answer = await post({ url: gateway.url, token: hookToken }, 'agent', {
    message: secretText,
    wakeMode: 'next-heartbeat',
  })
  const spans = await finished(4)
  expect(spans.map(({ name }) => name)).toEqual(['hook', 'step run', 'step summary', 'step deliver'])
  const traceId = String(answer['deliveryId']).replaceAll('-', '')
  expect(new Set(spans.map((span) => span.spanContext().traceId))).toEqual(new Set([traceId]))
  expect(spans[0]?.attributes).toMatchObject({ 'hookloom.hook': 'agent', 'http.response.status_code': 200 })
  expect(spans[1]?.attributes).toMatchObject({ 'hookloom.job': answer['runId'], 'hookloom.outcome': 'done' })
  expect(
    JSON.stringify(spans.map(({ attributes, name, events, status }) => [attributes, name, events, status])),
  ).not.toContain(secretText)
})

test('the trace of a sender is linked, and an invalid header is not', async () => {
  const [traceId, spanId] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7']
  const wake = { text: 'x', mode: 'next-heartbeat' }
  const send = (traceparent: string) => post({ url: gateway.url, token: hookToken }, 'wake', wake, { traceparent })
  await send(`00-${traceId}-${spanId}-01`)
  await send(`00-${traceId}-${spanId}-01; DROP`)
  const [linked, other] = await finished(2)
  expect(linked?.links.map((link) => link.context)).toMatchObject([{ traceId, spanId, traceFlags: 1 }])
  expect(other?.links).toEqual([])
})

test('an SDK that a host registers after it started the built gateway gets the spans too', async () => {
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
    await fetch(gateway.url + '/wake', { method: 'POST', headers, body: '{"text":"x","mode":"next-heartbeat"}' })
    await gateway.stop()
    console.log(started.join())
    process.exit()
  `
  const ran = await runProcess(process.execPath, ['--input-type=module', '-e', host], { env: toChildEnv() })
  expect(ran).toMatchObject({ code: 0, stdout: 'hook\n' })
})
