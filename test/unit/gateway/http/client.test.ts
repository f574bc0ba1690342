import { describe, expect, test } from 'vitest'
import { Problem } from '../../../../src/core/model/problem.ts'
import { createClientLookup, createUnnamedProxies } from '../../../../src/gateway/http/client.ts'

function findClient(remoteAddress: string | undefined, forwarded?: string, trusted: string[] = []): string {
  const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }
  return createClientLookup(trusted)({ headers, socket: { remoteAddress } })
}

describe('the address of the socket', () => {
  test('the client of an IPv4 address is the address, even if it is mapped into IPv6', () => {
    expect(findClient('1.2.3.4')).toBe('1.2.3.4')
    expect(findClient('::ffff:1.2.3.4')).toBe('1.2.3.4')
    expect(findClient('::ffff:102:304')).toBe('1.2.3.4')
    expect(findClient('1.2.3.5')).not.toBe(findClient('1.2.3.4'))
  })

  test('the client of an IPv6 address is its /64 network', () => {
    expect(findClient('2001:db8:1:2::1')).toBe('2001:db8:1:2::/64')
    expect(findClient('2001:db8:1:2:ffff::9')).toBe(findClient('2001:db8:1:2::1'))
    expect(findClient('2001:db8:1:3::1')).not.toBe(findClient('2001:db8:1:2::1'))
    expect(findClient('fe80::1%eth0')).toBe('fe80:0:0:0::/64')
  })

  test('the client of a closed socket is unknown', () => {
    expect(findClient(undefined)).toBe('unknown')
  })
})

describe('X-Forwarded-For', () => {
  const trusted = ['127.0.0.1', '10.0.0.0/8', '2001:db8:ffff::/48']

  test('X-Forwarded-For is ignored if the peer is not trusted', () => {
    expect(findClient('9.9.9.9', '1.2.3.4')).toBe('9.9.9.9')
    expect(findClient('9.9.9.9', '1.2.3.4', trusted)).toBe('9.9.9.9')
    expect(findClient('127.0.0.1', '1.2.3.4')).toBe('127.0.0.1')
  })

  test('X-Forwarded-For names the client if the peer is trusted', () => {
    expect(findClient('127.0.0.1', '1.2.3.4', trusted)).toBe('1.2.3.4')
    expect(findClient('::ffff:10.1.2.3', '1.2.3.4', trusted)).toBe('1.2.3.4')
    expect(findClient('2001:db8:ffff::1', '2001:db8:1:2::1', trusted)).toBe('2001:db8:1:2::/64')
    expect(findClient('127.0.0.1', undefined, trusted)).toBe('127.0.0.1')
  })

  test('X-Forwarded-For is read from the right, so an entry that the client wrote itself does not count', () => {
    expect(findClient('127.0.0.1', '6.6.6.6, 1.2.3.4', trusted)).toBe('1.2.3.4')
    expect(findClient('127.0.0.1', '6.6.6.6, 1.2.3.4, 10.0.0.7,10.0.0.8', trusted)).toBe('1.2.3.4')
    expect(findClient('127.0.0.1', '10.0.0.1, 1.2.3.4, 10.0.0.7', trusted)).toBe('1.2.3.4')
  })

  test('the first entry of X-Forwarded-For is the client if all hops are trusted', () => {
    expect(findClient('127.0.0.1', '10.0.0.1, 10.0.0.2', trusted)).toBe('10.0.0.1')
  })

  test.each([
    'unknown',
    '',
    '_hidden',
    '010.0.0.1',
    '0x7f.0.0.1',
    '1.2.3',
    '1.2.3.4.5',
    '::g',
    '1.2.3.4; drop',
    '[::1',
  ])('if the entry %j of X-Forwarded-For is not an address, the client is the hop that sent the entry', (garbage) => {
    expect(findClient('127.0.0.1', garbage, trusted)).toBe('127.0.0.1')
    expect(findClient('127.0.0.1', `6.6.6.6, ${garbage}, 10.0.0.7`, trusted)).toBe('10.0.0.7')
  })

  test('the port after an address in X-Forwarded-For is ignored', () => {
    expect(findClient('127.0.0.1', '1.2.3.4:5678', trusted)).toBe('1.2.3.4')
    expect(findClient('127.0.0.1', '[2001:db8:1:2::1]:443', trusted)).toBe('2001:db8:1:2::/64')
  })

  test('the header Forwarded is not read', () => {
    const clientOf = createClientLookup(trusted)
    expect(clientOf({ headers: { forwarded: 'for=1.2.3.4' }, socket: { remoteAddress: '127.0.0.1' } })).toBe(
      '127.0.0.1',
    )
  })
})

describe('server.trustedProxies', () => {
  test.each([
    ['10.0.0.0/8', '10.9.9.9', '11.0.0.1'],
    ['10.1.2.3/8', '10.9.9.9', '11.0.0.1'],
    ['192.168.1.7', '192.168.1.7', '192.168.1.8'],
    ['::ffff:10.0.0.0/104', '10.9.9.9', '11.0.0.1'],
    ['2001:db8::/32', '2001:db8:5::1', '2001:db9::1'],
    ['::1', '::1', '::2'],
    ['0.0.0.0/0', '9.9.9.9', '2001:db8::1'],
    ['::/0', '2001:db8::1', '9.9.9.9'],
  ])('the entry %s of server.trustedProxies trusts %s and does not trust %s', (entry, inside, outside) => {
    expect(findClient(inside, '1.2.3.4', [entry])).toBe('1.2.3.4')
    expect(findClient(outside, '1.2.3.4', [entry])).not.toBe('1.2.3.4')
  })

  test.each(['10.0.0.0/33', '10.0.0', '10/8', 'loopback', '::/129', '10.0.0.0/8 ', '*', '010.0.0.0/8'])(
    'the entry %j of server.trustedProxies is refused with the name of its key',
    (entry) => {
      const attempt = () => createClientLookup(['127.0.0.1', entry])
      expect(attempt).toThrow(Problem)
      expect(attempt).toThrow('server.trustedProxies[1]')
    },
  )
})

describe('proxies that the configuration does not name', () => {
  const forwarded = { 'x-forwarded-for': '203.0.113.7' }

  function lookUpFrom(remoteAddress: string, headers: Record<string, string>, trusted: string[] = []) {
    const named: string[] = [...trusted]
    const proxies = createUnnamedProxies(() => named)
    createClientLookup(trusted, proxies)({ headers, socket: { remoteAddress } })
    return { named, proxies }
  }

  test.each(['127.0.0.1', '::1', '10.1.2.3', '192.168.0.9', 'fd00::5'])(
    'a warning for the operator names the proxy %s if the configuration does not',
    (address) => {
      expect(lookUpFrom(address, forwarded).proxies.listWarnings()).toEqual([
        expect.stringContaining(`Requests from ${address} `),
      ])
      expect(lookUpFrom(address, forwarded, ['172.16.0.1']).proxies.listWarnings()).toHaveLength(1)
    },
  )

  test('the warning about an unknown proxy ends when the configuration names the proxy', () => {
    const { named, proxies } = lookUpFrom('10.1.2.3', forwarded)
    named.push('10.0.0.0/8')
    expect(proxies.listWarnings()).toEqual([])
  })

  test.each([
    ['a sender on the internet that sets the header', '203.0.113.9', forwarded],
    ['a client without the header', '127.0.0.1', {}],
  ])('no warning about an unknown proxy is caused by %s', (_, address, headers) => {
    expect(lookUpFrom(address, headers).proxies.listWarnings()).toEqual([])
  })

  test('at most ten unknown proxies are remembered, because a private network has many addresses', () => {
    const proxies = createUnnamedProxies(() => [])
    const clientOf = createClientLookup([], proxies)
    for (let last = 0; last < 99; last++) clientOf({ headers: forwarded, socket: { remoteAddress: `10.0.0.${last}` } })
    expect(proxies.listWarnings()).toHaveLength(10)
  })
})
