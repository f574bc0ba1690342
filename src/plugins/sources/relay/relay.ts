// Relay: requests that a program at a public address keeps for this gateway, which has none.
import { z } from 'zod'
import { defineSource } from '../../../define.ts'
import { endpointUrl, isLoopbackHost, SourceFailure } from '../shared/kit.ts'
import { deriveKeys, isHomeKey } from './keys.ts'
import { passRequests } from './passing.ts'
import { createRelayClient } from './relay-client.ts'

const isSafe = (url: URL) => url.protocol === 'https:' || isLoopbackHost(url.hostname)

export const RelayConfig = z.strictObject({
  url: endpointUrl
    .refine((text) => isSafe(new URL(text)), { message: 'must be an https URL; http is for loopback only' })
    .refine((text) => new URL(text).href === `${new URL(text).origin}/`, { message: 'must have no path and no query' })
    .describe('URL of the relay, such as https://relay.example.org.'),
  key: z
    .string()
    .refine(isHomeKey, { message: 'must be the base64url of 32 bytes, as "hookloom dev --relay" makes it' })
    .describe('Secret key of this gateway: `${HOOKLOOM_RELAY_KEY}`. The relay never gets it.'),
})
type RelayConfig = z.infer<typeof RelayConfig>

/** The public URL of a path of this gateway, such as `/hooks/deploy`. */
export function toRelayedUrl({ url, key }: RelayConfig, path: string): string {
  return new URL(`/r/${deriveKeys(key).known.address}${path}`, url).href
}

export const relaySource = defineSource<RelayConfig>({
  name: 'relay',
  about: 'Requests that a relay at a public address keeps for this gateway.',
  receives: true,
  options: RelayConfig,
  account: (config) => toRelayedUrl(config, ''),
  create({ url, key }, host) {
    let problem: string | undefined
    const keys = deriveKeys(key)
    return {
      everyMs: 1_000,
      pass: (signal) => {
        const client = createRelayClient({ url, keys, host, signal })
        return passRequests({ client, keys, host, signal, onProblem: (next) => (problem = next) })
      },
      problems: () => (problem === undefined ? [] : [problem]),
      async probe(signal) {
        const { host: name } = new URL(url)
        try {
          const answer = await host.fetch(new URL('/healthz', url), { signal })
          return { ok: answer.ok, detail: answer.ok ? `${name} answers.` : `${name} answers ${answer.status}.` }
        } catch (thrown) {
          return { ok: false, detail: thrown instanceof SourceFailure ? thrown.message : 'It failed.' }
        }
      },
    }
  },
})
