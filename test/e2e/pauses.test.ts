// Pauses and cancellations by the commands of an operator, for all gateways on a store.
import { afterEach, describe, expect, test } from 'vitest'
import { createPostgresStore } from '../../src/store/postgres/postgres.ts'
import { newSchema, whyNoPostgres } from '../contract/postgres-stage.ts'
import { runCommand } from './command.ts'
import { gatewayToken } from './gateway.ts'
import { type Inside, startInside } from './inside.ts'
import { post } from './wire.ts'

let closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.toReversed()) await close()
  closing = []
})

const config = {
  hooks: {
    mappings: [
      { id: 'builds', match: { path: 'builds' }, sessionKey: 'hook:build:{{id}}', messageTemplate: 'Build {{id}}' },
      { id: 'alarms', match: { path: 'alarms' }, sessionKey: 'hook:alarm', messageTemplate: 'Alarm' },
    ],
  },
}

async function start(more: object = {}, options: Parameters<typeof startInside>[0] = {}) {
  const replies: string[] = []
  const write = ({ text }: { text: string }) => void replies.push(text)
  const gateway = await startInside({ config: { ...config, ...more }, write, ...options })
  closing.push(gateway.stop)
  return { ...gateway, replies }
}

async function ask(gateway: Pick<Inside, 'port'>, hook: string, payload: object = {}): Promise<string> {
  const reply = await post(gateway.port, `/hooks/${hook}`, payload)
  expect(reply.status).toBe(200)
  return (JSON.parse(String(reply.body)) as { runId: string }).runId
}

async function callApi(gateway: Pick<Inside, 'adminUrl'>, path: string, method = 'GET') {
  const headers = { authorization: `Bearer ${gatewayToken}` }
  const response = await fetch(`${gateway.adminUrl}${path}`, { method, headers })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

const readState = async (gateway: Pick<Inside, 'adminUrl'>, runId: string) =>
  (await callApi(gateway, `/api/runs/${runId}`)).body['state']

describe('a pause', () => {
  test('a paused mapping accepts requests and runs them after the resume, while other mappings run on', async () => {
    const gateway = await start()
    const { dir } = gateway
    const paused = await runCommand(['pause', 'builds', '--until', '2h', '--reason', 'The disk is full.'], { dir })
    expect(paused.stdout).toMatch(/^mapping:builds is paused until .*Z\. Requests are accepted and wait\.\n$/)
    const waiting = await ask(gateway, 'builds', { id: 7 })
    const other = await ask(gateway, 'alarms')
    await expect.poll(() => readState(gateway, other)).toBe('done')
    const why = /waits until .*Z, because .+@.+ paused its mapping at .*Z: The disk is full$/
    const { body: run } = await callApi(gateway, `/api/runs/${waiting}`)
    expect(run).toMatchObject({ state: 'queued', waits: expect.stringMatching(why) })
    const { body: rows } = await callApi(gateway, '/api/deliveries')
    expect(rows['deliveries']).toMatchObject([{ waits: run['waits'] }, { hook: 'alarms' }])
    expect((await runCommand(['show', waiting], { dir })).stdout).toContain(`why       ${String(run['waits'])}`)
    expect((await runCommand(['list'], { dir })).stdout).toContain(String(run['waits']).slice(0, 60))
    const resumed = await runCommand(['resume', 'mapping:builds'], { dir })
    expect(resumed.stdout).toBe('mapping:builds runs again.\n')
    await expect.poll(() => readState(gateway, waiting)).toBe('done')
    expect(await runCommand(['resume', 'builds'], { dir })).toMatchObject({
      code: 65,
      stderr: expect.stringContaining('mapping:builds is not paused.'),
    })
  })

  test('/readyz shows a pause and stays 200, and an event in the main session says who paused and why', async () => {
    const gateway = await start()
    const { dir, adminUrl } = gateway
    await runCommand(['pause', 'all', '--reason', 'A loop.'], { dir })
    const { status, body } = await callApi(gateway, '/readyz')
    expect(status).toBe(200)
    expect(body['paused']).toMatchObject([{ what: 'all', kind: 'pause', reason: 'A loop.', until: null }])
    expect(await (await fetch(`${adminUrl}/readyz`)).json()).toMatchObject({ ok: true, paused: 1 })
    await runCommand(['resume', 'all', '--reason', 'It is over.'], { dir })
    const readTexts = async () =>
      ((await callApi(gateway, '/api/events')).body['events'] as { text: string }[]).map(({ text }) => text)
    await expect
      .poll(readTexts)
      .toEqual([
        expect.stringMatching(/^Hookloom: .+@.+ paused all\. Reason: A loop\.$/),
        expect.stringMatching(/^Hookloom: .+@.+ resumed all\. Reason: It is over\.$/),
      ])
  })

  test('a pause without an end survives a restart, and a pause with an end ends by itself', async () => {
    const gateway = await start()
    const { dir } = gateway
    await runCommand(['pause', 'builds'], { dir })
    const waiting = await ask(gateway, 'builds', { id: 7 })
    await gateway.stop()
    const next = await start({}, { dir })
    const listed = await runCommand(['pause', '--json'], { dir })
    expect(listed.json()).toMatchObject([{ what: 'mapping:builds', kind: 'pause', reason: null, until: null }])
    expect(await readState(next, waiting)).toBe('queued')
    // this replaces the pause without an end
    expect((await runCommand(['pause', 'builds', '--until', '1s'], { dir })).code).toBe(0)
    await expect.poll(() => readState(next, waiting)).toBe('done')
  })

  test('a full queue refuses requests with 503, even if many come at once, and accepts requests again when it has room', async () => {
    const flow = { key: '{{id}}', maxQueued: 3, onFull: 'refuse' }
    const tickets = { id: 'tickets', match: { path: 'tickets' }, messageTemplate: 'Ticket {{id}}', flow }
    const gateway = await start({ hooks: { mappings: [tickets] } })
    await runCommand(['pause', 'tickets'], { dir: gateway.dir })
    const sendTicket = (id: number) => post(gateway.port, '/hooks/tickets', { id })
    const replies = await Promise.all(Array.from({ length: 10 }, () => sendTicket(7)))
    expect(replies.map(({ status }) => status).toSorted()).toEqual([
      200,
      200,
      200,
      ...Array.from({ length: 7 }, () => 503),
    ])
    const refused = await sendTicket(7)
    expect(refused).toMatchObject({ status: 503, headers: { 'retry-after': '30' } })
    expect(JSON.parse(String(refused.body))).toMatchObject({ code: 'queue-full' })
    expect((await sendTicket(8)).status).toBe(200)
    await runCommand(['resume', 'tickets'], { dir: gateway.dir })
    await expect.poll(async () => (await sendTicket(7)).status).toBe(200)
    expect((await callApi(gateway, '/api/deliveries')).body['deliveries']).toHaveLength(5)
  })

  test.each([
    [['pause', 'bilds'], 65, /No mapping, agent, limit or source has the name "bilds"\. Did you mean builds\?/],
    [['pause', 'builds', '--until', 'yesterday'], 64, /--until needs a duration such as 30m/],
    [['pause', 'builds', '--until', '2020-01-02T03:04:05Z'], 64, /a time in the future/],
    [['pause', '--reason', 'x'], 64, /Say what to pause/],
    [['resume', 'agent:nobody'], 65, /No mapping, agent, limit or source has the name "agent:nobody"/],
    [['retry', 'nosuch'], 65, /No delivery or run has the id "nosuch"\./],
    [['drop', 'nosuch'], 65, /No delivery or run has the id "nosuch"\./],
    [['cancel', 'nosuch'], 65, /No run or delivery has the id "nosuch", and no run of this key/],
    [['budget', 'raise', 'nosuch', '--turns', '5'], 65, /There is no budget "nosuch"\./],
    [['budget', 'raise', 'daily'], 64, /Say how much to add: hookloom budget raise daily --usd <n> or --turns <n>\./],
  ])('hookloom refuses %j with exit code %i', async (args, code, sentence) => {
    const { dir } = await start({ budgets: { daily: { usd: 5, turns: 5 } } })
    expect(await runCommand(args, { dir })).toMatchObject({ code, stderr: expect.stringMatching(sentence) })
  })

  test.skipIf(whyNoPostgres !== undefined)(
    'a pause on one gateway holds back jobs that another one accepted, and a resume on the other gateway releases them',
    async () => {
      const { url, drop } = await newSchema()
      closing.push(drop)
      const one = await start({}, { store: createPostgresStore({ url }) })
      const two = await start({}, { store: createPostgresStore({ url }) })
      await runCommand(['pause', 'builds'], { dir: one.dir })
      const waiting = await ask(two, 'builds', { id: 7 })
      const other = await ask(two, 'alarms')
      await expect.poll(() => readState(one, other)).toBe('done')
      expect(await readState(one, waiting)).toBe('queued')
      expect((await runCommand(['resume', 'builds'], { dir: two.dir })).code).toBe(0)
      await expect.poll(() => readState(one, waiting)).toBe('done')
    },
  )
})

/** A turn that ends only when it is stopped. */
const endless = {
  runners: { endless: { kind: 'command', command: process.execPath, args: ['-e', 'setInterval(() => {}, 1000)'] } },
  agents: { defaults: { runner: 'endless' } },
}

describe('a cancelled run', () => {
  test('a waiting run is cancelled by its id, and never starts', async () => {
    const gateway = await start()
    const { dir, replies } = gateway
    await runCommand(['pause', 'builds'], { dir })
    const waiting = await ask(gateway, 'builds', { id: 7 })
    const cancelled = await runCommand(['cancel', waiting, '--reason', 'The branch is gone.'], { dir })
    expect(cancelled.stdout).toBe(`${waiting} is cancelled.\n`)
    await runCommand(['resume', 'builds'], { dir })
    const other = await ask(gateway, 'alarms')
    await expect.poll(() => readState(gateway, other)).toBe('done')
    const { body } = await callApi(gateway, `/api/runs/${waiting}`)
    expect(body).toMatchObject({
      state: 'cancelled',
      steps: [],
      lastError: expect.stringMatching(/^cancelled by .+: The branch is gone\.$/),
    })
    expect(replies.filter((text) => text.includes('Build'))).toEqual([])
    expect(await runCommand(['cancel', waiting], { dir })).toMatchObject({
      code: 65,
      stderr: expect.stringContaining('the state of the run is cancelled'),
    })
  })

  test('a running turn that is cancelled stops and posts nothing, and the next run of its session starts', async () => {
    const gateway = await start(endless)
    const { dir, replies } = gateway
    const running = await ask(gateway, 'alarms')
    const next = await ask(gateway, 'alarms')
    await expect.poll(() => readState(gateway, running)).toBe('running')
    expect((await callApi(gateway, `/api/runs/${running}?whoever=ada`, 'DELETE')).status).toBe(400)
    expect((await callApi(gateway, `/api/runs/${running}?by=ada&reason=too%20slow`, 'DELETE')).status).toBe(200)
    const audit = await runCommand(['audit', '--json'], { dir })
    const details = { by: 'ada', reason: 'too slow' }
    expect(audit.json()).toContainEqual(expect.objectContaining({ act: 'cancel', details }))
    await expect.poll(() => readState(gateway, running)).toBe('cancelled')
    await expect.poll(() => readState(gateway, next)).toBe('running')
    expect(replies).toEqual([])
    await runCommand(['cancel', 'hook:alarm'], { dir })
    await expect.poll(() => readState(gateway, next)).toBe('cancelled')
  })

  test('all runs of a session key are cancelled at once, and no others', async () => {
    const gateway = await start()
    const { dir } = gateway
    await runCommand(['pause', 'all'], { dir })
    const runs = [await ask(gateway, 'builds', { id: 7 }), await ask(gateway, 'builds', { id: 7 })]
    const other = await ask(gateway, 'builds', { id: 77 })
    const cancelled = await runCommand(['cancel', 'hook:build:7', '--json'], { dir })
    expect(cancelled.json()).toEqual(runs.map((runId) => ({ runId, state: 'cancelled' })))
    expect(await readState(gateway, other)).toBe('queued')
    expect(await runCommand(['cancel', 'hook:build:7'], { dir })).toMatchObject({
      code: 65,
      stderr: expect.stringContaining('no run of this key waits or runs'),
    })
  })
})
