import { createServer } from 'node:net'
import { once } from 'node:events'
import { describe, expect, test } from 'vitest'
import { isPrivateAddress } from '../../../../../src/base/public-address.ts'
import {
  createPinnedFetch,
  markUseful,
  overHttps,
  type Transport,
} from '../../../../../src/gateway/proofs/verifiers/pinned-fetch.ts'
import { paypalCertificate, snsCertificate, snsConfirmation } from '../../../../../src/plugins/senders/certificates.ts'

const rule = { ...snsCertificate }
const good = 'https://sns.us-east-1.amazonaws.com/SimpleNotificationService-0123abcd.pem'

function createWorld(answer: { status: number; body: string } | Error) {
  const asked: string[] = []
  const clock = { now: 0 }
  const transport: Transport = async (url) => {
    asked.push(url.href)
    if (answer instanceof Error) throw answer
    return answer
  }
  return { asked, clock, fetch: createPinnedFetch({ now: () => clock.now, transport }) }
}

describe('refused URLs', () => {
  test.each([
    'http://sns.us-east-1.amazonaws.com/SimpleNotificationService-a.pem',
    'https://127.0.0.1/SimpleNotificationService-a.pem',
    'https://169.254.169.254/latest/meta-data/',
    'https://[::1]/SimpleNotificationService-a.pem',
    'https://2130706433/SimpleNotificationService-a.pem',
    'https://0x7f.1/SimpleNotificationService-a.pem',
    'https://localhost/SimpleNotificationService-a.pem',
    'https://sns.us-east-1.amazonaws.com.evil.example/SimpleNotificationService-a.pem',
    'https://evil.example/?sns.us-east-1.amazonaws.com/SimpleNotificationService-a.pem',
    'https://sns.us-east-1.amazonaws.com@evil.example/SimpleNotificationService-a.pem',
    'https://user:pass@sns.us-east-1.amazonaws.com/SimpleNotificationService-a.pem',
    'https://sns.us-east-1.amazonaws.com:8443/SimpleNotificationService-a.pem',
    'https://sns.us-east-1.amazonaws.com\\@evil.example/SimpleNotificationService-a.pem',
    'https://evil。example/SimpleNotificationService-a.pem',
    'https://sns。us-east-1。amazonaws。com/SimpleNotificationService-a.pem',
    'https://sns.us-east-1.amazonaws.com/?Action=GetEndpointAttributes&x=.pem',
    'https://sns.us-east-1.amazonaws.com/SimpleNotificationService-a.pem/../../x',
    'file:///etc/passwd',
    'not a url',
    '',
  ])('the URL %j is refused without a connection', async (url) => {
    const { fetch, asked } = createWorld({ status: 200, body: '' })
    expect(await fetch(url, rule)).toMatchObject({ ok: false, fault: 'sender' })
    expect(asked).toEqual([])
  })

  test('an IP address is refused even if a rule allows it as a host', async () => {
    const { fetch, asked } = createWorld({ status: 200, body: '' })
    for (const url of ['https://127.0.0.1/', 'https://[::1]/', 'https://2130706433/', 'https://0177.0.0.1/']) {
      expect(await fetch(url, { host: /./, maxAgeMs: 0 })).toMatchObject({ ok: false })
    }
    expect(asked).toEqual([])
  })

  test('an allowed name that resolves to this machine is refused', async () => {
    let connections = 0
    const server = createServer((socket) => {
      connections += 1
      socket.destroy()
    }).listen(0, 'localhost')
    await once(server, 'listening')
    const address = server.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    await expect(overHttps(new URL(`https://localhost:${port}/`))).rejects.toThrow('a private address')
    expect(connections).toBe(0)
    server.close()
  })

  test.each([
    '127.0.0.1',
    '10.1.2.3',
    '172.31.0.1',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '0.0.0.0',
    '::1',
    '::',
    'fe80::1',
    'fd00::1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '64:ff9b::7f00:1',
    'nonsense',
    '2002:7f00:1::',
    '192.88.99.1',
    '::ffff:127.0.0.1',
    'fec0::1',
  ])('the address %s is private', (address) => expect(isPrivateAddress(address)).toBe(true))

  test.each(['8.8.8.8', '172.32.0.1', '100.128.0.1', '2600:1f18::1', '::ffff:8.8.8.8'])(
    'the address %s is not private',
    (address) => expect(isPrivateAddress(address)).toBe(false),
  )
})

describe('fetched URLs', () => {
  test.each([
    [good, snsCertificate],
    ['https://sns.cn-north-1.amazonaws.com.cn/SimpleNotificationService-1.pem', snsCertificate],
    ['https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=a&Token=b', snsConfirmation],
    ['https://api.sandbox.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594', paypalCertificate],
  ])('the URL %s is fetched', async (url, allowed) => {
    const { fetch } = createWorld({ status: 200, body: 'pem' })
    expect(await fetch(url, allowed)).toEqual({ ok: true, body: 'pem' })
  })

  test('a redirect is not followed', async () => {
    const { fetch, asked } = createWorld({ status: 302, body: '' })
    expect(await fetch(good, rule)).toMatchObject({ ok: false, fault: 'sender' })
    expect(asked).toEqual([good])
  })

  test('a certificate is fetched once while it is fresh, even if many deliveries need it at the same time', async () => {
    const { fetch, asked, clock } = createWorld({ status: 200, body: 'pem' })
    await Promise.all([fetch(good, rule), fetch(good, rule), fetch(good, rule)])
    expect(asked.length).toBe(1)
    clock.now = rule.maxAgeMs
    await fetch(good, rule)
    expect(asked.length).toBe(2)
  })

  test('a response without a maximum age is fetched every time', async () => {
    const { fetch, asked } = createWorld({ status: 200, body: '' })
    const url = 'https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription'
    await fetch(url, snsConfirmation)
    await fetch(url, snsConfirmation)
    expect(asked.length).toBe(2)
  })

  test('a missing answer or a 503 counts as a fault of the gateway, a 404 as one of the sender, and a missing answer is not remembered', async () => {
    const { fetch, asked } = createWorld(new Error('ECONNRESET'))
    expect(await fetch(good, rule)).toMatchObject({ ok: false, fault: 'gateway' })
    expect(await fetch(good, rule)).toMatchObject({ ok: false, fault: 'gateway' })
    expect(asked.length).toBe(2)
    expect(await createWorld({ status: 503, body: '' }).fetch(good, rule)).toMatchObject({ fault: 'gateway' })
    expect(await createWorld({ status: 404, body: '' }).fetch(good, rule)).toMatchObject({ fault: 'sender' })
  })
})

describe('limits of a rule', () => {
  const buildUrl = (index: number) => `https://sns.r${index}-x.amazonaws.com/SimpleNotificationService-${index}.pem`
  // this is a fault of the gateway: a limit that strangers used up must not turn a sender away permanently
  const tooMany = { ok: false, fault: 'gateway', reason: expect.stringMatching(/^Too many/) }
  const pem = { status: 200, body: 'pem' }

  test('at most 20 URLs are fetched in a minute from all hosts, and stored responses are still used', async () => {
    const { fetch, asked, clock } = createWorld(pem)
    for (let index = 0; index < 20; index++) expect(await fetch(buildUrl(index), rule)).toMatchObject({ ok: true })
    expect(await fetch(buildUrl(20), rule)).toEqual(tooMany)
    expect(asked.length).toBe(20)
    expect(await fetch(buildUrl(3), rule)).toMatchObject({ ok: true })
    clock.now = 59_999
    expect(await fetch(buildUrl(20), rule)).toEqual(tooMany)
    clock.now = 60_000
    expect(await fetch(buildUrl(20), rule)).toMatchObject({ ok: true })
  })

  test('a fetch without an answer counts towards the limit too', async () => {
    const { fetch, asked } = createWorld(new Error('ENOTFOUND'))
    for (let index = 0; index < 20; index++) await fetch(buildUrl(index), rule)
    expect(await fetch(buildUrl(0), rule)).toEqual(tooMany)
    expect(asked.length).toBe(20)
  })

  test('at most four fetches of a rule run at a time, and other rules are not affected', async () => {
    const waiting: (() => void)[] = []
    const transport: Transport = () => new Promise((resolve) => waiting.push(() => resolve(pem)))
    const fetch = createPinnedFetch({ now: () => 0, transport })
    const first = [0, 1, 2, 3].map((index) => fetch(buildUrl(index), rule))
    expect(await fetch(buildUrl(4), rule)).toEqual(tooMany)
    const same = fetch(buildUrl(0), rule)
    const confirmed = fetch('https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription', snsConfirmation)
    expect(waiting.length).toBe(5)
    for (const answer of waiting) answer()
    expect(await Promise.all([...first, same, confirmed])).toEqual(
      Array.from({ length: 6 }, () => ({ ok: true, body: 'pem' })),
    )
    const fifth = fetch(buildUrl(4), rule)
    expect(waiting.length).toBe(6)
    waiting.at(-1)?.()
    expect(await fifth).toMatchObject({ ok: true })
  })

  test('the cache drops a certificate that verified no request before one that verified a request', async () => {
    const { fetch, asked, clock } = createWorld(pem)
    const other = `${good.slice(0, -4)}-other.pem`
    markUseful(await fetch(good, rule))
    await fetch(other, rule)
    for (let index = 0; index < 120; index++) {
      clock.now += 4_000
      expect(await fetch(buildUrl(index), rule)).toMatchObject({ ok: true })
    }
    const before = asked.length
    await fetch(good, rule)
    expect(asked.length).toBe(before)
    await fetch(other, rule)
    expect(asked.length).toBe(before + 1)
  })

  test('a certificate that verified a request is fetched again after a day, even if the limit is used up', async () => {
    const { fetch, asked, clock } = createWorld(pem)
    markUseful(await fetch(good, rule))
    clock.now = rule.maxAgeMs
    for (let index = 0; index < 21; index++) await fetch(buildUrl(index), rule)
    expect(await fetch(buildUrl(21), rule)).toEqual(tooMany)
    expect(await fetch(good, rule)).toMatchObject({ ok: true })
    expect(asked.filter((href) => href === good).length).toBe(2)
  })
})
