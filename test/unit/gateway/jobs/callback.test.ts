// The callback of a run: it is posted once the run has ended, whatever its end, and tried again until it arrives.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { webhookChannel } from '../../../../src/plugins/channels/webhook.ts'
import { openChannel, sectionOf } from '../../plugins/channels/stage.ts'
import type { RunResult } from '../../../../src/model/runner.ts'
import { Webhook } from 'standardwebhooks'
import { planAgent, createStage, ok, pass, scriptChannel, scriptRunner } from './stage.ts'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const url = 'https://ci.example/callbacks'

beforeEach(() => {
  vi.useFakeTimers({ now: Date.parse('2026-11-23T12:00:00Z') })
})
afterEach(() => {
  vi.useRealTimers()
})

type Posted = { readonly type: string; readonly timestamp: string; readonly data: Record<string, unknown> }

/** A stage with a receiver that answers with these statuses in order, and then with 204. 0: the connection is lost. */
function open(statuses: number[] = [], answer?: () => RunResult | undefined) {
  const stage = createStage()
  const posted: { id: string; body: Posted; hops: string | null }[] = []
  const urls: string[] = []
  const request: typeof fetch = async (target, init) => {
    urls.push(String(target))
    const headers = new Headers(init?.headers)
    // as: the channel sends a text
    const text = init?.body as string
    new Webhook(secret).verify(text, Object.fromEntries(headers))
    posted.push({
      id: headers.get('webhook-id') ?? '',
      body: JSON.parse(text) as Posted,
      hops: headers.get('hookloom-hops'),
    })
    const status = statuses.shift() ?? 204
    if (status === 0) throw new TypeError('fetch failed')
    return new Response(null, { status })
  }
  const section = sectionOf(webhookChannel).parse({
    endpoints: { ci: { url, secret }, other: { url: 'https://x.example', secret } },
  })
  const channels = new Map([
    ['webhook', openChannel(webhookChannel, section, { fetch: request, clock: () => Date.now() })],
  ])
  const { runner, turns } = scriptRunner(answer)
  stage.openWorker({ runner, channels })
  const accept = async (over: Parameters<typeof planAgent>[0] = {}) => {
    const [runId = '', callbackId = ''] = await stage.accept(
      planAgent({ callback: 'ci', ...over, action: { deliver: false, ...over.action } }),
    )
    return { runId, callbackId }
  }
  return { ...stage, posted, urls, turns, accept }
}

const dead: RunResult = { status: 'error', retryable: false, detail: 'The model refuses: "secret words".' }

describe('the callback of a run', () => {
  test('if a dead run is queued again, another callback is sent when it ends', async () => {
    const { accept, posted, turns, store, lookForJobs } = open()
    const { runId } = await accept()
    turns[0]?.end(dead)
    await pass(60_000)
    expect(posted.map(({ id }) => id)).toEqual([`msg_${runId}_run_dead`])
    expect(await store.requeue(runId)).toBe(true)
    lookForJobs()
    await pass(60_000)
    expect(posted).toHaveLength(1)
    turns[1]?.end(ok('Good.'))
    await pass(60_000)
    expect(posted.map(({ id, body }) => [id, body.type])).toEqual([
      [`msg_${runId}_run_dead`, 'run.dead'],
      [`msg_${runId}_run_done`, 'run.done'],
    ])
  })

  test('a callback that could not be posted before its run was queued again is replaced by the callback of the new end', async () => {
    const { accept, posted, turns, store, lookForJobs } = open([503, 503, 503, 503, 503, 503])
    const { runId } = await accept()
    turns[0]?.end(dead)
    await pass(20_000)
    const before = posted.length
    expect(before).toBeGreaterThan(0)
    await store.requeue(runId)
    lookForJobs()
    await pass(1_000)
    turns[1]?.end(ok('Good.'))
    await pass(600_000)
    expect(new Set(posted.slice(before).map(({ body }) => body.type))).toEqual(new Set(['run.done']))
  })

  test('the callback is posted once after the end, signed, to the configured endpoint', async () => {
    const { accept, posted, urls, turns, readJob } = open()
    const { runId, callbackId } = await accept({ verdicts: ['pass', 'fail'] })
    await pass(300_000)
    expect(posted).toEqual([])
    turns[0]?.end({ status: 'ok', text: 'Fine.\npass' })
    await pass(3_000)
    expect(urls).toEqual([url])
    expect(posted).toEqual([
      {
        id: `msg_${runId}_run_done`,
        hops: '1',
        body: {
          type: 'run.done',
          timestamp: expect.stringMatching(/^2026-11-23T12:05:0\dZ?/),
          data: {
            runId,
            deliveryId: 'delivery-1',
            state: 'done',
            verdicts: ['pass', 'fail'],
            verdict: 'pass',
            verdictForm: 'last-line',
          },
        },
      },
    ])
    expect(await readJob(callbackId)).toMatchObject({ state: 'done', deliveryId: undefined })
    expect((await readJob(callbackId)).steps.map(({ name, state }) => `${name} ${state}`)).toEqual([
      'ended done',
      'callback done',
    ])
    await pass(3_600_000)
    expect(posted).toHaveLength(1)
  })

  test('the callback has the reply only if the mapping allows that', async () => {
    const { accept, posted } = open([], () => ok('It boils.'))
    await accept()
    await accept({ result: 'text' })
    await pass(5_000)
    expect(posted.map(({ body }) => body.data['reply'])).toEqual([undefined, 'It boils.'])
  })

  test('the callback says that a run is dead, without the error of its provider', async () => {
    const { accept, posted } = open([], () => dead)
    const { runId } = await accept({ verdicts: ['pass', 'fail'] })
    await pass(5_000)
    expect(posted).toMatchObject([
      { id: `msg_${runId}_run_dead`, body: { type: 'run.dead', data: { state: 'dead', verdict: null } } },
    ])
    expect(JSON.stringify(posted)).not.toContain('secret words')
  })

  test.each(['cancelled', 'superseded', 'expired', 'dropped', 'skipped'] as const)(
    'the callback is also sent for a run that was %s before it began',
    async (state) => {
      const { accept, posted, store } = open()
      await store.hold({ label: 'all', kind: 'pause', reason: 'A test.', author: undefined, forMs: undefined })
      const { runId } = await accept()
      await store.endJob(runId, { state, reason: 'A test.' })
      await pass(120_000)
      const shown = state === 'dropped' || state === 'skipped' ? 'cancelled' : state
      expect(posted).toMatchObject([
        { id: `msg_${runId}_run_dead`, body: { type: 'run.dead', data: { state: shown } } },
      ])
    },
  )

  test('the callback is repeated under the same id while its receiver is down, and the run stays done', async () => {
    const { accept, posted, readJob } = open([503, 0, 500, 429], () => ok('Done.'))
    const { runId, callbackId } = await accept()
    await pass(3_600_000)
    expect(posted).toHaveLength(5)
    expect(new Set(posted.map(({ id }) => id))).toEqual(new Set([`msg_${runId}_run_done`]))
    expect([(await readJob(runId)).state, (await readJob(callbackId)).state]).toEqual(['done', 'done'])
  })

  test(
    'the callback is given up at once if the receiver refuses it, and after a day if the receiver stays down',
    { timeout: 120_000 },
    async () => {
      const refused = open([410], () => ok('Done.'))
      const first = await refused.accept()
      await pass(5_000)
      expect(await refused.readJob(first.callbackId)).toMatchObject({
        state: 'dead',
        lastError: expect.stringContaining('410'),
      })
      expect((await refused.readJob(first.runId)).state).toBe('done')
      const away = open(
        Array.from({ length: 10_000 }, () => 503),
        () => ok('Done.'),
      )
      const second = await away.accept()
      await pass(26 * 3_600_000)
      expect((await away.readJob(second.callbackId)).state).toBe('dead')
    },
  )

  test('the reason of a refused callback is in its record and not in the log', async () => {
    const lines: string[] = []
    const write = (_: object, message: string) => void lines.push(message)
    const stage = createStage()
    const postEvent = async () => ({ kind: 'permanent' as const, detail: 'It said: SECRET ANSWER' })
    stage.openWorker({
      runner: scriptRunner(() => ok('Done.')).runner,
      channels: new Map([['webhook', { ...scriptChannel().channel, postEvent }]]),
      log: { debug: write, info: write, warn: write, error: write },
    })
    const [, callback] = await stage.accept(planAgent({ callback: 'ci', action: { deliver: false } }))
    await pass(5_000)
    expect((await stage.readJob(callback)).lastError).toContain('SECRET ANSWER')
    expect(lines).toContainEqual(expect.stringContaining(`"hookloom show ${callback}" shows why.`))
    expect(lines.join()).not.toContain('SECRET ANSWER')
  })

  test('the time limit of a callback counts from the first failed post, however long the run took', async () => {
    // the receiver is down for more than an hour, so that the callback ends more than a day after its run began
    const { accept, posted, turns, readJob } = open(Array.from({ length: 15 }, () => 503))
    const { callbackId } = await accept({ action: { timeoutSeconds: 86_400 } })
    await pass(23.5 * 3_600_000)
    turns[0]?.end(ok('Done.'))
    await pass(0.6 * 3_600_000)
    expect((await readJob(callbackId)).state).toBe('queued')
    await pass(3 * 3_600_000)
    expect(posted).toHaveLength(16)
    expect((await readJob(callbackId)).state).toBe('done')
  })
})
