// A sender that was accepted before and is refused now: the operator gets one message, over the whole gateway.
import { createHmac } from 'node:crypto'
import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { runCommand } from './command.ts'
import { gatewayToken } from './gateway.ts'
import { type Inside, startInside } from './inside.ts'

const secret = 'the secret of the sender'
const config = {
  server: { trustedProxies: ['127.0.0.1'] },
  hooks: {
    mappings: [{ id: 'signed', match: { path: 'github' }, verify: { scheme: 'github', secret }, deliver: false }],
    alerts: { channel: 'console' },
  },
}

const Senders = z.object({ senders: z.array(z.looseObject({ hook: z.string(), source: z.string().nullable() })) })

async function push(gateway: Inside, key: string, client: string): Promise<number> {
  const body = JSON.stringify({ ref: Math.random() })
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'GitHub-Hookshot/044aadd',
    'x-github-event': 'push',
    'x-hub-signature-256': `sha256=${createHmac('sha256', key).update(body).digest('hex')}`,
    'x-forwarded-for': client,
  }
  return (await fetch(`${gateway.url}/github`, { method: 'POST', headers, body })).status
}

async function listSenders({ adminUrl }: Inside) {
  const reply = await fetch(`${adminUrl}/api/senders`, { headers: { authorization: `Bearer ${gatewayToken}` } })
  return Senders.parse(await reply.json()).senders
}

test(
  'the operator is told once about a sender whose secret changed, and never about an unknown client with the same headers',
  { timeout: 120_000 },
  async () => {
    const printed: string[] = []
    const gateway = await startInside({ config, write: ({ text }) => void printed.push(text) })
    expect(await push(gateway, secret, '140.82.115.7')).toBe(200)
    await vi.waitUntil(async () => (await listSenders(gateway)).length === 1, { timeout: 60_000 })
    expect(await listSenders(gateway)).toMatchObject([
      {
        hook: 'github',
        source: 'github',
        sourceName: 'GitHub',
        requests: 1,
        usualMs: null,
        silentSince: null,
        refused: [],
      },
    ])
    for (let count = 0; count < 3; count += 1) expect(await push(gateway, 'a guess', `185.7.${count}.7`)).toBe(401)
    for (let count = 0; count < 3; count += 1) expect(await push(gateway, 'the new secret', '140.82.115.8')).toBe(401)
    await vi.waitUntil(() => printed.some((text) => text.includes('has been refused since')), { timeout: 60_000 })
    const told = printed.filter((text) => text.includes('Hookloom:'))
    expect(told).toHaveLength(1)
    expect(told[0]).toMatch(
      /GitHub \(the hook "github"\) was accepted before and has been refused since .* 3 requests, 401 unauthorized/,
    )
    expect(await listSenders(gateway)).toMatchObject([{ refused: [{ code: 'unauthorized', status: 401, count: 3 }] }])
    const { stdout } = await runCommand(['doctor'], { dir: gateway.dir })
    expect(stdout).toMatch(
      /senders: .*GitHub at hook github: last request .* ago.*Refused since [\d-]+ [\d:]+Z: 3 requests, 401 unauthorized/s,
    )
  },
)
