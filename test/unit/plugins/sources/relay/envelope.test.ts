// Envelopes and keys of a relay.
import { describe, expect, test } from 'vitest'
import { openEnvelope, sealRequest } from '../../../../../src/plugins/sources/relay/envelope.ts'
import {
  deriveKeys,
  generateHomeKey,
  isAddress,
  isHomeKey,
  parsePublicKeys,
  proveCall,
  signCall,
} from '../../../../../src/plugins/sources/relay/keys.ts'
import { joinHead, joinParts, splitHead, splitParts } from '../../../../../src/plugins/sources/relay/wire.ts'

const home = deriveKeys(generateHomeKey())
const request = {
  id: 'request-1',
  at: 1_767_323_045_000,
  method: 'POST',
  url: '/hooks/deploy?a=%20b',
  rawHeaders: ['X-One', 'ü', 'x-one', 'two'],
  client: '203.0.113.7',
  body: Buffer.from([0, 255, 10, 13, 128]),
}

describe('the keys of a home', () => {
  test('the same secret gives the same address, and another secret another one', () => {
    const secret = generateHomeKey()
    expect(deriveKeys(secret).known.address).toBe(deriveKeys(secret).known.address)
    expect(isAddress(home.known.address)).toBe(true)
    expect(deriveKeys(secret).known.address).not.toBe(home.known.address)
  })

  test('the address follows from the public keys', () => {
    expect(parsePublicKeys(home.known.text)?.address).toBe(home.known.address)
    expect(parsePublicKeys(home.known.text.slice(0, 40))).toBe(undefined)
  })

  test.each(['', 'short', `${generateHomeKey()}=`, `${generateHomeKey()}AA`, '+'.repeat(43)])(
    'the text %j is no key',
    (text) => {
      expect(isHomeKey(text)).toBe(false)
    },
  )
})

describe('a call of a home', () => {
  const call = {
    method: 'POST',
    host: 'relay.example.org',
    target: '/homes/a/answers?through=1',
    body: Buffer.from('x'),
  }
  const now = 1_767_323_045_000
  const headers = signCall(home, call, now)

  test('is proved within a minute of its time', () => {
    for (const at of [now, now + 59_000, now - 59_000]) {
      expect(proveCall(headers, call, at)?.address).toBe(home.known.address)
    }
    for (const at of [now + 61_000, now - 61_000]) expect(proveCall(headers, call, at)).toBe(undefined)
  })

  test.each([
    ['method', { ...call, method: 'GET' }],
    ['host', { ...call, host: 'other.example.org' }],
    ['target', { ...call, target: '/homes/a/answers?through=2' }],
    ['body', { ...call, body: Buffer.from('y') }],
  ])('is not proved with another %s', (_, other) => {
    expect(proveCall(headers, other, now)).toBe(undefined)
  })

  test.each(['x-relay-keys', 'x-relay-time', 'x-relay-signature'])('is not proved without %s', (name) => {
    expect(proveCall({ ...headers, [name]: undefined }, call, now)).toBe(undefined)
  })

  test('is not proved with the keys of another home', () => {
    const other = deriveKeys(generateHomeKey()).known
    expect(proveCall({ ...headers, 'x-relay-keys': other.text }, call, now)).toBe(undefined)
  })
})

describe('an envelope', () => {
  test('opens to the request, with its bytes and repeated headers', () => {
    expect(openEnvelope(sealRequest(request, home.known), home)).toEqual(request)
    const empty = { ...request, body: Buffer.alloc(0) }
    expect(openEnvelope(sealRequest(empty, home.known), home)).toEqual(empty)
  })

  test('has no text of the request, and is another one each time', () => {
    const envelope = sealRequest({ ...request, body: Buffer.from('a secret text') }, home.known)
    for (const text of ['secret', 'deploy', '203.0.113.7', 'X-One']) expect(envelope.includes(text)).toBe(false)
    expect(sealRequest(request, home.known).equals(sealRequest(request, home.known))).toBe(false)
  })

  test('does not open if any byte of it is changed', () => {
    const envelope = sealRequest(request, home.known)
    for (let at = 0; at < envelope.length; at++) {
      const changed = Buffer.from(envelope)
      changed.writeUInt8(changed.readUInt8(at) ^ 1, at)
      expect(() => openEnvelope(changed, home), `byte ${at}`).toThrow(Error)
    }
  })

  test.each([
    ['id', { id: 'request-2' }],
    ['time', { at: request.at + 1 }],
  ])('does not open with another %s', (_, change) => {
    const { head, rest } = splitHead(sealRequest(request, home.known))
    const changed = joinHead({ ...Object(head), ...change }, rest)
    expect(() => openEnvelope(changed, home)).toThrow(Error)
  })

  test('does not open with the key of another home, or if it is cut', () => {
    const envelope = sealRequest(request, home.known)
    expect(() => openEnvelope(envelope, deriveKeys(generateHomeKey()))).toThrow(Error)
    for (const end of [0, 3, 20, 60, envelope.length - 1]) {
      expect(() => openEnvelope(envelope.subarray(0, end), home)).toThrow(Error)
    }
  })
})

test('parts are split as they were joined, and a cut part is not', () => {
  const parts = [Buffer.from('one'), Buffer.alloc(0), Buffer.from('three')]
  expect(splitParts(joinParts(parts))).toEqual(parts)
  expect(() => splitParts(joinParts(parts).subarray(0, -1))).toThrow(RangeError)
})
