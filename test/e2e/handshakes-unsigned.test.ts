// Handshakes before a secret exists: they are answered but create no delivery. A secret that the sender transmits is accepted only for ten
// minutes after "hookloom verify --arm".
import { createHmac } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import type { AuditPage } from '../../src/model/api/audit.ts'
import { signed } from '../unit/gateway/proofs/verifiers/stage.ts'
import { readVerdict } from './answers.ts'
import {
  buildExpectedAnswer,
  type HandshakeGateway,
  asJson,
  asText,
  findRow,
  startHandshakeGateway,
  toShape,
} from './handshake-stage.ts'
import { missingVectors, readVectors, toSchemeId } from './vectors.ts'
import { type Headers, json, type RequestParts } from './wire.ts'

const graphWord = 'Validation: Testing client application reachability for subscription Request-Id: 25460e7d'

let gateway: HandshakeGateway
beforeEach(async () => {
  gateway = await startHandshakeGateway()
})

describe('unsigned handshakes by POST', () => {
  test('monday gets its challenge back as JSON, if the body has no other field', async () => {
    const sendMonday = (body: string) => gateway.sendHandshake({ target: '/hooks/monday', headers: json, body })
    expect(toShape(await sendMonday('{"challenge":"tok-123"}'))).toEqual(
      buildExpectedAnswer({
        status: 200,
        type: asJson,
        body: '{"challenge":"tok-123"}',
      }),
    )
    for (const body of ['{"challenge":"tok-123","event":{}}', '{"challenge":"<b>"}', '{"challenge":{}}', 'challenge']) {
      expect(readVerdict(await sendMonday(body))).toBe('unauthorized')
    }
  })

  test('Microsoft Graph gets its validation token back, decoded and as text', async () => {
    const sendGraph = (token: string) =>
      gateway.sendHandshake({
        target: `/hooks/microsoft-graph?validationToken=${encodeURIComponent(token)}`,
        headers: [['content-type', asText]],
      })
    expect(toShape(await sendGraph(graphWord))).toEqual(buildExpectedAnswer({ body: graphWord }))
    expect(readVerdict(await sendGraph('<script>alert(1)</script>'))).toBe('unauthorized')
  })

  test('Slack may check the certificate with a form that it does not sign, and may send nothing else without a signature', async () => {
    const form: Headers = [['content-type', 'application/x-www-form-urlencoded']]
    const sendSlack = (body: string) => gateway.sendHandshake({ target: '/hooks/slack', headers: form, body })
    expect(toShape(await sendSlack('ssl_check=1&token=abc'))).toEqual(buildExpectedAnswer({ body: '' }))
    expect(readVerdict(await sendSlack('ssl_check=0&token=abc'))).toBe('unauthorized')
    expect(readVerdict(await sendSlack('command=%2Fdeploy&text=ssl_check%3D1'))).toBe('unauthorized')
  })

  test('WooCommerce and Bitbucket may send a ping if its body has no other field', async () => {
    const form: Headers = [['content-type', 'application/x-www-form-urlencoded']]
    const sendWoo = (body: string) => gateway.sendHandshake({ target: '/hooks/woocommerce', headers: form, body })
    expect(toShape(await sendWoo('webhook_id=12'))).toEqual(buildExpectedAnswer({ body: '' }))
    expect(readVerdict(await sendWoo('webhook_id=12&order=1'))).toBe('unauthorized')
    const sendBitbucket = (key: string) =>
      gateway.sendHandshake({
        target: '/hooks/bitbucket-server',
        headers: [...json, ['x-event-key', key]],
        body: '{"test":true}',
      })
    expect(toShape(await sendBitbucket('diagnostics:ping'))).toEqual(buildExpectedAnswer({ body: '' }))
    expect(readVerdict(await sendBitbucket('repo:refs_changed'))).toBe('unauthorized')
  })

  const handed = 'b537207f20cbfa02357cf448134da559e8bd39d61597dcd5631b8012eae53e81'
  const greetings: [string, string, Headers, string, RequestParts][] = [
    ['asana', 'x-hook-signature', [['x-hook-secret', handed]], '', buildAsanaHandshake(handed)],
    ['notion', 'x-notion-signature', [], 'sha256=', buildNotionHandshake(handed)],
  ]

  test.each(greetings)(
    'the secret of %s is refused while the mapping is not armed',
    async (_, header, __, prefix, greeting) => {
      expect(readVerdict(await gateway.sendHandshake(greeting))).toBe('unauthorized')
      expect(readVerdict(await gateway.ask(signHanded(greeting.target, header, prefix, handed)))).toBe('unauthorized')
    },
  )

  test.each(greetings)(
    'the secret of %s is accepted once while the mapping is armed, and verifies later requests',
    async (id, header, echoed, prefix, greeting) => {
      expect(readVerdict(await gateway.ask(signHanded(greeting.target, header, prefix, handed)))).toBe('unauthorized')
      expect((await gateway.callAdmin('POST', `/api/mappings/${id}/arm`)).status).toBe(200)
      const reply = await gateway.sendHandshake(greeting)
      expect(toShape(reply)).toEqual(buildExpectedAnswer({ body: '' }))
      expect(reply.headers['x-hook-secret']).toBe(echoed[0]?.[1])
      expect(readVerdict(await gateway.sendHandshake(greeting))).toBe('unauthorized')
      expect(readVerdict(await gateway.ask(signHanded(greeting.target, header, prefix, handed)))).toBe('accepted')
      expect(readVerdict(await gateway.sendHandshake(signHanded(greeting.target, header, prefix, `${handed}0`)))).toBe(
        'unauthorized',
      )
    },
  )

  test.each(greetings)(
    'the audit log has an entry for the secret of %s, without the secret itself',
    async (id, _, __, ___, greeting) => {
      await gateway.callAdmin('POST', `/api/mappings/${id}/arm`)
      expect((await gateway.sendHandshake(greeting)).status).toBe(200)
      const readLog = async () => (await gateway.callAdmin('GET', '/api/audit?limit=100')).body
      await expect.poll(readLog).toContain('"act":"secret.store"')
      const text = await readLog()
      const { entries } = JSON.parse(text) as AuditPage
      expect(entries.filter(({ act }) => act === 'secret.store')).toMatchObject([
        { by: { kind: 'sender', name: id }, target: id, outcome: 'done', details: {} },
      ])
      expect(text).not.toContain(handed)
    },
  )

  test.each(greetings)('the window for the secret of %s closes after ten minutes', async (id, _, __, ___, greeting) => {
    await gateway.callAdmin('POST', `/api/mappings/${id}/arm`)
    gateway.time.now += 600_000
    expect(readVerdict(await gateway.sendHandshake(greeting))).toBe('unauthorized')
    await gateway.callAdmin('POST', `/api/mappings/${id}/arm`)
    gateway.time.now += 599_999
    expect((await gateway.sendHandshake(greeting)).status).toBe(200)
  })

  test('arming a mapping does not arm another one, and an unknown mapping cannot be armed', async () => {
    await gateway.callAdmin('POST', '/api/mappings/asana/arm')
    expect(readVerdict(await gateway.sendHandshake(buildNotionHandshake(handed)))).toBe('unauthorized')
    expect((await gateway.callAdmin('POST', '/api/mappings/nobody/arm')).status).toBe(404)
  })

  test('a handshake that must be signed is not answered without a signature', async () => {
    const [greeting, ping] = [buildAsanaHandshake(handed), '{"events":[]}']
    expect(readVerdict(await gateway.sendHandshake({ ...greeting, body: ping }))).toBe('unauthorized')
  })

  test('the empty heartbeat of Asana is answered if it is signed', async () => {
    await gateway.callAdmin('POST', '/api/mappings/asana/arm')
    await gateway.sendHandshake(buildAsanaHandshake(handed))
    const heartbeat = signHanded('/hooks/asana', 'x-hook-signature', '', handed, '{"events":[]}')
    expect(toShape(await gateway.sendHandshake(heartbeat))).toEqual(buildExpectedAnswer({ body: '' }))
  })
})

function buildAsanaHandshake(secret: string): RequestParts {
  return { target: '/hooks/asana', headers: [...json, ['x-hook-secret', secret]], body: '{}' }
}

function buildNotionHandshake(secret: string): RequestParts {
  return { target: '/hooks/notion', headers: json, body: JSON.stringify({ verification_token: secret }) }
}

function signHanded(target: string, header: string, prefix: string, secret: string, body = '{"events":[{}]}') {
  const signature = prefix + createHmac('sha256', secret).update(body).digest('hex')
  return { target, headers: [...json, [header, signature]], body } satisfies RequestParts
}

/** Two published examples have a secret that is too short for a configuration. */
const published = readVectors()?.handshakes.filter(
  ({ scheme }) => !/^(x-twitter|google-channel)$/.test(toSchemeId(scheme)),
)

describe.skipIf(published === undefined)(`published handshakes (skipped when ${missingVectors})`, () => {
  test.each((published ?? []).map((handshake) => [handshake.name, handshake] as const))(
    'the published handshake %s is answered as documented',
    async (_, handshake) => {
      const { method, query, body, expect: expected } = handshake
      const id = toSchemeId(handshake.scheme)
      const proof = handshake.needsSignature ? signed(findRow(id), { at: gateway.time.now, body }).headers : {}
      const parts = {
        method,
        target: `/hooks/${id}${query}`,
        headers: Object.entries({ ...proof, ...handshake.headers }),
        body,
      }
      // Asana's secret is accepted only after `verify --arm`
      await gateway.callAdmin('POST', '/api/mappings/asana/arm')
      const reply = await gateway.sendHandshake(parts)
      expect(expected.status).toContain(reply.status)
      expect(reply.body).toContain(expected.body ?? '')
      expect(reply.headers).toMatchObject(expected.header)
    },
  )
})
