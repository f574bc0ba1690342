// A copy of a proved delivery with another body: only an administrator makes one, and it looks nowhere like a delivery of the sender.
import { createHash, createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { runCommand } from './command.ts'
import { gatewayToken, hookToken } from './gateway.ts'
import { startInside } from './inside.ts'
import { json, send } from './wire.ts'

const operator = 'operator-token-0123456789abcdef-012'
const admin = 'admin-token-0123456789abcdef-0123456'
const secret = 'github-secret-0123456789abcdef-01234'
const mapping = {
  id: 'github',
  match: { path: 'github' },
  verify: { scheme: 'github', secret },
  messageTemplate: '{{action}}',
  retain: true,
  deliver: false,
}
const forged = '{"action":"forged"}'

async function start() {
  const tokens = { operator: { token: operator, may: ['operate'] }, admin: { token: admin, may: ['admin'] } }
  const gateway = await startInside({ config: { hooks: { mappings: [mapping] }, tokens } })
  const port = Number(new URL(gateway.adminUrl).port)
  const ask = async (target: string, token = gatewayToken, body?: object) => {
    const method = body === undefined && !target.endsWith('/again') ? 'GET' : 'POST'
    const headers = [['authorization', `Bearer ${token}`] as const, ...json]
    const reply = await send(port, { method, target, headers, body: body === undefined ? '' : JSON.stringify(body) })
    return { status: reply.status, json: JSON.parse(String(reply.body)) as Record<string, unknown> }
  }
  const payload = '{"action":"opened"}'
  const signature = `sha256=${createHmac('sha256', secret).update(payload).digest('hex')}`
  const sent = await send(gateway.port, {
    target: '/hooks/github',
    headers: [...json, ['x-hub-signature-256', signature], ['x-github-event', 'ping'], ['x-github-delivery', '1']],
    body: payload,
  })
  expect(sent.status).toBe(200)
  const { deliveryId } = JSON.parse(String(sent.body)) as { deliveryId: string }
  return { gateway, ask, deliveryId }
}

test('a token with the right operate sends a proved delivery again, but not with another body', async () => {
  const { ask, deliveryId } = await start()
  const target = `/api/deliveries/${deliveryId}/again`
  expect((await ask(target, operator, { body: forged })).status).toBe(401)
  const same = await ask(target, operator)
  expect(same.status).toBe(200)
  const shown = await ask(`/api/deliveries/${String(same.json['deliveryId'])}`)
  expect(shown.json).toMatchObject({ state: 'accepted', edited: false, admitted: { token: false, scheme: 'github' } })
  expect((await ask('/api/deliveries')).json['deliveries']).toHaveLength(2)
})

test('a delivery with another body is marked as edited everywhere, has no proof, and its audit entry has the hash of the body', async () => {
  const { gateway, ask, deliveryId } = await start()
  const made = await ask(`/api/deliveries/${deliveryId}/again`, admin, { body: forged })
  const id = String(made.json['deliveryId'])
  expect(made.json['state']).toBe('accepted')
  const { json: shown } = await ask(`/api/deliveries/${id}`)
  expect(shown).toMatchObject({ edited: true, mappingId: 'github', admitted: { token: false, scheme: null } })
  expect((await ask(`/api/deliveries/${id}/request`)).json).toMatchObject({ body: forged, verifiedBy: null })
  expect((await ask('/api/deliveries')).json['deliveries']).toMatchObject([{ edited: false }, { edited: true }])
  const [job] = shown['jobs'] as { runId: string; deliveryId: string }[]
  const headers = [['authorization', `Bearer ${hookToken}`] as const]
  const run = await send(gateway.port, { method: 'GET', target: `/hooks/runs/${job?.runId}`, headers })
  // no caller started it, so none sees its run
  expect(run.status).toBe(404)
  const { dir } = gateway
  expect((await runCommand(['show', id], { dir })).stdout).toMatch(/edited +an operator replaced the body/)
  expect((await runCommand(['list'], { dir })).stdout).toMatch(/\(edited\)/)
  const bodySha256 = createHash('sha256').update(forged).digest('hex')
  const { stdout } = await runCommand(['audit', '--json'], { dir })
  expect(stdout).toContain(`"bodySha256":"${bodySha256}"`)
  expect(stdout).not.toContain('forged')
  // a copy of the copy stays edited
  const copy = await ask(`/api/deliveries/${id}/again`, operator)
  expect((await ask(`/api/deliveries/${String(copy.json['deliveryId'])}`)).json).toMatchObject({ edited: true })
})
