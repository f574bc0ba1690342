// The log of a healthy gateway: one line for each delivery, run and reply, and one a minute for each kind of refusal.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Log, withLevel } from '../../src/base/log.ts'
import { createRefusalLog } from '../../src/gateway/http/refusals.ts'
import { hookToken } from './gateway.ts'
import { startInside } from './inside.ts'

type Line = { readonly level: keyof Log; readonly fields: object; readonly message: string }

/** A log, its lines, and a way to wait for the first line that matches a pattern. */
function createRecorder() {
  const lines: Line[] = []
  const waiting = new Set<() => void>()
  const record = (level: keyof Log) => (fields: object, message: string) => {
    lines.push({ level, fields, message })
    for (const look of waiting) look()
  }
  const log: Log = { debug: record('debug'), info: record('info'), warn: record('warn'), error: record('error') }
  const find = (pattern: RegExp) => lines.find(({ message }) => pattern.test(message))
  const waitForLine = (pattern: RegExp) =>
    new Promise<Line>((resolve) => {
      const look = () => {
        const found = find(pattern)
        if (found === undefined) return
        waiting.delete(look)
        resolve(found)
      }
      waiting.add(look)
      look()
    })
  return { log, lines, find, waitForLine }
}

const mappings = [
  {
    id: 'pulls',
    match: { path: 'github', event: 'pull_request' },
    messageTemplate: '{{title}}',
    sessionKey: 'hook:pr:{{number}}',
    channel: 'webhook',
    to: 'team-room',
  },
  { id: 'other', match: { path: 'github', event: 'never' } },
]
const config = {
  hooks: { mappings },
  channels: {
    webhook: { endpoints: { 'team-room': { url: 'http://127.0.0.1:9/', secret: 'a secret of the channel' } } },
  },
}

async function post(url: string, event: string, token = hookToken) {
  const reply = await fetch(`${url}/github`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'x-github-event': event },
    body: JSON.stringify({ number: 7, title: 'a title of the payload' }),
  })
  return { status: reply.status, text: await reply.text() }
}

describe('log of a working gateway', () => {
  test('a delivery and its run are logged in one line each, without payload, token and recipient', async () => {
    const { log, lines, waitForLine } = createRecorder()
    const { url } = await startInside({ config, log })
    const { text } = await post(url, 'pull_request')
    const { deliveryId, runId } = JSON.parse(text)
    const delivery = await waitForLine(/^POST /)
    expect(delivery.level).toBe('info')
    expect(delivery.message).toMatch(new RegExp(`^POST github pull_request → agent  \\d+ ms  ${deliveryId}$`))
    expect(delivery.fields).toEqual({
      deliveryId,
      delivery: {
        method: 'POST',
        hook: 'github',
        source: 'github',
        event: 'pull_request',
        state: 'accepted',
        mappingId: 'pulls',
        actions: ['agent'],
        tookMs: expect.any(Number),
      },
    })
    const run = await waitForLine(/^run /)
    expect(run.message).toMatch(new RegExp(`^run main → done  \\d+ ms  ${runId}$`))
    expect(run.fields).toMatchObject({
      jobId: runId,
      deliveryId,
      job: { kind: 'agent', step: 'run', state: 'done', agentId: 'main' },
    })
    expect(lines.filter(({ message }) => message.includes('→ agent'))).toHaveLength(1)
    const written = JSON.stringify(lines)
    for (const secret of ['a title of the payload', 'hook:pr', hookToken, 'team-room'])
      expect(written).not.toContain(secret)
  })

  test('a skipped delivery and a sent reply are each logged', async () => {
    const { log, waitForLine } = createRecorder()
    const { url } = await startInside({ config, log })
    expect((await post(url, 'ping')).status).toBe(204)
    expect((await waitForLine(/^POST /)).message).toMatch(/^POST github ping → skipped {2}\d+ ms {2}\S+$/)
    await fetch(`${url}/agent`, {
      method: 'POST',
      headers: { authorization: `Bearer ${hookToken}`, 'content-type': 'application/json' },
      body: JSON.stringify({ message: 'x', channel: 'console' }),
    })
    expect((await waitForLine(/^deliver /)).message).toMatch(/^deliver main → done {2}\d+ ms {2}\S+$/)
  })

  test('a line below the level of server.log is not logged', async () => {
    const { log, lines } = createRecorder()
    const { url } = await startInside({ config: { ...config, server: { log: 'warn' } }, log })
    expect((await post(url, 'pull_request')).status).toBe(200)
    expect(lines.filter(({ level }) => level === 'info' || level === 'debug')).toEqual([])
  })
})

test('a log level passes its own lines and more severe ones, and a new level applies to the next line', () => {
  const { log, lines } = createRecorder()
  let level: keyof Log = 'error'
  const leveled = withLevel(log, () => level)
  const all = () => {
    for (const name of ['debug', 'info', 'warn', 'error'] as const) leveled[name]({}, name)
    return lines.splice(0).map(({ message }) => message)
  }
  expect(all()).toEqual(['error'])
  level = 'info'
  expect(all()).toEqual(['info', 'warn', 'error'])
  level = 'debug'
  expect(all()).toEqual(['debug', 'info', 'warn', 'error'])
})

describe('log of refusals', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  test('refusals of one kind are logged in one line a minute', () => {
    const { log, lines } = createRecorder()
    const refusals = createRefusalLog(log)
    for (let n = 0; n < 1_000; n++) refusals.count({ code: 'unauthorized', credential: 'none' })
    refusals.count({ code: 'hook-unknown', credential: 'none' })
    expect(lines).toEqual([])
    vi.advanceTimersByTime(60_000)
    expect(lines.map(({ level, fields }) => ({ level, fields }))).toEqual([
      { level: 'info', fields: { code: 'unauthorized', refusals: 1_000 } },
      { level: 'info', fields: { code: 'hook-unknown', refusals: 1 } },
    ])
    expect(lines[0]?.message).toBe(
      '1000 requests were refused within a minute: unauthorized. "hookloom list --refused" shows the reasons.',
    )
    vi.advanceTimersByTime(600_000)
    expect(lines).toHaveLength(2)
    refusals.count({ code: 'unauthorized', credential: 'none' })
    vi.advanceTimersByTime(60_000)
    expect(lines).toHaveLength(3)
  })

  test('the log line counts refused requests with the token header of OpenClaw, and names the header to send', () => {
    const { log, lines } = createRecorder()
    const refusals = createRefusalLog(log)
    refusals.count({ code: 'unauthorized', credential: 'none' })
    refusals.count({ code: 'unauthorized', credential: 'openclaw-header' })
    refusals.count({ code: 'hook-unknown', credential: 'openclaw-header' })
    refusals.stop()
    expect(lines[0]?.message).toContain(
      ': unauthorized. 1 of them had only the header x-openclaw-token, which is not read: let the sender use',
    )
    expect(lines[1]?.message).not.toContain('openclaw')
  })

  test('the refusals of the last minute are logged when the gateway stops', () => {
    const { log, lines } = createRecorder()
    const refusals = createRefusalLog(log)
    refusals.count({ code: 'rate-limited', credential: 'none' })
    refusals.stop()
    expect(lines.map(({ message }) => message)).toEqual([
      '1 request was refused within a minute: rate-limited. "hookloom list --refused" shows the reasons.',
    ])
    vi.advanceTimersByTime(60_000)
    expect(lines).toHaveLength(1)
  })
})
