// The keys of a section of `runners` with the kind `mcp-events`.
import { z } from 'zod'
import { nonBlank } from '../shared/kit.ts'

const Subscriber = z.strictObject({
  token: z
    .string()
    .regex(/^[\x21-\x7e]{24,512}$/, 'must have 24 to 512 ASCII characters without spaces: openssl rand -hex 32')
    .describe('Bearer token of the client. Another token ends its subscriptions.'),
  events: z.array(nonBlank).exactOptional().describe('Events that it may receive: ids of agents. Default: all.'),
  privateCallbacks: z
    .boolean()
    .default(false)
    .describe('Also permits callbacks to private addresses, and to loopback by http.'),
})

export const EventServerConfig = z.strictObject({
  subscribers: z
    .record(z.string().regex(/^[\w.-]{1,64}$/, 'must be letters, digits, ., _ and -'), Subscriber)
    .refine((subscribers) => haveOwnTokens(Object.values(subscribers)), 'must give each subscriber a token of its own')
    .describe('Clients of the server, each under its name.'),
  events: z
    .record(z.string(), nonBlank.max(1_000))
    .default({})
    .describe('What each event means, for people and models, by the id of its agent.'),
})
export type EventServerConfig = z.infer<typeof EventServerConfig>

function haveOwnTokens(subscribers: readonly { readonly token: string }[]): boolean {
  return new Set(subscribers.map(({ token }) => token)).size === subscribers.length
}
