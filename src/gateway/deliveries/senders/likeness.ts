// Signs that a refused request comes from a sender that was accepted before. A refused request proves nothing, and everybody who knows the URL
// can copy names and user agents from the documentation of the sender. But a stranger does not send from the network of the sender, and does
// not know the numbers in its headers, such as the id of the webhook.
import { hash } from 'node:crypto'
import { isInternalAddress, readClientAddress, toNetwork } from '../network.ts'

type Headers = Readonly<Record<string, string>>

/** The features that accepted requests of a sender have in common. The values of `networks` and `agents` are the times when each was last seen. */
export type Likeness = {
  readonly networks: Readonly<Record<string, number>>
  readonly agents: Readonly<Record<string, number>>
  /** Digests of the header values that were the same in all samples. */
  readonly constants: { readonly samples: number; readonly digests: Readonly<Record<string, string>> }
}

export const noLikeness: Likeness = { networks: {}, agents: {}, constants: { samples: 0, digests: {} } }

/**
 * `firm`: the request has the user agent of the sender, and its network or one of its constant headers. `loose`: it has only features that
 * everybody can copy, and all requests come through one local address, so its network shows nothing. `none`: a stranger.
 */
export type Resemblance = 'firm' | 'loose' | 'none'

const maxNetworks = 64
const maxAgents = 8
const maxConstants = 16
const minSamples = 3

/** The network of each request that came through a local proxy or tunnel. */
const localNetwork = 'local'

/**
 * The network by which a sender is recognised. Undefined if the client is unknown. `isForwarded`: a proxy that the configuration does not
 * name forwarded the request, so its address is the same for all senders.
 */
export function findSenderNetwork(client: string, { isForwarded }: { isForwarded: boolean }): string | undefined {
  const address = readClientAddress(client)
  if (address === undefined) return undefined
  return isForwarded || isInternalAddress(address) ? localNetwork : toNetwork(client)
}

/** The product of a user agent, without its version: `github-hookshot`. Empty without a user agent. */
export function toAgentName(headers: Headers): string {
  return (headers['user-agent'] ?? '').split(/[/ (]/, 1)[0]?.slice(0, 60).toLowerCase() ?? ''
}

/** The likeness after one more sample: the accepted requests that were noted together, with all their networks. */
export function addSample(
  known: Likeness,
  { networks, headers, at }: { readonly networks: Iterable<string>; readonly headers: Headers; readonly at: number },
): Likeness {
  const added = Object.fromEntries([...networks].map((network) => [network, at]))
  const { samples, digests } = known.constants
  const found = digestConstants(headers)
  const same =
    samples === 0 ? Object.entries(found) : Object.entries(digests).filter(([name, value]) => found[name] === value)
  return {
    networks: keepNewest({ ...known.networks, ...added }, maxNetworks),
    agents: keepNewest({ ...known.agents, [toAgentName(headers)]: at }, maxAgents),
    constants: { samples: Math.min(samples + 1, 1_000), digests: Object.fromEntries(same.slice(0, maxConstants)) },
  }
}

/** How a refused request resembles the accepted requests of a sender. */
export function findResemblance(
  { networks, agents, constants }: Likeness,
  { network, headers }: { readonly network: string | undefined; readonly headers: Headers },
): Resemblance {
  if (!Object.hasOwn(agents, toAgentName(headers))) return 'none'
  if (constants.samples >= minSamples) {
    const found = digestConstants(headers)
    if (Object.entries(constants.digests).some(([name, value]) => found[name] === value)) return 'firm'
  }
  if (network === undefined || !Object.hasOwn(networks, network)) return 'none'
  return network === localNetwork ? 'loose' : 'firm'
}

/** Headers with numbers that are public, or that are the same for every sender. */
const publicHeaders =
  /^(accept|cf-|connection|content-|cookie|date|host|forwarded|traceparent|user-agent|via|x-forwarded-|x-real-ip)|version$/

/** Digests of the header values that a stranger cannot guess: those with a long number or a long hexadecimal word. */
function digestConstants(headers: Headers): Record<string, string> {
  const found: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (value.length > 200 || publicHeaders.test(name)) continue
    if (/\d{7}|(?=[0-9a-f-]*\d)[0-9a-f-]{16}/i.test(value)) found[name] = hash('sha256', value, 'hex').slice(0, 16)
  }
  return found
}

function keepNewest(seen: Readonly<Record<string, number>>, max: number): Readonly<Record<string, number>> {
  const entries = Object.entries(seen)
  if (entries.length <= max) return seen
  return Object.fromEntries(entries.toSorted(([, one], [, other]) => other - one).slice(0, max))
}
