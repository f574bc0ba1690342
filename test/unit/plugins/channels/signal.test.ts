import { expect, it } from 'vitest'
import { signalChannel } from '../../../../src/plugins/channels/signal.ts'
import { buildRpcError, toResult } from '../../../e2e/fakes/signal.ts'
import { createFetch, toOutgoing, openChannel, sectionOf } from './stage.ts'

function createChannel(fetch?: typeof globalThis.fetch) {
  return openChannel(signalChannel, sectionOf(signalChannel).parse({}), fetch && { fetch })
}

it.each([
  '+15550100',
  'signal:+1 555-0100',
  'uuid:0B7A3B3C-58A4-4B13-8F55-3B2E6F1C9C11',
  'username:alice.42',
  'group:Pmpi+EfPWmsxiomLe9Nx2XF9HOE483p6iKiFj65iMwI=',
])('the address %s is a valid recipient', (to) => {
  expect(createChannel().whyNot(to)).toBeUndefined()
})

it.each(['15550100', 'alice', 'uuid:17', 'group:no spaces here', 'group:short', 'username:', '+0155501000', ''])(
  'the recipient "%s" is refused, and the reason names the valid forms',
  (to) => {
    expect(createChannel().whyNot(to)).toMatch(/uuid:<id>, username:<name> or group:<id>/)
  },
)

it.each([
  [-1, undefined, 'permanent'],
  [-3, undefined, 'ambiguous'],
  [-4, undefined, 'permanent'],
  [-5, undefined, 'rate-limited'],
  [-32_602, undefined, 'permanent'],
  [-32_603, undefined, 'ambiguous'],
  [-1, 'UNREGISTERED_FAILURE', 'permanent'],
  [-1, 'NETWORK_FAILURE', 'ambiguous'],
  [-1, 'RATE_LIMIT_FAILURE', 'rate-limited'],
  [-1, 'IDENTITY_FAILURE', 'permanent'],
] as const)('the error %i with the recipient result %s is a failure of the kind %s', async (code, type, kind) => {
  const { status, body } = buildRpcError(code, 'The build is green.', type && [toResult(type)])
  const result = await createChannel(createFetch(status, body)).send(toOutgoing({ to: '+15550100' }))
  expect(result.kind).toBe(kind)
  expect(result).toHaveProperty('detail', expect.stringContaining(`(${code})`))
  expect(JSON.stringify(result)).not.toContain('The build is green')
})

it('a rate-limited message waits as long as Signal asks', async () => {
  const results = [toResult('RATE_LIMIT_FAILURE', { token: 'challenge-token', retryAfterSeconds: 86_400 })]
  const { status, body } = buildRpcError(-5, 'Failed to send message due to rate limiting', results)
  const result = await createChannel(createFetch(status, body)).send(toOutgoing({ to: '+15550100' }))
  expect(result).toMatchObject({ kind: 'rate-limited', retryAfterMs: 86_400_000 })
  expect(JSON.stringify(result)).not.toContain('challenge-token')
})

it('no piece is so long that Signal makes an attachment of it, even with letters of several bytes', () => {
  const pieces = createChannel().split('Привет, мир. '.repeat(500))
  expect(pieces.length).toBeGreaterThan(5)
  for (const piece of pieces) expect(Buffer.byteLength(piece)).toBeLessThanOrEqual(2_000)
})
