// Several senders on one path: which credential admits which request, and how guessing is slowed down.
import { createHmac } from 'node:crypto'
import { parse } from 'jsonc-parser'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { MappingInput } from '../../src/define.ts'
import { readBlocks } from '../pages.ts'
import { readDeliveryId, readVerdict } from './answers.ts'
import { type SignedGateway, startSignedGateway } from './proving.ts'
import { bearer, type Headers, json, type Reply, type RequestParts } from './wire.ts'

const secrets = {
  github: 'github-secret-of-it',
  stripe: 'whsec_stripe-secret',
  slack: 'slack-secret-of-it',
  meta: 'meta-secret-of-it',
}

const hmac = (secret: string, text: string) => createHmac('sha256', secret).update(text).digest('hex')

type Sign = (gateway: SignedGateway, body: string, secret?: string) => Headers
const signGitHub: Sign = (_, body, secret = secrets.github) => [
  ['x-github-event', 'push'],
  ['x-hub-signature-256', `sha256=${hmac(secret, body)}`],
]
const signMeta: Sign = (_, body, secret = secrets.meta) => [['x-hub-signature-256', `sha256=${hmac(secret, body)}`]]
const signStripe: Sign = ({ time }, body, secret = secrets.stripe) => {
  const at = time.now / 1000
  return [['stripe-signature', `t=${at},v1=${hmac(secret, `${at}.${body}`)}`]]
}
const signSlack: Sign = ({ time }, body, secret = secrets.slack) => {
  const at = time.now / 1000
  return [
    ['x-slack-request-timestamp', String(at)],
    ['x-slack-signature', `v0=${hmac(secret, `v0:${at}:${body}`)}`],
  ]
}

const wrongBearer: Headers = [['authorization', 'Bearer a-guess-of-the-hook-token']]
const forged: Headers = [['x-hub-signature-256', `sha256=${'0'.repeat(64)}`]]

describe('many senders on one path', () => {
  let gateway: SignedGateway
  beforeAll(async () => {
    gateway = await startSignedGateway([
      // sorted neither by name nor as the table of senders: the proof decides, not the order
      { id: 'slack', match: { path: 'in' }, verify: { scheme: 'slack', secret: secrets.slack } },
      {
        id: 'named-stripe',
        match: { path: 'in', source: 'stripe' },
        verify: { scheme: 'github', secret: 'another-secret-of-it' },
      },
      { id: 'stripe', match: { path: 'in' }, verify: { scheme: 'stripe', secret: secrets.stripe } },
      { id: 'github', match: { path: 'in' }, verify: { scheme: 'github', secret: secrets.github } },
      { id: 'meta', match: { path: 'in' }, verify: { scheme: 'meta', secret: secrets.meta } },
      { id: 'open', match: { path: 'mixed', payload: { kind: 'open' } } },
      { id: 'closed', match: { path: 'mixed' }, verify: { scheme: 'github', secret: secrets.github } },
      { id: 'both', match: { path: 'both' }, verify: { scheme: 'github', secret: secrets.github, also: 'token' } },
      {
        id: 'rotating',
        match: { path: 'rotating' },
        verify: { scheme: 'github', secrets: ['the-new-secret-of-it', 'the-old-secret-of-it'] },
      },
      {
        id: 'only-pushes',
        match: { path: 'pushes', event: 'push' },
        verify: { scheme: 'github', secret: 'long-enough-for-all' },
      },
    ])
  })

  const post = (path: string, body: string, headers: Headers) =>
    gateway.ask({ target: `/hooks/${path}`, headers: [...json, ...headers], body })

  async function readRecord(reply: Reply) {
    const id = readDeliveryId(reply)
    return (await gateway.deliveries()).find(({ deliveryId }) => deliveryId === id)
  }

  test.each([
    ['github', signGitHub],
    ['stripe', signStripe],
    ['slack', signSlack],
    ['meta', signMeta],
  ])('a delivery that %s signed goes to its own mapping and no other', async (id, sign) => {
    const body = `{"from":"${id}"}`
    expect(await readRecord(await post('in', body, sign(gateway, body)))).toMatchObject({ mappingId: id, source: id })
  })

  test.each([
    ['github', signStripe, secrets.github],
    ['stripe', signSlack, secrets.stripe],
    ['slack', signGitHub, secrets.slack],
    ['meta', signStripe, secrets.meta],
  ])('the secret of %s is not valid for another sender', async (_, sign, secret) => {
    expect(readVerdict(await post('in', '{}', sign(gateway, '{}', secret)))).toBe('unauthorized')
  })

  test('a delivery belongs to the sender that signed it, even if its payload names another source', async () => {
    const body = '{"source":"stripe","event":"charge.succeeded"}'
    const record = await readRecord(await post('in', body, signGitHub(gateway, body)))
    expect(record).toMatchObject({ mappingId: 'github', source: 'github' })
  })

  test('headers of another sender in addition to a proof prove nothing', async () => {
    const body = '{"a":1}'
    const both = [...signStripe(gateway, body, 'guess'), ...signGitHub(gateway, body)]
    expect(await readRecord(await post('in', body, both))).toMatchObject({ mappingId: 'github', source: 'github' })
    expect(
      readVerdict(await post('in', body, [...signStripe(gateway, body, 'guess'), ...signGitHub(gateway, body, 'x')])),
    ).toBe('unauthorized')
  })

  test('the hook token opens no signed mapping, with or without the headers of a signature', async () => {
    expect(readVerdict(await post('in', '{}', bearer))).toBe('unauthorized')
    expect(readVerdict(await post('in', '{}', [...bearer, ...forged]))).toBe('unauthorized')
    expect(readVerdict(await post('in', '{}', [['x-service-token', bearer[0]?.[1] ?? '']]))).toBe('unauthorized')
  })

  test('on a path with an open and a signed mapping, a token opens only the first, and a signature only the second', async () => {
    const open = '{"kind":"open"}'
    expect(await readRecord(await post('mixed', open, bearer))).toMatchObject({ mappingId: 'open' })
    // the token opens a mapping of this path, whose condition is false; it does not open the signed one
    expect(readVerdict(await post('mixed', '{"kind":"x"}', bearer))).toBe('skipped')
    expect(await readRecord(await post('mixed', open, signGitHub(gateway, open)))).toMatchObject({
      mappingId: 'closed',
    })
  })

  test('a mapping with also: "token" accepts the signature and the token only together', async () => {
    const sign = signGitHub(gateway, '{}')
    expect(readVerdict(await post('both', '{}', sign))).toBe('unauthorized')
    expect(readVerdict(await post('both', '{}', bearer))).toBe('unauthorized')
    expect(readVerdict(await post('both', '{}', [...bearer, ...forged]))).toBe('unauthorized')
    expect(readVerdict(await post('both', '{}', [...wrongBearer, ...sign]))).toBe('unauthorized')
    expect(await readRecord(await post('both', '{}', [...bearer, ...sign]))).toMatchObject({ mappingId: 'both' })
  })

  test('during a rotation, a delivery signed with the old or the new secret is accepted, and with any other secret it is refused', async () => {
    for (const secret of ['the-new-secret-of-it', 'the-old-secret-of-it']) {
      expect(readVerdict(await post('rotating', '{}', signGitHub(gateway, '{}', secret)))).toBe('accepted')
    }
    expect(readVerdict(await post('rotating', '{}', signGitHub(gateway, '{}', 'older')))).toBe('unauthorized')
  })

  test('a delivery that matches no conditions is skipped if its signature is valid, and refused if not', async () => {
    const ping: Headers = [
      ['x-github-event', 'ping'],
      ['x-hub-signature-256', `sha256=${hmac('long-enough-for-all', '{}')}`],
    ]
    expect(readVerdict(await post('pushes', '{}', ping))).toBe('skipped')
    expect(readVerdict(await post('pushes', '{}', [['x-github-event', 'ping'], ...forged]))).toBe('unauthorized')
  })

  test('a signature never opens the hooks wake and agent', async () => {
    const body = '{"text":"x","message":"x"}'
    for (const path of ['wake', 'agent']) {
      expect(readVerdict(await post(path, body, signGitHub(gateway, body)))).toBe('unauthorized')
      expect(readVerdict(await post(path, body, [...bearer, ...signGitHub(gateway, body)]))).toBe('accepted')
    }
  })

  test('the operator sees the reasons for a refusal even if the request has no proof', async () => {
    const reply = await post('in', '{}', [])
    expect(readVerdict(reply)).toBe('unauthorized')
    const { body } = await gateway.callAdmin('GET', '/api/refusals')
    const Refusals = z.object({ refusals: z.array(z.looseObject({ requestId: z.string(), trace: z.array(z.json()) })) })
    const refusal = Refusals.parse(JSON.parse(body)).refusals.find(
      ({ requestId }) => requestId === reply.headers['x-request-id'],
    )
    expect(refusal?.trace).toContainEqual({
      mappingId: 'stripe',
      matched: false,
      why: 'the request has no proof of the scheme stripe',
    })
  })
})

describe('signed mappings in the pages', () => {
  const mappings = ['src/cli/scaffold/README.md', 'src/gateway/proofs/verifiers/README.md']
    .flatMap(readBlocks)
    .filter(({ language, text }) => language === 'jsonc' && /"scheme": "(github|generic-hmac)"/.test(text))
    .map(({ text }): MappingInput => parse(text.replaceAll(/\$\{\w+\}/g, 'its-secret-of-the-page')))

  test('the sections verify in the pages prove requests as printed', async () => {
    const gateway = await startSignedGateway(
      mappings.map(({ match, verify }) => ({ match: { path: match?.path }, verify })),
    )
    const at = String(gateway.time.now / 1000)
    const proofs: Record<string, (secret: string) => Headers> = {
      github: (secret) => signGitHub(gateway, '{}', secret),
      acme: (secret) => [
        ['x-acme-time', at],
        ['x-acme-signature', `sha256=${hmac(secret, `${at}.{}`)}`],
      ],
      shop: (secret) => [['x-shop-signature', `sha256=${hmac(secret, '{}')}`]],
    }
    expect(new Set(mappings.map(({ match }) => match?.path))).toEqual(new Set(Object.keys(proofs)))
    for (const [path, proof] of Object.entries(proofs)) {
      const post = async (secret: string) =>
        readVerdict(await gateway.ask({ target: `/hooks/${path}`, headers: [...json, ...proof(secret)], body: '{}' }))
      expect([path, await post('its-secret-of-the-page'), await post('another')]).toEqual([
        path,
        'accepted',
        'unauthorized',
      ])
    }
  })
})

describe('locked-out clients of signed hooks', () => {
  const client = '203.0.113.7'
  const other = '203.0.113.8'
  let gateway: SignedGateway
  beforeEach(async () => {
    gateway = await startSignedGateway([
      { id: 'signed', match: { path: 'in' }, verify: { scheme: 'github', secret: secrets.github } },
      { id: 'asks', match: { path: 'in' }, verify: { scheme: 'microsoft-graph', secret: 'state-of-the-graph' } },
      {
        id: 'meta',
        match: { path: 'meta' },
        verify: { scheme: 'meta', secret: 'long-enough-for-all', verifyToken: 'right-word' },
      },
      { id: 'both', match: { path: 'both' }, verify: { scheme: 'github', secret: secrets.github, also: 'token' } },
      { id: 'open', match: { path: 'in' } },
    ])
  })

  const post = (headers: Headers, from = client, target = '/hooks/in') =>
    gateway.ask({ target, headers: [...json, ...headers], body: '{"a":1}' }, from)
  const signValid = () => signGitHub(gateway, '{"a":1}')

  async function sendFailing(times: number, parts: Headers | RequestParts, from = client): Promise<string[]> {
    const verdicts: string[] = []
    for (let count = 0; count < times; count++) {
      const reply = 'target' in parts ? await gateway.ask(parts, from) : await post(parts, from)
      verdicts.push(readVerdict(reply))
    }
    return verdicts
  }
  const twenty = Array.from({ length: 20 }, () => 'unauthorized')

  test('a client with twenty forged signatures is locked out for a minute, and other clients are not', async () => {
    expect(await sendFailing(20, forged)).toEqual(twenty)
    const limited = await post(forged)
    expect([readVerdict(limited), limited.headers['retry-after']]).toEqual(['rate-limited', '60'])
    expect(readVerdict(await post(forged, other))).toBe('unauthorized')
    gateway.time.now += 60_000
    expect(readVerdict(await post(forged))).toBe('unauthorized')
  })

  test('a locked-out client is accepted with a valid signature, because many customers send from one address', async () => {
    await sendFailing(25, forged)
    expect(readVerdict(await post(forged))).toBe('rate-limited')
    expect(readVerdict(await post(signValid()))).toBe('accepted')
    // the guesses were signatures, so the token is not locked out
    expect(readVerdict(await post(bearer))).toBe('accepted')
  })

  test('a client that is locked out for guesses of the token is accepted with a valid signature', async () => {
    expect(await sendFailing(20, wrongBearer)).toEqual(twenty)
    expect(readVerdict(await post(bearer))).toBe('rate-limited')
    expect(readVerdict(await post(signValid()))).toBe('accepted')
    expect(readVerdict(await post([...bearer, ...signValid()]))).toBe('accepted')
    expect(readVerdict(await post([...bearer, ...signValid()], client, '/hooks/both'))).toBe('rate-limited')
  })

  test('a client cannot guess the token with forged signatures', async () => {
    await sendFailing(20, [...wrongBearer, ...forged])
    expect(readVerdict(await post(bearer))).toBe('rate-limited')
    expect(readVerdict(await post(bearer, other))).toBe('accepted')
  })

  test('a client that is locked out for signatures cannot guess the token', async () => {
    await sendFailing(20, forged)
    await sendFailing(20, [...wrongBearer, ...forged])
    expect(readVerdict(await post(bearer))).toBe('rate-limited')
  })

  test('a locked-out client gets the same answer for a right and a wrong token', async () => {
    await sendFailing(20, wrongBearer)
    const greeting = '/hooks/in?validationToken=hello'
    for (const [target, proof] of [
      ['/hooks/in', forged],
      ['/hooks/in', []],
      [greeting, []],
    ] as const) {
      const [right, wrong] = [
        await post([...bearer, ...proof], client, target),
        await post([...wrongBearer, ...proof], client, target),
      ]
      expect([right.status, right.body]).toEqual([wrong.status, wrong.body])
    }
  })

  test('a client that guesses the verify token of a handshake is rate-limited, but the right token is still answered', async () => {
    const ask = (word: string, from: string) =>
      gateway.ask(
        {
          method: 'GET',
          target: `/hooks/meta?hub.mode=subscribe&hub.verify_token=${word}&hub.challenge=1158201444`,
        },
        from,
      )
    for (let count = 0; count < 20; count++) expect((await ask(`guess-${count}`, client)).status).toBe(401)
    expect(readVerdict(await ask('guess', client))).toBe('rate-limited')
    expect(await ask('right-word', other)).toMatchObject({ status: 200, body: '1158201444' })
    expect(await ask('right-word', client)).toMatchObject({ status: 200, body: '1158201444' })
  })
})
