// The client that a request counts for in the throttle. A client cannot pose as another client, nor as many clients with the addresses of its
// network.
import type { IncomingMessage } from 'node:http'
import ipaddr from 'ipaddr.js'
import { Problem } from '../../core/model/problem.ts'

type Address = ipaddr.IPv4 | ipaddr.IPv6
type Network = [Address, number]

/** The parts of a request that the lookup reads. */
type ConnectedRequest = {
  readonly headers: IncomingMessage['headers']
  readonly socket: { readonly remoteAddress?: string | undefined }
}

/**
 * The client of a request: an IPv4 address, or the /64 network of an IPv6 address, because one subscriber has a whole /64.
 * IPv4-mapped addresses count as IPv4. `unknown` if the socket is closed.
 *
 * X-Forwarded-For counts only from a trusted peer. It is read right to left: each trusted hop vouches for the one before it, and
 * the first hop that is not trusted is the client. Text that is not an address ends the walk at the hop that sent it. RFC 7239
 * `Forwarded` is ignored: a proxy that sets only one of the two headers passes the other one on unchecked.
 *
 * `unnamed` gets the address of each peer that is not trusted and sends X-Forwarded-For: perhaps it is a proxy that the configuration
 * does not name.
 *
 * Throws `config-invalid` for an entry that is neither an address nor a CIDR.
 */
export function createClientLookup(
  trustedProxies: readonly string[],
  unnamed?: Pick<UnnamedProxies, 'add'>,
): (req: ConnectedRequest) => string {
  const trusted = trustedProxies.map(toNetwork)
  const isTrusted = (address: Address) => trusted.some((network) => isInside(address, network))

  // without proxies a connection has one client: its address is parsed once
  const known = new WeakMap<object, string>()
  if (trusted.length === 0) {
    return ({ socket, headers }) => {
      const before = known.get(socket)
      const isForwarded = headers['x-forwarded-for'] !== undefined
      if (before !== undefined && !isForwarded) return before
      const address = toAddress(socket.remoteAddress ?? '')
      if (address === undefined) return 'unknown'
      if (isForwarded) unnamed?.add(address)
      const client = toClient(address)
      known.set(socket, client)
      return client
    }
  }

  return (req) => {
    let client = toAddress(req.socket.remoteAddress ?? '')
    if (client === undefined) return 'unknown'
    if (!isTrusted(client)) {
      if (req.headers['x-forwarded-for'] !== undefined) unnamed?.add(client)
      return toClient(client)
    }
    const hops = [req.headers['x-forwarded-for'] ?? []].flat().join(',').split(',')
    for (const hop of hops.toReversed()) {
      const address = toAddress(hop.trim())
      if (address === undefined) break
      client = address
      if (!isTrusted(address)) break
    }
    return toClient(client)
  }
}

export type UnnamedProxies = {
  add(address: Address): void
  /** A sentence for the operator about each proxy that the configuration still does not name. */
  listWarnings(): readonly string[]
}

/** Remembers a few proxies. A sender on the internet that sets the header itself is not remembered. */
export function createUnnamedProxies(trustedProxies: () => readonly string[]): UnnamedProxies {
  const seen = new Map<string, Address>()
  return {
    add: (address) => {
      if (seen.size < maxUnnamed && nearRanges.has(address.range())) seen.set(address.toString(), address)
    },
    listWarnings: () => {
      const trusted = trustedProxies().map(toNetwork)
      const unnamed = [...seen].filter(([, address]) => !trusted.some((network) => isInside(address, network)))
      return unnamed.map(
        ([text]) =>
          `Requests from ${text} have X-Forwarded-For, but server.trustedProxies does not name it. If it is your proxy, add it: otherwise all its senders count as one, and one with a wrong token locks out the others.`,
      )
    },
  }
}

const maxUnnamed = 10
const nearRanges: ReadonlySet<string> = new Set(['loopback', 'private', 'uniqueLocal', 'linkLocal', 'carrierGradeNat'])

/** The client of a connection. All connections from loopback count as one client. */
export type Peer = { readonly client: string; readonly isLoopback: boolean }

/**
 * The client of a connection, from its socket address; undefined for a trusted proxy, which carries the
 * connections of many clients. Throws `config-invalid` like `createClientLookup`. `trustedProxies` is parsed again when it returns another
 * array.
 */
export function createPeerLookup(
  trustedProxies: () => readonly string[],
): (remoteAddress: string | undefined) => Peer | undefined {
  let known: { readonly entries: readonly string[]; readonly trusted: readonly Network[] } | undefined
  return (remoteAddress) => {
    const entries = trustedProxies()
    if (known?.entries !== entries) known = { entries, trusted: entries.map(toNetwork) }
    const { trusted } = known
    const address = toAddress(remoteAddress ?? '')
    if (address === undefined) return { client: 'unknown', isLoopback: false }
    if (trusted.some((network) => isInside(address, network))) return undefined
    const isLoopback = address.range() === 'loopback'
    return { client: isLoopback ? 'loopback' : toClient(address), isLoopback }
  }
}

function toClient(address: Address): string {
  if (!(address instanceof ipaddr.IPv6)) return address.toString()
  const network = address.parts.slice(0, 4).map((part) => part.toString(16))
  return `${network.join(':')}::/64`
}

/** The address in a text; undefined if there is none. Some proxies add the port: `1.2.3.4:5678`, `[2001:db8::1]:443`. */
function toAddress(text: string): Address | undefined {
  const bare = /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text
  // only four decimal parts: programs disagree on 010.1 and 0x7f.1
  if (ipaddr.IPv4.isValidFourPartDecimal(bare)) return ipaddr.IPv4.parse(bare)
  return ipaddr.IPv6.isValid(bare) ? ipaddr.process(bare) : undefined
}

function toNetwork(entry: string, index: number): Network {
  const address = toAddress(entry)
  if (address !== undefined) return [address, address.kind() === 'ipv4' ? 32 : 128]
  if (ipaddr.IPv4.isValidCIDRFourPartDecimal(entry)) return ipaddr.IPv4.parseCIDR(entry)
  if (ipaddr.IPv6.isValidCIDR(entry)) {
    const [base, bits] = ipaddr.IPv6.parseCIDR(entry)
    return base.isIPv4MappedAddress() && bits >= 96 ? [base.toIPv4Address(), bits - 96] : [base, bits]
  }
  throw new Problem(
    'config-invalid',
    `server.trustedProxies[${index}] must be an IP address or a CIDR such as 10.0.0.0/8, found ${JSON.stringify(entry)}.`,
  )
}

function isInside(address: Address, [base, bits]: Network): boolean {
  return address.kind() === base.kind() && address.match(base, bits)
}
