// Which addresses are public: a URL that an outsider chose must not lead into the network of the gateway.
import { lookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'

/** Whether an address is one of this machine or this network, is otherwise not public, or is no address. No connection is made to it. */
export function isPrivateAddress(address: string): boolean {
  // `process` also reads an IPv4 address in IPv6 form
  return !ipaddr.isValid(address) || isIP(address) === 0 || ipaddr.process(address).range() !== 'unicast'
}

/**
 * The `lookup` of a connection to a name. It connects to the same addresses that were checked, so that the name cannot change in between. Node does
 * not call it for a URL with an address in place of a name.
 */
export const lookupPublic: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses) => {
    const first = addresses?.[0]
    if (error !== null || first === undefined) return callback(error ?? new Error('no address'), '')
    if (addresses.some(({ address }) => isPrivateAddress(address))) return callback(new Error('a private address'), '')
    if (options.all === true) callback(null, addresses)
    else callback(null, first.address, first.family)
  })
}
