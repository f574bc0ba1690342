// The schemes `token` and `basic`: a shared secret in a header that the operator names, for any sender.
import { expect, test } from 'vitest'
import { startSignedGateway } from './proving.ts'

const body = '{"a":1}'
const json = ['content-type', 'application/json'] as const
const toBasicCredentials = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`

test.each([
  [
    'token',
    { header: 'X-Acme-Token', secret: 's3cret-of-the-plant' },
    [['x-acme-token', 's3cret-of-the-plant']],
    [['x-acme-token', 's3cret-of-the-plan']],
  ],
  [
    'token',
    { header: 'Authorization', secret: 's3cret-of-the-plant' },
    [['authorization', 'Bearer s3cret-of-the-plant']],
    [['authorization', 'Bearer s']],
  ],
  [
    'basic',
    { secret: 'u:pass-of-the-plant' },
    [['authorization', toBasicCredentials('u:pass-of-the-plant')]],
    [['authorization', toBasicCredentials('u:qass-of-the-plant')]],
  ],
  [
    'basic',
    { secret: 'u:pass-of-the-plant', header: 'X-Auth' },
    [['x-auth', toBasicCredentials('u:pass-of-the-plant')]],
    [['authorization', toBasicCredentials('u:pass-of-the-plant')]],
  ],
] as const)(
  'the scheme %s with %j accepts its secret, and refuses a wrong or a missing one',
  async (scheme, settings, good, bad) => {
    const gateway = await startSignedGateway([
      { match: { path: 'acme', source: 'acme' }, verify: { scheme, ...settings } },
    ])
    const ask = (headers: readonly (readonly [string, string])[]) =>
      gateway.ask({ target: '/hooks/acme', headers: [json, ...headers], body })
    expect((await ask(good)).status).toBe(200)
    expect((await ask(bad)).status).toBe(401)
    expect((await ask([])).status).toBe(401)
    const [delivery] = await gateway.deliveries()
    // the mapping names the source, because the scheme belongs to no sender
    expect(delivery).toMatchObject({ source: 'acme', state: 'accepted' })
  },
)

test('the source of a delivery is the scheme if there is no match.source', async () => {
  const gateway = await startSignedGateway([
    { match: { path: 'acme' }, verify: { scheme: 'token', header: 'x-t', secret: 'long-enough-for-all' } },
  ])
  await gateway.ask({
    target: '/hooks/acme',
    headers: [json, ['x-t', 'long-enough-for-all']],
    body: '{"source":"github"}',
  })
  expect((await gateway.deliveries())[0]?.source).toBe('token')
})

test('the header that carries the secret is not stored', async () => {
  const gateway = await startSignedGateway([
    {
      match: { path: 'acme' },
      verify: { scheme: 'token', header: 'x-t', secret: 's3cret-of-the-plant' },
      textTemplate: 'The header: {{headers.x-t}}',
    },
  ])
  const reply = await gateway.ask({ target: '/hooks/acme', headers: [json, ['x-t', 's3cret-of-the-plant']], body })
  const { deliveryId } = JSON.parse(reply.body) as { deliveryId: string }
  expect(await gateway.readEvent(deliveryId)).toBe('The header: [secret]')
  expect(JSON.stringify(await gateway.deliveries())).not.toContain('s3cret-of-the-plant')
})
