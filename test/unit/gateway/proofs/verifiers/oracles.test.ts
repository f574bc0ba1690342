// The same requests go to the gateway and to the senders' own libraries: the gateway accepts what a library signs, and refuses what it refuses, with
// the differences that the titles name.
import { sign as signGithub, verify as verifyGithub, verifyWithFallback } from '@octokit/webhooks-methods'
import * as fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import Stripe from 'stripe'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { hmacSchemes, isProven, now, requestOf, secretOf, signed } from './stage.ts'

const { webhooks } = new Stripe('sk_test_none')
const seconds = now / 1000

// standardwebhooks reads the clock of the machine
beforeAll(() => void vi.useFakeTimers({ now, toFake: ['Date'] }))
afterAll(() => void vi.useRealTimers())

/** Usual bodies and unusual ones: line breaks, other scripts, emoji, control characters. */
const body = fc.oneof(
  fc.json(),
  fc.string({ minLength: 1, maxLength: 300 }),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 100 }),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 100 }),
)
const secret = fc.string({ minLength: 1, maxLength: 60 }).filter((text) => text.trim() === text && text !== '')
const keyBytes = fc.uint8Array({ minLength: 1, maxLength: 64 })

/** The change of one character: its position, and the new character, which is visible, as in a header. */
const change = fc.record({ at: fc.nat(), to: fc.integer({ min: 0x21, max: 0x7e }) })
type Change = { at: number; to: number }

/** Replaces one character of the text by a different one. */
function changeCharacter(text: string, { at, to }: Change): string {
  const place = at % text.length
  const character = String.fromCharCode(text.charCodeAt(place) === to ? (to === 0x7e ? 0x21 : to + 1) : to)
  return text.slice(0, place) + character + text.slice(place + 1)
}

function findRow(id: string) {
  const row = hmacSchemes.find((scheme) => scheme.id === id)
  if (row === undefined) throw new Error(`no row ${id}`)
  return row
}

async function isAccepted(judge: () => unknown): Promise<boolean> {
  try {
    return (await judge()) !== false
  } catch {
    return false
  }
}

describe('GitHub’s library', () => {
  const isOurs = (key: string, text: string, signature: string) =>
    isProven({ scheme: 'github', secret: key }, requestOf({ 'x-hub-signature-256': signature }, text))

  test('the gateway accepts a request that GitHub’s library signs, whatever the body and the secret', async () => {
    await fc.assert(
      fc.asyncProperty(secret, body, async (key, text) => {
        expect(await isOurs(key, text, await signGithub(key, text))).toBe(true)
      }),
    )
  })

  test('GitHub’s library and the gateway both refuse a request with one changed character, but only the gateway ignores the case of hex digits', async () => {
    await fc.assert(
      fc.asyncProperty(secret, body, change, async (key, text, one) => {
        const signature = await signGithub(key, text)
        const other = changeCharacter(text, one)
        expect(await verifyGithub(key, other, signature)).toBe(other === text)
        expect(await isOurs(key, other, signature)).toBe(Buffer.from(other).equals(Buffer.from(text)))
        expect(await isOurs(changeCharacter(key, one), text, signature)).toBe(false)
        const wrong = changeCharacter(signature, one)
        // the case of hex digits does not matter, so a digest in capitals is valid too
        const sameDigits = wrong.startsWith('sha256=') && wrong.toLowerCase() === signature
        expect(await isOurs(key, text, wrong)).toBe(sameDigits)
        expect(await isAccepted(() => verifyGithub(key, text, wrong))).toBe(false)
      }),
    )
  })

  test('GitHub’s library accepts a request that is signed as the row of GitHub says, even during a rotation of secrets', async () => {
    const row = findRow('github')
    const request = signed(row)
    const text = Buffer.from(request.rawBody).toString()
    const signature = request.headers['x-hub-signature-256'] ?? ''
    expect(await verifyGithub(secretOf(row), text, signature)).toBe(true)
    expect(await verifyGithub(secretOf(row, 'other'), text, signature)).toBe(false)
    for (const [first, second] of [
      ['new', secretOf(row)],
      [secretOf(row), 'old'],
      ['new', 'old'],
    ] as const) {
      const theirs = await verifyWithFallback(first, text, signature, [second])
      expect(await isProven({ scheme: 'github', secrets: [first, second] }, request)).toBe(theirs)
    }
  })
})

describe('the library of Standard Webhooks', () => {
  const toSecret = (bytes: Uint8Array) => `whsec_${Buffer.from(bytes).toString('base64')}`
  const schemes = [
    'standard-webhooks',
    'mcp-events',
    'svix',
    'clerk',
    'resend',
    'openai',
    'replicate',
    'gitlab-signing',
    'anthropic',
    'lithic',
    'brex',
    'recall-ai',
  ]
  type Names = { 'webhook-id': string; 'webhook-timestamp': string; 'webhook-signature': string }
  const toHeaders = (signature: string, at = seconds, id = 'msg_1'): Names => ({
    'webhook-id': id,
    'webhook-timestamp': String(at),
    'webhook-signature': signature,
  })
  const isTheirs = (key: string, text: string, headers: Names) =>
    isAccepted(() => void new Webhook(key).verify(text, headers, { jsonParse: false }))
  const isOurs = (key: string, text: string, headers: Names, scheme = 'standard-webhooks') =>
    isProven({ scheme, secret: key }, requestOf(headers, text))

  test('every scheme of Standard Webhooks accepts a request that the library of Standard Webhooks signs', async () => {
    await fc.assert(
      fc.asyncProperty(keyBytes, body, fc.constantFrom(...schemes), async (bytes, text, scheme) => {
        const key = toSecret(bytes)
        const headers = toHeaders(new Webhook(key).sign('msg_1', new Date(now), text))
        expect(await isOurs(key, text, headers, scheme)).toBe(true)
        expect(await isOurs(key.slice('whsec_'.length), text, headers, scheme)).toBe(true)
      }),
    )
  })

  test('the library of Standard Webhooks and the gateway both refuse a change of one character in the body, a header or the key', async () => {
    const name = fc.constantFrom('webhook-id', 'webhook-timestamp', 'webhook-signature')
    await fc.assert(
      fc.asyncProperty(keyBytes, body, change, name, async (bytes, text, one, header) => {
        const key = toSecret(bytes)
        const headers = toHeaders(new Webhook(key).sign('msg_1', new Date(now), text))
        const other = changeCharacter(text, one)
        const isSame = Buffer.from(other).equals(Buffer.from(text))
        expect([await isTheirs(key, other, headers), await isOurs(key, other, headers)]).toEqual([isSame, isSame])
        const bent: Names = { ...headers, [header]: changeCharacter(headers[header], one) }
        expect(await isOurs(key, text, bent)).toBe(false)
        expect(await isTheirs(key, text, bent)).toBe(false)
        const otherKey = toSecret(Uint8Array.from(bytes, (byte, index) => (index === 0 ? byte ^ 1 : byte)))
        expect([await isTheirs(otherKey, text, headers), await isOurs(otherKey, text, headers)]).toEqual([false, false])
      }),
    )
  })

  test('the library of Standard Webhooks and the gateway have the same limit, to the second, for old and future times', async () => {
    const key = toSecret(Buffer.from('0123456789abcdef'))
    const drawn: [number, boolean, boolean][] = []
    for (const offset of [-86_400, -301, -300, 0, 300, 301, 86_400]) {
      const at = seconds + offset
      const headers = toHeaders(new Webhook(key).sign('msg_1', new Date(at * 1000), '{}'), at)
      drawn.push([offset, await isTheirs(key, '{}', headers), await isOurs(key, '{}', headers)])
    }
    expect(drawn.map(([offset, theirs, ours]) => [offset, theirs === ours, ours])).toEqual(
      [-86_400, -301, -300, 0, 300, 301, 86_400].map((offset) => [offset, true, Math.abs(offset) <= 300]),
    )
  })

  test('the library of Standard Webhooks and the gateway accept any of several signatures, even after a malformed one', async () => {
    const key = toSecret(Buffer.from('0123456789abcdef'))
    const good = new Webhook(key).sign('msg_1', new Date(now), '{}')
    const bad = good.replace(/.$/, '_')
    for (const [signature, isGood] of [
      [`${bad} ${good}`, true],
      [`nonsense ${good}`, true],
      [`v1a,AAAA ${good}`, true],
      [`${bad} v2,${good.slice(3)}`, false],
      [bad, false],
    ] as const) {
      const headers = toHeaders(signature)
      expect([await isTheirs(key, '{}', headers), await isOurs(key, '{}', headers)]).toEqual([isGood, isGood])
    }
  })

  test('the library of Standard Webhooks accepts a request that is signed as the row of Standard Webhooks says', async () => {
    const row = findRow('standard-webhooks')
    const { headers, rawBody } = signed(row)
    const given = toHeaders(headers['webhook-signature'] ?? '')
    expect(await isTheirs(secretOf(row), Buffer.from(rawBody).toString(), given)).toBe(true)
    expect(await isTheirs(secretOf(row, 'other'), Buffer.from(rawBody).toString(), given)).toBe(false)
  })
})

describe('Stripe’s library', () => {
  // the library parses the body that it has verified
  const json = fc.json()
  const toHeader = (key: string, payload: string, timestamp = seconds) =>
    webhooks.generateTestHeaderString({ payload, secret: key, timestamp })
  const isTheirs = (key: string, text: string, header: string) =>
    isAccepted(() => void webhooks.constructEvent(text, header, key, 300, undefined, now))
  const isOurs = (key: string, text: string, header: string) =>
    isProven({ scheme: 'stripe', secret: key }, requestOf({ 'stripe-signature': header }, text))

  test('the gateway accepts a request that Stripe’s library signs, whatever the body and the secret', async () => {
    await fc.assert(
      fc.asyncProperty(secret, json, async (key, text) => {
        expect(await isOurs(key, text, toHeader(key, text))).toBe(true)
      }),
    )
  })

  test('Stripe’s library and the gateway both refuse a change of one character in the body, the header or the secret, but only the gateway ignores the case of hex digits', async () => {
    await fc.assert(
      fc.asyncProperty(secret, json, change, async (key, text, one) => {
        const header = toHeader(key, text)
        const [other, otherKey, bent] = [
          changeCharacter(text, one),
          changeCharacter(key, one),
          changeCharacter(header, one),
        ]
        const isSame = Buffer.from(other).equals(Buffer.from(text))
        expect([await isTheirs(key, other, header), await isOurs(key, other, header)]).toEqual([isSame, isSame])
        expect([await isTheirs(otherKey, text, header), await isOurs(otherKey, text, header)]).toEqual([false, false])
        // only the case of hex digits does not matter
        const sameDigits = bent.toLowerCase() === header && bent.startsWith('t=') && bent.includes(',v1=')
        expect([await isTheirs(key, text, bent), await isOurs(key, text, bent)]).toEqual([false, sameDigits])
      }),
    )
  })

  test('Stripe’s library and the gateway have the same limit for an old time, to the second, and only the gateway refuses a future time', async () => {
    const drawn: [number, boolean, boolean][] = []
    for (const offset of [-301, -300, 0, 300, 301]) {
      const header = toHeader('whsec_x', '{}', seconds + offset)
      drawn.push([offset, await isTheirs('whsec_x', '{}', header), await isOurs('whsec_x', '{}', header)])
    }
    expect(drawn).toEqual([
      [-301, false, false],
      [-300, true, true],
      [0, true, true],
      [300, true, true],
      [301, true, false],
    ])
  })

  test('Stripe’s library and the gateway accept any of several signatures, but not one of another scheme', async () => {
    const header = toHeader('whsec_x', '{}')
    const [time = '', good = ''] = header.split(',')
    const zero = `v1=${'0'.repeat(64)}`
    for (const [given, isGood] of [
      [`${time},${zero},${good}`, true],
      [`${time},${good},${zero}`, true],
      [`${time},v0=${good.slice(3)}`, false],
      [`${time},${zero}`, false],
      [good, false],
    ] as const) {
      expect([await isTheirs('whsec_x', '{}', given), await isOurs('whsec_x', '{}', given)]).toEqual([isGood, isGood])
    }
  })

  test('Stripe’s library accepts a request that is signed as the row of Stripe says', async () => {
    const row = findRow('stripe')
    const { headers, rawBody } = signed(row)
    const text = Buffer.from(rawBody).toString()
    expect(await isTheirs(secretOf(row), text, headers['stripe-signature'] ?? '')).toBe(true)
    expect(await isTheirs(secretOf(row, 'other'), text, headers['stripe-signature'] ?? '')).toBe(false)
  })
})
