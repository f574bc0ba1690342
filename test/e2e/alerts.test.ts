// The alerts of real gateways: `hookloom alert --test`, the ping to a monitor, and one message for each cause, not one for each gateway.
import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { newSchema, whyNoPostgres } from '../contract/postgres-stage.ts'
import { runBuilt } from './command.ts'
import { startLoopback } from './fakes/loopback.ts'
import { startFakeTelegram } from './fakes/telegram.ts'
import { type Gateway, gatewayToken, makeConfigDir, post, startGateway, writeConfig } from './gateway.ts'

const botToken = '42:the-token-of-the-bot'
const secret = 'the secret of the sender'
const slow = { timeout: 60_000 }

async function startOutside() {
  const telegram = await startFakeTelegram({ botToken, chats: [42] })
  const monitor = await startLoopback(() => ({ status: 200, body: 'OK' }))
  const heartbeat = { url: `${monitor.url}/ping/secret-of-the-monitor`, every: '10m' }
  const toConfig = ({ to = '42', store }: { to?: string; store?: object } = {}) => ({
    server: { port: 0, adminPort: 0, trustedProxies: ['127.0.0.1'] },
    ...(store && { store }),
    channels: { telegram: { botToken, baseUrl: telegram.baseUrl } },
    hooks: {
      alerts: { channel: 'telegram', to, heartbeat },
      mappings: [
        { match: { path: 'github' }, verify: { scheme: 'github', secret }, deliver: false },
        { match: { path: 'broken' }, transform: { module: 'broken.ts' } },
        { match: { path: 'nowhere' }, channel: 'telegram', to: '99' },
        ...['second', 'third'].map((path) => ({ match: { path }, deliver: false })),
      ],
    },
  })
  const files = { 'hooks/transforms/broken.ts': "export default () => { throw new Error('broken') }" }
  return { telegram, monitor, toConfig, files }
}

async function push({ url }: Gateway, key: string): Promise<number> {
  const body = JSON.stringify({ ref: Math.random() })
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'GitHub-Hookshot/044aadd',
    'x-github-event': 'push',
    'x-hub-signature-256': `sha256=${createHmac('sha256', key).update(body).digest('hex')}`,
    'x-forwarded-for': '140.82.115.7',
  }
  return (await fetch(`${url}/github`, { method: 'POST', headers, body })).status
}

/** Resolves when the gateway has written the sender of this hook to the store and has judged it. */
async function waitForSender({ adminUrl }: Gateway, hook: string): Promise<void> {
  const read = async () => {
    const reply = await fetch(`${adminUrl}/api/senders`, { headers: { authorization: `Bearer ${gatewayToken}` } })
    return ((await reply.json()) as { senders: { hook: string }[] }).senders.map((sender) => sender.hook)
  }
  await expect.poll(read, slow).toContain(hook)
}

/** Causes three alerts: a sender that is refused, a parked delivery, and a reply to a chat that does not exist. */
async function causeAll(gateway: Gateway): Promise<void> {
  for (let count = 0; count < 2; count += 1) {
    expect(await push(gateway, 'another secret')).toBe(401)
    await post(gateway, 'broken', { count })
    await post(gateway, 'nowhere', { count })
  }
}

const expected = [
  /was accepted before and has been refused/,
  /a delivery of the hook "broken" is parked/,
  /failed permanently/,
]

const stores = [
  ['SQLite, before and after a restart', undefined],
  ['Postgres, by two gateways, one of which then stops', whyNoPostgres],
] as const

describe.each(stores)('alerts on %s', (name, why) => {
  test.skipIf(name.startsWith('Postgres') && why !== undefined)(
    'each cause of an alert is reported once, and one gateway pings the monitor',
    { timeout: 120_000 },
    async () => {
      const isShared = name.startsWith('Postgres')
      const { telegram, monitor, toConfig, files } = await startOutside()
      const schema = isShared ? await newSchema() : undefined
      const config = toConfig(schema === undefined ? {} : { store: { url: schema.url } })
      const first = await startGateway({ config, files })
      expect(await push(first, secret)).toBe(200)
      await waitForSender(first, 'github')
      const listAlerts = () => telegram.posted.map(({ text }) => text)
      const second = isShared ? await startGateway({ config, files }) : undefined
      for (const gateway of [first, ...(second === undefined ? [] : [second])]) await causeAll(gateway)
      for (const pattern of expected)
        await expect.poll(() => listAlerts().filter((text) => pattern.test(text)), slow).toHaveLength(1)
      await expect.poll(() => monitor.received.length, slow).toBe(1)
      expect(await first.stop()).toBe(0)

      const next = second ?? (await startGateway({ dir: first.dir }))
      // this gateway now has the duty of the first one
      await expect.poll(() => monitor.received.length, slow).toBe(2)
      await causeAll(next)
      // a new sender is written and judged together with all others
      await post(next, 'second', {})
      await waitForSender(next, 'second')
      await expect
        .poll(async () => (await post(next, 'third', {}))['deliveryId'], slow)
        .toEqual(expect.stringMatching(/^[\da-f-]{36}$/))
      await waitForSender(next, 'third')
      expect(await next.stop()).toBe(0)
      expect(listAlerts()).toHaveLength(expected.length)
      for (const gateway of [first, next]) expect(gateway.output()).not.toMatch(/secret-of-the-monitor|the-token-of/)
      await schema?.drop()
    },
  )
})

test(
  'hookloom alert --test says which chat accepted the message, or why none did and what to do; after a failure, the next delivered alert makes the gateway ping the monitor again',
  slow,
  async () => {
    const { telegram, monitor, toConfig, files } = await startOutside()
    const dir = makeConfigDir({ config: toConfig({ to: '7' }), files })
    const gateway = await startGateway({ dir })
    await expect.poll(() => monitor.received.length, slow).toBe(1)
    const failed = await runBuilt(['alert', '--test'], { dir })
    expect(failed.code).toBe(69)
    expect(failed.stdout).toMatch(/^The test alert was not delivered: telegram 7: .*The chat does not exist/)
    expect(failed.stdout).toMatch(/Correct hooks\.alerts .* run "hookloom alert --test" again/)
    await gateway.printed(/The heartbeat of the alerts is not sent: the last alert could not be delivered/)
    writeConfig(dir, toConfig())
    await gateway.printed(/hookloom\.jsonc is live/)
    const sent = await runBuilt(['alert', '--test', '--json'], { dir })
    expect(sent.json()).toMatchObject([{ delivered: true, detail: 'sent to telegram 42 as 1' }])
    expect(sent.code).toBe(0)
    expect(telegram.posted).toMatchObject([{ chat_id: 42, text: expect.stringContaining('this is a test alert') }])
    await expect.poll(() => monitor.received.length, slow).toBe(2)
    await gateway.printed(/The heartbeat of the alerts is sent again/)
    expect(gateway.output()).not.toContain('secret-of-the-monitor')

    // if the chat is down, the test of alerts ends with the first failure, and no message comes later
    telegram.planAnswers({ status: 200, body: { ok: true, result: { id: 1, is_bot: true, username: 'b' } } })
    telegram.planAnswers({ status: 503, body: 'down' })
    const down = await runBuilt(['alert', '--test'], { dir })
    expect([down.code, down.stdout]).toEqual([69, expect.stringMatching(/not delivered: telegram 42: /)])
    await gateway.stop()
  },
)

test('hookloom alert --test names the key hooks.alerts if it is missing', slow, async () => {
  const gateway = await startGateway()
  const { code, stderr } = await runBuilt(['alert', '--test'], { dir: gateway.dir })
  expect([code, stderr]).toEqual([65, expect.stringMatching(/hooks\.alerts is not set.*"channel": "telegram"/s)])
  expect((await runBuilt(['alert'], { dir: gateway.dir })).code).toBe(64)
  await gateway.stop()
})
