// The keys of a section of `sources` with the kind `mcp-events`.
import { z } from 'zod'
import { endpointUrl, isLoopbackHost, nonBlank } from '../shared/kit.ts'

const maxArgumentBytes = 1_000

/** The token and the secret are sent to it, and the events to the callback. */
const safeUrl = endpointUrl.refine((text) => text.startsWith('https:') || isLoopbackHost(new URL(text).hostname), {
  message: 'must be an https URL; http is for loopback only',
})

/** Whether it is a key of 24 to 64 bytes, as MCP Events requires. */
function isKey(secret: string): boolean {
  const text = secret.replace(/^whsec_/, '')
  const key = Buffer.from(text, 'base64')
  return key.length >= 24 && key.length <= 64 && key.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '')
}

const Event = z.strictObject({
  name: nonBlank.max(200).describe('Name of the event, from `events/list` of the server.'),
  arguments: z
    .record(z.string(), z.unknown())
    .refine((args) => Buffer.byteLength(JSON.stringify(args)) <= maxArgumentBytes, {
      message: `must have at most ${maxArgumentBytes} bytes as JSON`,
    })
    .default({})
    .describe('Arguments of the subscription, such as a filter.'),
})

export const McpEventsConfig = z.strictObject({
  url: safeUrl.describe('URL of the MCP server.'),
  token: nonBlank.describe('Bearer token for the server: subscriptions need one.'),
  callback: safeUrl.describe('Public URL of the hook with the name of this section.'),
  secret: nonBlank
    .refine(isKey, { message: 'must be whsec_ and the base64 of 24 to 64 bytes, or the base64 alone' })
    .describe('Key with which the server signs: that of the mapping.'),
  events: z.array(Event).min(1).max(20).describe('Events to which the hook is subscribed.'),
  ttlSeconds: z
    .int()
    .min(10)
    .max(2_592_000)
    .default(86_400)
    .describe('Seconds that a subscription should last. The server decides; it is renewed after half of its time.'),
})
export type McpEventsConfig = z.infer<typeof McpEventsConfig>
