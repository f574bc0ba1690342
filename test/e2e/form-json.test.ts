// Forms with JSON in a field: a mapping names the field, or the sender is known for it.
import { createHmac } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type Inside, readStore, startInside } from './inside.ts'
import { bearer, type Headers, send } from './wire.ts'

const secret = '8f14e45fceea167a5a36dedd4bea2543'
const wake = { action: 'wake', wakeMode: 'next-heartbeat' } as const
const mappings = [
  {
    id: 'kuma',
    ...wake,
    match: { path: 'kuma', payload: { 'data.heartbeat.status': 0 } },
    jsonFields: ['data'],
    textTemplate: '{{data.monitor.name}}: {{data.heartbeat.msg}} {{more}}',
  },
  { id: 'code', ...wake, match: { path: 'code' }, jsonFields: ['rawRequest'], transform: { module: 'fields.js' } },
  {
    id: 'mandrill',
    ...wake,
    match: { path: 'mandrill' },
    verify: { scheme: 'url-secret', secret },
    forEach: 'mandrill_events',
    textTemplate: '{{mandrill_events[0].event}} {{mandrill_events[0].msg.email}}',
  },
  {
    id: 'signed',
    ...wake,
    match: { path: 'signed' },
    verify: { scheme: 'generic-hmac', secret, header: 'x-sum' },
    transform: { module: 'fields.js' },
  },
]
const fields = `export default ({ payload }) => ({
  text: Object.entries(payload).map(([name, value]) => name + ' ' + typeof value + ' ' + JSON.stringify(value)).join(),
})`

let gateway: Inside
beforeAll(async () => {
  gateway = await startInside({ config: { hooks: { mappings } }, files: { 'hooks/transforms/fields.js': fields } })
})

const form: Headers = [['content-type', 'application/x-www-form-urlencoded']]
const toForm = (entries: Record<string, string>) => new URLSearchParams(entries).toString()

async function post(target: string, headers: Headers, body: string) {
  const answer = await send(gateway.port, { target: `/hooks/${target}`, headers, body })
  const { deliveryId } = z
    .looseObject({ deliveryId: z.string().optional() })
    .parse(answer.body === '' ? {} : JSON.parse(answer.body))
  const events = await readStore(gateway.dir, (store) => store.events({ limit: 100 }))
  const texts = events.filter((event) => event.deliveryId === deliveryId).map(({ text }) => text)
  return { status: answer.status, texts }
}

describe('a form with JSON in a field', () => {
  const data = '{"monitor":{"name":"Shop & co"},"heartbeat":{"status":0,"msg":"timeout é"}}'
  const kuma = [...bearer, ...form]

  test('conditions and templates read the fields of the JSON, in a form and in a multipart form', async () => {
    const expected = { status: 200, texts: ['Shop & co: timeout é {"a":1}'] }
    expect(await post('kuma', kuma, toForm({ data, more: '{"a":1}' }))).toEqual(expected)
    const sent = new Response(
      Object.entries({ data, more: '{"a":1}' }).reduce((all, [name, value]) => {
        all.append(name, value)
        return all
      }, new FormData()),
    )
    const type: Headers = [['content-type', sent.headers.get('content-type') ?? '']]
    expect(await post('kuma', [...bearer, ...type], await sent.text())).toEqual(expected)
    expect((await post('kuma', kuma, toForm({ data: data.replace('"status":0', '"status":1') }))).status).toBe(204)
  })

  test('a transform gets the JSON in the named field, and every other field as the text that was sent', async () => {
    const sent = toForm({ rawRequest: '{"q1":"yes"}', formID: '5', other: '{"a":1}' })
    expect((await post('code', kuma, sent)).texts).toEqual([
      'rawRequest object {"q1":"yes"},formID string "5",other string "{\\"a\\":1}"',
    ])
    expect((await post('code', kuma, 'rawRequest=5')).texts).toEqual(['rawRequest string "5"'])
    expect((await post('code', kuma, 'rawRequest=%7Bno')).texts).toEqual(['rawRequest string "{no"'])
    const repeated = 'rawRequest=%5B1%5D&rawRequest=%5B2%5D&rawRequest=x'
    expect((await post('code', kuma, repeated)).texts).toEqual(['rawRequest object [[1],[2],"x"]'])
    expect((await post('code', kuma, `rawRequest=${'['.repeat(64)}${']'.repeat(64)}`)).status).toBe(400)
  })

  const events = '[{"event":"send","msg":{"email":"a@example.com"}},{"event":"open","msg":{"email":"b@example.com"}}]'
  const signature: Headers = [['x-mandrill-signature', 'c2lnbmF0dXJl']]

  test('each event of Mandrill becomes an action, and no mapping needs to name its field', async () => {
    const { status, texts } = await post(
      `mandrill/${secret}`,
      [...form, ...signature],
      toForm({ mandrill_events: events }),
    )
    expect([status, texts.toSorted()]).toEqual([200, ['open b@example.com', 'send a@example.com']])
  })

  test('a header that is not signed does not change how a signed body is read', async () => {
    const body = toForm({ mandrill_events: '[1]' })
    const sum: Headers = [['x-sum', createHmac('sha256', secret).update(body).digest('hex')]]
    expect((await post('signed', [...form, ...sum, ...signature], body)).texts).toEqual([
      'mandrill_events string "[1]"',
    ])
  })
})
