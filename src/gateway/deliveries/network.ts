// The networks of clients. A sender uses few networks, and a stranger cannot choose the network that its requests come from.
import ipaddr from 'ipaddr.js'

type Address = ipaddr.IPv4 | ipaddr.IPv6

/**
 * The address of a client, from the name that `http/client.ts` gives it. The length of a prefix and the zone are dropped. An IPv4-mapped IPv6
 * address counts as the IPv4 address. Undefined for other texts, such as `loopback` or `unknown`.
 */
export function readClientAddress(client: string): Address | undefined {
  const bare = client.replace(/\/\d+$/, '').replace(/%.*$/s, '')
  if (ipaddr.IPv4.isValidFourPartDecimal(bare)) return ipaddr.IPv4.parse(bare)
  return ipaddr.IPv6.isValid(bare) ? ipaddr.process(bare) : undefined
}

const nearRanges: ReadonlySet<string> = new Set(['loopback', 'private', 'uniqueLocal', 'linkLocal', 'carrierGradeNat'])

/** Whether an address is loopback, private, link-local or behind a carrier-grade NAT. */
export function isInternalAddress(address: Address): boolean {
  return nearRanges.has(address.range())
}

/**
 * The /24 of an IPv4 address or the /48 of an IPv6 address: a hosting company usually gives one customer no larger network. Other texts are
 * unchanged.
 */
export function toNetwork(client: string): string {
  const address = readClientAddress(client)
  if (address === undefined) return client
  if (address instanceof ipaddr.IPv4) return `${address.octets.slice(0, 3).join('.')}.0/24`
  const parts = address.parts.slice(0, 3).map((part) => part.toString(16))
  return `${parts.join(':')}::/48`
}

const maxClients = 512
const maxNetworks = 64
const maxHooks = 1_000

/** The networks from which each hook admitted requests. Only clients that prove themselves are admitted, so strangers cannot fill the set. */
export function createKnownNetworks() {
  const hooks = new Map<string, { readonly clients: Set<string>; readonly networks: Set<string> }>()
  return {
    has: (label: string, network: string) => hooks.get(label)?.networks.has(network) === true,
    add(label: string, client: string): void {
      let entry = hooks.get(label)
      if (entry?.clients.has(client) === true) return
      if (entry === undefined) {
        if (hooks.size >= maxHooks) return
        entry = { clients: new Set(), networks: new Set() }
        hooks.set(label, entry)
      }
      const { clients, networks } = entry
      if (clients.size >= maxClients) clients.clear()
      clients.add(client)
      if (networks.size < maxNetworks) networks.add(toNetwork(client))
    },
  }
}
