import { expect, test } from 'vitest'
import { findSenderNetwork } from '../../../../src/gateway/deliveries/senders/likeness.ts'
import { createKnownNetworks, toNetwork } from '../../../../src/gateway/deliveries/network.ts'

test.each([
  ['140.82.115.7', '140.82.115.0/24'],
  ['2001:db8:77:1:2:3:4:5', '2001:db8:77::/48'],
  ['2001:db8:77:1::/64', '2001:db8:77::/48'],
  // the zeros of these addresses are compressed at other places
  ['2001:db8::1', '2001:db8:0::/48'],
  ['2001::5:0:0:1', '2001:0:0::/48'],
  ['2001:0db8:0077::', '2001:db8:77::/48'],
  ['::', '0:0:0::/48'],
  ['::1', '0:0:0::/48'],
  ['::ffff:140.82.115.7', '140.82.115.0/24'],
  ['::ffff:8c52:7307', '140.82.115.0/24'],
  ['fe80::1%eth0', 'fe80:0:0::/48'],
  // these texts are not addresses, and each of them is its own network
  ['loopback', 'loopback'],
  ['unknown', 'unknown'],
  ['0x8c.1', '0x8c.1'],
  ['1.2.3', '1.2.3'],
])('the client %s is in the network %s', (client, network) => {
  expect(toNetwork(client)).toBe(network)
})

test('the addresses of one /48 have one network, however they are written, and those of four /48s have four networks', () => {
  expect(new Set(['2001:db8:1:2:3:4:5:6', '2001:db8:1::9', '2001:db8:1:ffff::/64'].map(toNetwork)).size).toBe(1)
  expect(new Set(['2001:db8::1', '2001:db8:1::1', '2001:db9::1', '2001::1'].map(toNetwork)).size).toBe(4)
})

test.each([
  ['10.1.2.3', 'local'],
  ['fe80::1%eth0', 'local'],
  ['::1', 'local'],
  ['::ffff:192.168.0.9', 'local'],
  ['140.82.115.7', '140.82.115.0/24'],
])('a sender at %s counts for the network %s', (client, network) => {
  expect(findSenderNetwork(client, { isForwarded: false })).toBe(network)
})

test('a sender without an address has no network', () => {
  expect(findSenderNetwork('unknown', { isForwarded: false })).toBeUndefined()
})

test('the networks of a hook are those of its accepted clients', () => {
  const known = createKnownNetworks()
  known.add('github', '2001:db8:1::1')
  expect(known.has('github', toNetwork('2001:db8:1:9::/64'))).toBe(true)
  expect(known.has('github', toNetwork('2001:db8::1'))).toBe(false)
  expect(known.has('stripe', toNetwork('2001:db8:1::1'))).toBe(false)
})
