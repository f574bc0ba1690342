// Two valid hook tokens while one replaces the other, and metrics by hook.
import { expect, test } from 'vitest'
import { gatewayToken } from './gateway.ts'
import { startInside } from './inside.ts'

const tokens = ['the-new-token-0123456789abcdef-0123', 'the-old-token-0123456789abcdef-0123']
const hooks = {
  token: undefined,
  tokens,
  mappings: [
    { match: { path: 'deploy' }, action: 'wake', wakeMode: 'next-heartbeat' },
    { match: { source: 'anything' } },
  ],
}

const post = (url: string, name: string, token: string) =>
  fetch(`${url}/${name}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: '{"a":1}',
  })

test('each token of hooks.tokens opens the hooks, and no other token does', async () => {
  const { url } = await startInside({ config: { hooks } })
  for (const token of tokens) expect((await post(url, 'deploy', token)).status).toBe(200)
  expect((await post(url, 'deploy', 'the-old-token')).status).toBe(401)
  expect((await post(url, 'deploy', gatewayToken)).status).toBe(401)
})

test('/metrics counts requests by configured hook, and names no other hook', async () => {
  const { url, adminUrl } = await startInside({ config: { hooks } })
  const [token = ''] = tokens
  await post(url, 'deploy', token)
  await post(url, 'deploy', 'wrong')
  for (const name of ['made-up-1', 'made-up-2']) {
    expect((await post(url, name, token)).status).toBe(204)
    await post(url, `wake/${name}`, 'wrong')
  }
  expect((await post(url, 'wake', token)).status).toBe(400)
  const page = await (await fetch(`${adminUrl}/metrics`)).text()
  expect(page).toContain('hookloom_deliveries_total{outcome="accepted",hook="deploy"} 1')
  expect(page).toContain('hookloom_deliveries_total{outcome="skipped",hook="*"} 2')
  expect(page).toContain('hookloom_refusals_total{code="unauthorized",hook="deploy"} 1')
  expect(page).toContain('hookloom_refusals_total{code="unauthorized",hook="*"} 2')
  expect(page).toContain('hookloom_refusals_total{code="payload-invalid",hook="wake"} 1')
  expect(page).toContain('hookloom_delivery_seconds_count{hook="deploy"} 1')
  expect(page).toMatch(/hookloom_delivery_seconds_bucket\{le="0\.1",hook="deploy"\} [01]/)
  expect(page).not.toContain('made-up')
  for (const each of tokens) expect(page).not.toContain(each)
})
