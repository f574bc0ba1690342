// `kill -9` before and after the record of each step: each job ends, no recorded step is repeated, and a message that may be sent twice has
// the same nonce both times.
import { spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { leaseMs } from '../../src/gateway/jobs/leases.ts'
import { steps } from '../../src/gateway/jobs/steps.ts'
import { BudgetConfig, findPeriod } from '../../src/model/budgets.ts'
import type { StepKind } from '../../src/model/job.ts'
import { createPostgresStore } from '../../src/store/postgres/postgres.ts'
import { createSqliteStore } from '../../src/store/sqlite/sqlite.ts'
import { newSchema, whyNoPostgres } from '../contract/postgres-stage.ts'
import { drain, findDamage } from '../e2e/aftermath.ts'
import { githubApiToken, startFakeGitHub } from '../e2e/fakes/github.ts'
import { hookToken, makeConfigDir, startGateway } from '../e2e/gateway.ts'
import { readStore, startInside } from '../e2e/inside.ts'

const mortal = resolve(import.meta.dirname, '../fixtures/gateways/mortal.mjs')
const asked = 'REVIEW-THE-KETTLE'

/**
 * The steps that call another server. `path`: the path of the call. `report`: the steps that are recorded with it. The call is repeated if
 * the gateway died before that report.
 */
const outside: Partial<Record<StepKind, { path: string; report: readonly (StepKind | 'posts')[] }>> = {
  run: { path: '/v1/chat/completions', report: ['run', 'summary', 'wake', 'posts'] },
  deliver: { path: '/receiver', report: ['deliver'] },
}

/** The calls that reached the model and the receivers. */
let calls: { path: string; body: string; nonce: string }[] = []
let others: Server
let base: string

beforeAll(async () => {
  others = createServer(async (request, response) => {
    const { url: path = '', headers } = request
    const body = await text(request)
    response.setHeader('content-type', 'application/json')
    calls.push({ path, body, nonce: String(headers['webhook-id']) })
    if (path !== outside.run?.path) {
      response.end('{}')
      return
    }
    const reply = body.includes(asked) ? 'It boils.' : 'HEARTBEAT_OK'
    response.end(
      JSON.stringify({
        id: 'c1',
        object: 'chat.completion',
        created: 1,
        model: 'm',
        choices: [{ index: 0, message: { role: 'assistant', content: reply }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      }),
    )
  }).listen(0, '127.0.0.1')
  await once(others, 'listening')
  // as: the server listens on TCP
  base = `http://127.0.0.1:${(others.address() as AddressInfo).port}`
})
afterAll(() => {
  others.closeAllConnections()
  others.close()
})

function makeDir(mapping: object = {}, config: object = {}, channels: object = {}): string {
  // makes each step necessary
  const steps = { channel: 'webhook', to: 'hub', wakeMode: 'now' }
  const kettle = { match: { path: 'kettle' }, name: 'Kettle', messageTemplate: '{{message}}', ...steps, ...mapping }
  return makeConfigDir({
    config: {
      hooks: { mappings: [kettle] },
      ...config,
      models: { providers: { local: { kind: 'openai-compatible', baseUrl: `${base}/v1`, stream: false } } },
      agents: { defaults: { model: 'local/m', heartbeat: { minIntervalSeconds: 0 } } },
      channels: {
        webhook: { endpoints: { hub: { url: `${base}/receiver`, secret: 'whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQ=' } } },
        ...channels,
      },
    },
  })
}

/** Sends one request to a gateway that is killed at the given step. Returns the status of the answer, if there was one. */
async function killAt(
  dir: string,
  step: StepKind | 'posts' | 'reserve',
  when: string,
  body: object,
  {
    headers = {},
    url,
  }: { readonly headers?: Readonly<Record<string, string>>; readonly url?: string | undefined } = {},
): Promise<number | undefined> {
  const where = url === undefined ? [] : [url]
  const child = spawn(process.execPath, [mortal, dir, step, when, ...where], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  const [hooks] = await once(createInterface(child.stdout), 'line')
  const hook = 'text' in body ? 'wake' : 'kettle'
  const status = await fetch(`${String(hooks)}/${hook}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${hookToken}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  }).then(
    (response) => response.status,
    () => undefined,
  )
  const [, signal] = await ended
  expect(signal).toBe('SIGKILL')
  return status
}

// as: the keys of the table are the names of the steps
const ofRuns = (Object.keys(steps) as StepKind[]).filter((name) => steps[name].of.includes('agent'))
const places = [...ofRuns, 'posts' as const].flatMap((step) => [[step, 'before'] as const, [step, 'after'] as const])

test.each(places)(
  'a run whose gateway is killed at the step %s, %s it is recorded, ends with all its steps, and all posts of its reply have one id',
  async (step, when) => {
    calls = []
    const dir = makeDir()
    expect(await killAt(dir, step, when, { message: asked })).toBe(200)
    expect(findDamage(dir)).toEqual([])

    const gateway = await startGateway({ dir })
    await drain(dir)
    const nonces = calls.filter(({ path }) => path === outside.deliver?.path).map(({ nonce }) => nonce)
    const [record] = await readStore(dir, (store) => store.deliveries({ limit: 9 }))
    expect(record?.jobs).toMatchObject([{ state: 'done', posts: [{ state: 'sent', id: nonces[0] }] }])
    expect(record?.jobs[0]?.steps.map(({ name }) => name)).toEqual(ofRuns)
    expect(new Set(nonces).size).toBe(1)
    for (const [name, { path: called, report }] of Object.entries(outside)) {
      // heartbeats call the model too
      const own = calls.filter(({ path, body }) => path === called && (name !== 'run' || body.includes(asked)))
      expect([name, own.length]).toEqual([name, when === 'before' && report.includes(step) ? 2 : 1])
    }

    // the main session reads the event once, in another turn
    await vi.waitUntil(async () => (await countWaiting(dir)) === 0, { timeout: 60_000, interval: 100 })
    const events = await readStore(dir, (store) => store.events({ limit: 9 }))
    expect(events.map(({ text: told }) => told)).toEqual(['Hook Kettle: It boils.'])
    expect(calls.filter(({ body }) => body.includes('Hook Kettle: It boils.'))).toHaveLength(1)
    expect(await gateway.stop()).toBe(0)
  },
)

/** The steps of a task that posts the end of a run. */
const ofCallbacks = (Object.keys(steps) as StepKind[]).filter((name) => steps[name].of.includes('callback'))

test.each(ofCallbacks.flatMap((step) => [[step, 'before'] as const, [step, 'after'] as const]))(
  'a callback whose gateway is killed at the step %s, %s it is recorded, arrives, and its repeats have one id',
  { timeout: 120_000 },
  async (step, when) => {
    calls = []
    const dir = makeDir({ callback: 'hub', deliver: false, wakeMode: 'next-heartbeat' })
    expect(await killAt(dir, step, when, { message: asked })).toBe(200)
    const gateway = await startGateway({ dir })
    await drain(dir)
    const posted = calls.filter(({ path }) => path === outside.deliver?.path)
    expect(posted).toHaveLength(step === 'callback' && when === 'before' ? 2 : 1)
    const [record] = await readStore(dir, (store) => store.deliveries({ limit: 9 }))
    const runId = record?.jobs[0]?.id ?? ''
    expect(new Set(posted.map(({ nonce }) => nonce))).toEqual(new Set([`msg_${runId}_run_done`]))
    for (const { body } of posted)
      expect(JSON.parse(body)).toMatchObject({ type: 'run.done', data: { runId, state: 'done' } })
    expect(await gateway.stop()).toBe(0)
  },
)

test.each(['before', 'after'])(
  'a wake whose gateway is killed %s its event is written has an effect only if the event was written',
  async (when) => {
    calls = []
    const dir = makeDir()
    expect(await killAt(dir, 'event', when, { text: 'The kettle boils' })).toBeUndefined()
    const gateway = await startGateway({ dir })
    const expected = when === 'after' ? 1 : 0
    await vi.waitUntil(async () => calls.length === expected && (await countWaiting(dir)) === 0, {
      timeout: 60_000,
      interval: 100,
    })
    expect(await readStore(dir, (store) => store.deliveries({ limit: 9 }))).toHaveLength(expected)
    expect(await gateway.stop()).toBe(0)
  },
)

const engines = whyNoPostgres === undefined ? (['SQLite', 'Postgres'] as const) : (['SQLite'] as const)
const kills = engines.flatMap((engine) => [
  { engine, step: 'reserve', when: 'after', asks: 1 } as const,
  { engine, step: 'run', when: 'before', asks: 2 } as const,
])

test.each(kills)(
  'a gateway that is killed at the step $step, $when it is recorded, leaves no reservation in $engine for longer than its lease',
  { timeout: 120_000 },
  async ({ engine, step, when, asks }) => {
    calls = []
    const daily = { turns: 1 }
    const dir = makeDir({ budgets: ['daily'] }, { budgets: { daily } })
    const { startsAt } = findPeriod(BudgetConfig.parse(daily), Date.now())
    let moved = 0
    const clock = () => Date.now() + moved
    const schema = engine === 'Postgres' ? await newSchema() : undefined
    onTestFinished(async () => schema?.drop())
    expect(await killAt(dir, step, when, { message: asked }, { url: schema?.url })).toBe(200)
    expect(calls).toHaveLength(asks - 1)

    const store =
      schema === undefined
        ? createSqliteStore({ file: join(dir, 'state/hookloom.db'), clock })
        : createPostgresStore({ url: schema.url, now: () => `${clock()}::bigint` })
    const readAccount = async () => {
      const [account] = await store.accounts([{ name: 'daily', startsAt }])
      return [account?.reserved.turns, account?.spent.turns]
    }
    expect(await readAccount()).toEqual([1, 0])
    moved = leaseMs
    expect(await readAccount()).toEqual([0, 0])
    // the retry has the whole budget again, and one turn is spent
    const gateway = await startInside({ dir, store, clock })
    const isIdle = async () => {
      const { queued, running } = (await store.counts()).jobs
      return queued + running === 0
    }
    await vi.waitUntil(isIdle, { timeout: 60_000, interval: 100 })
    expect(await readAccount()).toEqual([0, 1])
    const [record] = await store.deliveries({ limit: 9 })
    expect(record?.jobs).toMatchObject([{ state: 'done', attempts: 2 }])
    expect(calls.filter(({ path, body }) => path === outside.run?.path && body.includes(asked))).toHaveLength(asks)
    await gateway.stop()
  },
)

/** The steps of a task that sets a commit status. */
const ofStatuses = (Object.keys(steps) as StepKind[]).filter((name) => steps[name].of.includes('status'))

test.each(ofStatuses.flatMap((step) => [[step, 'before'] as const, [step, 'after'] as const]))(
  'a commit status whose gateway is killed at the step %s, %s it is recorded, is set to each state once',
  { timeout: 120_000 },
  async (step, when) => {
    calls = []
    const sha = '0123456789abcdef0123456789abcdef01234567'
    const github = await startFakeGitHub({ commits: [`acme/app@${sha}`] })
    const secret = 'a-secret-of-the-webhook'
    const verify = { scheme: 'github', secret }
    const dir = makeDir({ status: 'review', verify }, {}, { github: { token: githubApiToken, baseUrl: github.url } })
    const push = { message: asked, repository: { full_name: 'acme/app' }, after: sha }
    const signature = createHmac('sha256', secret).update(JSON.stringify(push)).digest('hex')
    expect(
      await killAt(dir, step, when, push, {
        headers: { 'x-github-event': 'push', 'x-hub-signature-256': `sha256=${signature}` },
      }),
    ).toBe(200)
    const gateway = await startGateway({ dir })
    await drain(dir)
    expect(github.statuses.map(({ state }) => state)).toEqual(['pending', 'success'])
    expect(await gateway.stop()).toBe(0)
  },
)

async function countWaiting(dir: string): Promise<number> {
  const { count } = await readStore(dir, (store) =>
    store.waitingEvents({ agentId: 'main', sessionKey: 'main', limit: 1 }),
  )
  return count
}
