// The action `deliver` through a whole gateway: stored, sent without a model, and visible like a run.
import { describe, expect, test } from 'vitest'
import { runCommand } from './command.ts'
import { startFakeReceiver } from './fakes/webhook.ts'
import { gatewayToken, hookToken } from './gateway.ts'
import { type Inside, startInside } from './inside.ts'
import { post, send } from './wire.ts'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

async function start(over: object = {}) {
  const receivers = { ops: await startFakeReceiver({ secret }), devs: await startFakeReceiver({ secret }) }
  const endpoints = Object.fromEntries(Object.entries(receivers).map(([name, { url }]) => [name, { url, secret }]))
  const to = [
    { channel: 'webhook', to: 'ops' },
    { channel: 'webhook', to: 'devs' },
  ]
  const message = { action: 'deliver', messageTemplate: '{{text}}', name: 'Deploys' }
  const mappings = [
    { match: { path: 'both' }, ...message, to },
    { id: 'one', match: { path: 'one' }, ...message, channel: 'webhook', to: 'ops', ...over },
  ]
  const runners = { gone: { kind: 'command', command: 'no-such-program' } }
  // a turn of an agent would fail
  const agents = { defaults: { runner: 'gone' } }
  const gateway = await startInside({
    config: { hooks: { mappings }, channels: { webhook: { endpoints } }, runners, agents },
  })
  return { gateway, ...receivers }
}

const wait: [string, string][] = [['prefer', 'wait=30']]
const readRun = async ({ port }: Pick<Inside, 'port'>, runId: string) => {
  const headers: [string, string][] = [['authorization', `Bearer ${hookToken}`]]
  const { body } = await send(port, { method: 'GET', target: `/hooks/runs/${runId}`, headers, length: false })
  return JSON.parse(body) as Record<string, unknown>
}

/** Pauses or resumes the mapping `one`. */
async function operate({ adminUrl }: Inside, path: '/api/pauses' | '/api/resume'): Promise<void> {
  const headers = { authorization: `Bearer ${gatewayToken}` }
  const answer = await fetch(`${adminUrl}${path}`, { method: 'POST', headers, body: '{"what":"mapping:one"}' })
  expect(answer.status).toBe(200)
}

describe('a message without a model', () => {
  test('a message goes to each recipient without a model, and the caller can wait for it', async () => {
    const { gateway, ops, devs } = await start()
    const { status, body, headers } = await post(gateway.port, '/hooks/both', { text: 'Up: **api**' }, wait)
    const receipt = JSON.parse(body) as { runIds: string[] }
    expect([status, headers['preference-applied']]).toEqual([200, 'wait=30'])
    expect(receipt).toEqual({
      ok: true,
      deliveryId: expect.any(String),
      runIds: [expect.any(String), expect.any(String)],
      wakes: 0,
    })
    expect([ops, devs].map(({ posted }) => posted)).toEqual(
      receipt.runIds.map((runId) => [{ runId, agentId: 'main', name: 'Deploys', text: 'Up: **api**' }]),
    )
    expect(await readRun(gateway, receipt.runIds[0] ?? '')).toMatchObject({
      state: 'done',
      steps: [{ name: 'deliver', state: 'done' }],
      receipts: [{ channel: 'webhook', state: 'sent' }],
      usage: null,
    })
  })

  test('a message to a receiver that is down delays no other message, and arrives once when the receiver is back', async () => {
    const { gateway, ops, devs } = await start()
    let fail = () => {}
    const failed = new Promise<void>((resolve) => (fail = resolve))
    ops.planAnswers((response) => void failed.then(() => response.writeHead(503).end()))
    const { body } = await post(gateway.port, '/hooks/both', { text: 'Up' })
    const { runIds } = JSON.parse(body) as { runIds: string[] }
    await expect.poll(() => devs.posted).toHaveLength(1)
    expect(ops.posted).toEqual([])
    fail()
    await expect.poll(() => readRun(gateway, runIds[0] ?? '')).toMatchObject({ state: 'done' })
    expect(ops.posted).toHaveLength(1)
    expect(ops.received).toHaveLength(2)
  })

  test('a message waits while its mapping is paused', async () => {
    const { gateway, ops } = await start()
    await operate(gateway, '/api/pauses')
    const { runId } = JSON.parse((await post(gateway.port, '/hooks/one', { text: 'Up' })).body) as { runId: string }
    expect(await readRun(gateway, runId)).toMatchObject({ state: 'queued', waits: expect.stringContaining('paused') })
    await operate(gateway, '/api/resume')
    await expect.poll(() => readRun(gateway, runId)).toMatchObject({ state: 'done' })
    expect(ops.posted).toHaveLength(1)
  })

  test('a message is replaced by a newer one of its key if its flow has onNew "replace"', async () => {
    const flow = { onNew: 'replace', key: 'deploy:{{service}}', delay: '1s' }
    const { gateway, ops } = await start({ flow })
    // no message is sent before the last one has come, even on a slow machine
    await operate(gateway, '/api/pauses')
    const ids: string[] = []
    for (const text of ['Building', 'Testing', 'Up']) {
      const { body } = await post(gateway.port, '/hooks/one', { text, service: 'api' })
      ids.push((JSON.parse(body) as { runId: string }).runId)
    }
    await operate(gateway, '/api/resume')
    await expect.poll(() => readRun(gateway, ids[2] ?? '')).toMatchObject({ state: 'done' })
    expect(ops.posted.map(({ text }) => text)).toEqual(['Up'])
    expect(await readRun(gateway, ids[0] ?? '')).toMatchObject({ state: 'superseded' })
  })
})

describe('the reply of an agent with a list of recipients', () => {
  test('a reply has a step and a receipt for each recipient, and a post that fails does not stop the other one', async () => {
    const receivers = { ops: await startFakeReceiver({ secret }), devs: await startFakeReceiver({ secret }) }
    const endpoints = Object.fromEntries(Object.entries(receivers).map(([name, { url }]) => [name, { url, secret }]))
    const to = [
      { channel: 'webhook', to: 'ops' },
      { channel: 'webhook', to: 'devs' },
    ]
    const mappings = [{ match: { path: 'both' }, messageTemplate: '{{text}}', callback: 'devs', to }]
    const says = { kind: 'command', command: process.execPath, args: ['-e', "console.log('Fine.')"] }
    const gateway = await startInside({
      config: {
        hooks: { mappings },
        channels: { webhook: { endpoints } },
        runners: { says },
        agents: { defaults: { runner: 'says', heartbeat: { every: 0 } } },
      },
    })
    // the first recipient is down for one attempt
    receivers.ops.planAnswers({ status: 503 })
    const { body, status } = await post(gateway.port, '/hooks/both', { text: 'Up?' }, wait)
    expect(status).toBe(200)
    const { runId, deliveryId } = JSON.parse(body) as { runId: string; deliveryId: string }
    expect(await readRun(gateway, runId)).toMatchObject({
      state: 'done',
      steps: [
        { name: 'run' },
        { name: 'summary' },
        { name: 'wake' },
        { name: 'deliver-2', state: 'done' },
        { name: 'deliver', state: 'done' },
      ],
      receipts: [
        { step: 'deliver', part: 0, channel: 'webhook', state: 'sent' },
        { step: 'deliver-2', part: 0, channel: 'webhook', state: 'sent' },
      ],
    })
    const findReplies = ({ posted }: { readonly posted: readonly object[] }) => posted.filter((each) => 'text' in each)
    expect([findReplies(receivers.ops), findReplies(receivers.devs)]).toMatchObject([
      [{ text: 'Fine.' }],
      [{ text: 'Fine.' }],
    ])
    const answer = await fetch(`${gateway.adminUrl}/api/deliveries/${deliveryId}`, {
      headers: { authorization: `Bearer ${gatewayToken}` },
    })
    expect(await answer.json()).toMatchObject({
      jobs: [
        {
          posts: [
            { step: 'deliver', to: 'ops', state: 'sent', failed: null },
            { step: 'deliver-2', to: 'devs', state: 'sent', failed: null },
          ],
        },
      ],
    })
    const { stdout } = await runCommand(['show', runId], { dir: gateway.dir })
    expect(stdout).toMatch(/deliver-2 +done .*sent to webhook devs as/)
    expect(stdout).toMatch(/deliver +done .*sent to webhook ops as/)
    expect(stdout.match(/1 of 1 +sent +webhook (ops|devs)/g)).toHaveLength(2)
  })
})
