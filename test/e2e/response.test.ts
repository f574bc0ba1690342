// The answer that a mapping or a transform sets: what its sender gets, also for a duplicate and after a restart.
import { parse } from 'jsonc-parser'
import { describe, expect, test } from 'vitest'
import { readBlock } from '../pages.ts'
import { readDeliveryId } from './answers.ts'
import { runCommand } from './command.ts'
import { gatewayToken } from './gateway.ts'
import { startInside } from './inside.ts'
import { bearer, type Headers, post, type Reply, send } from './wire.ts'

const twiml = '<Response><Message>Thanks, {{Body}}</Message></Response>'
const mappings = [
  { match: { path: 'sms' }, deliver: false, response: { status: 202, contentType: 'text/xml', body: twiml } },
  { match: { path: 'code' }, deliver: false, transform: { module: 'code.ts' }, response: { body: 'of the mapping' } },
  { match: { path: 'items' }, deliver: false, forEach: 'items' },
]
const files = {
  'hooks/transforms/code.ts': `export default ({ payload }) => {
    if (payload.fails) throw new Error('no')
    if (payload.skips) return null
    if (payload.hangs) return new Promise(() => {})
    if (payload.several) return [{ message: 'a' }, { message: 'b' }]
    return { message: 'x', response: { contentType: 'application/json', body: JSON.stringify({ echo: payload.n }) } }
  }`,
}
const config = { hooks: { mappings } }
const early = { answerWithinMs: 200, transforms: { timeoutMs: 1_000 } }
const keyed: Headers = [['idempotency-key', 'one']]
/** The parts of an answer that its sender sees. */
const toSeenAnswer = ({ status, body, headers }: Reply) => ({
  status,
  body,
  type: headers['content-type'],
  sniffing: headers['x-content-type-options'],
  policy: headers['content-security-policy'],
  deliveryId: headers['x-delivery-id'],
})

describe('the answer of a mapping', () => {
  test('a duplicate gets the same answer as the first request, even after a restart', async () => {
    const gateway = await startInside({ config, files })
    const body = { Body: '<Dial>+1</Dial>' }
    const first = await post(gateway.port, '/hooks/sms', body, keyed)
    expect(toSeenAnswer(first)).toEqual({
      status: 202,
      body: '<Response><Message>Thanks, &lt;Dial&gt;+1&lt;/Dial&gt;</Message></Response>',
      type: 'text/xml; charset=utf-8',
      sniffing: 'nosniff',
      policy: "sandbox; default-src 'none'",
      deliveryId: expect.stringMatching(/^[\da-f-]{36}$/),
    })
    const again = await post(gateway.port, '/hooks/sms', { Body: 'other' }, keyed)
    expect(again.headers['idempotent-replay']).toBe('true')
    expect(toSeenAnswer(again)).toEqual(toSeenAnswer(first))
    await gateway.stop()
    const next = await startInside({ dir: gateway.dir })
    const later = await post(next.port, '/hooks/sms', body, keyed)
    expect(later.headers['idempotent-replay']).toBe('true')
    expect(toSeenAnswer(later)).toEqual(toSeenAnswer(first))
  })

  test('hookloom show and the admin API show the answer with its type', async () => {
    const gateway = await startInside({ config, files })
    const { headers, body } = await post(gateway.port, '/hooks/sms', { Body: 'Ada' })
    const id = headers['x-delivery-id'] ?? ''
    const answer = { status: 202, contentType: 'text/xml', body }
    expect((await runCommand(['show', id, '--json'], { dir: gateway.dir })).json()[0]).toMatchObject({ answer })
    expect((await runCommand(['show', id], { dir: gateway.dir })).stdout).toContain(`202 text/xml ${body}`)
    const shown = await fetch(`${gateway.adminUrl}/api/deliveries/${id}`, {
      headers: { authorization: `Bearer ${gatewayToken}` },
    })
    expect(await shown.json()).toMatchObject({ answer })
  })

  test('the Slack command of the guide is answered with its text', async () => {
    const { verify: _, ...mapping } = parse(readBlock('src/core/mapping/README.md', 'jsonc', '"slack-command"'))
    const gateway = await startInside({ config: { hooks: { mappings: [{ ...mapping, deliver: false }] } } })
    const form: Headers = [...bearer, ['content-type', 'application/x-www-form-urlencoded']]
    const body = 'command=%2Fask&text=Is+%3Cbilling%3E+up%3F'
    const reply = await send(gateway.port, { target: '/hooks/slack-command', headers: form, body })
    expect(toSeenAnswer(reply)).toMatchObject({ status: 200, type: 'text/plain; charset=utf-8' })
    expect(reply.body).toContain('Is <billing> up?')
  })
})

describe('the answer of a transform', () => {
  test('the answer of a transform replaces that of its mapping', async () => {
    const gateway = await startInside({ config, files })
    const reply = await post(gateway.port, '/hooks/code', { n: 7 })
    expect(toSeenAnswer(reply)).toMatchObject({
      status: 200,
      body: '{"echo":7}',
      type: 'application/json; charset=utf-8',
    })
  })

  test.each([
    ['is parked', {}, { fails: true }, { status: 'parked' }],
    ['is answered before its transform ends', early, { hangs: true }, { status: 'pending' }],
    ['becomes several actions', {}, { several: true }, { runIds: [expect.any(String), expect.any(String)] }],
  ])(
    'a delivery that %s gets the receipt instead of the answer of its transform',
    async (_, hooks, payload, receipt) => {
      const gateway = await startInside({ config: { hooks: { mappings, ...hooks } }, files })
      const reply = await post(gateway.port, '/hooks/code', payload)
      expect(JSON.parse(reply.body)).toMatchObject({ ok: true, deliveryId: readDeliveryId(reply), ...receipt })
      expect(reply.headers).not.toHaveProperty('x-delivery-id')
    },
  )

  test('a delivery that its transform skips gets 204', async () => {
    const gateway = await startInside({ config, files })
    expect(await post(gateway.port, '/hooks/code', { skips: true })).toMatchObject({ status: 204, body: '' })
  })

  test('hookloom run shows the answer of a transform', async () => {
    const gateway = await startInside({ config, files })
    const run = (...args: string[]) => runCommand(['run', 'code', '-', ...args], { dir: gateway.dir, stdin: '{"n":7}' })
    expect((await run('--json')).json()[0]).toMatchObject({
      response: { status: 200, contentType: 'application/json', body: '{"echo":7}' },
    })
    expect((await run()).stdout).toContain('Answer to the sender: 200 application/json\n  {"echo":7}\n')
  })
})
