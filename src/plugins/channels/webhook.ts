// A signed HTTP request to the operator's own receiver.
// https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
import { createHmac } from 'node:crypto'
import { z } from 'zod'
import {
  type ChannelHost,
  type ChannelParts,
  type ChannelSettings,
  type SendResult,
  type WebhookEvent,
  defineChannel,
} from '../../define.ts'
import { createFailureReader, describeWrongRecipient, hopsHeader, sendJson } from './shared/http.ts'
import { endpointUrl, nonBlank, toWellFormed } from './shared/values.ts'

const hints = new Map([
  [401, 'It did not accept the signature. Check the secret of the endpoint on both sides.'],
  [403, 'It did not accept the signature. Check the secret of the endpoint on both sides.'],
  [404, 'Check the URL of the endpoint.'],
  [410, 'The endpoint no longer exists. Remove it from the configuration.'],
])

type Endpoint = Settings['endpoints'][string]

const options = z.strictObject({
  endpoints: z
    .record(
      z.string(),
      z.strictObject({
        url: endpointUrl.describe('URL that receives the replies and the callbacks.'),
        secret: nonBlank
          .regex(/^(?!whsec_)|^whsec_[A-Za-z0-9+/]+={0,2}$/, 'must go on in base64 after whsec_')
          .describe(
            'Secret that signs each request by Standard Webhooks: whsec_… or plain text, of at least 16 bytes.',
          ),
      }),
    )
    .describe('The receivers, each under its name. No other URL is ever called.'),
})
type Settings = ChannelSettings<typeof options>

export const webhookChannel = defineChannel({
  name: 'webhook',
  about: 'A signed HTTP request. `to`: the name of an endpoint.',
  options,
  findsRecipient: true,
  create: createWebhookChannel,
})

/** Each attempt sends the same `webhook-id`, by which receivers drop repeats, so an ambiguous attempt may be repeated. */
function createWebhookChannel(config: Settings, { fetch, clock }: ChannelHost): ChannelParts {
  // a Map, because a name may come from a request: `constructor` must not be found
  const endpoints = new Map<string, Endpoint>(Object.entries(config.endpoints))
  const [only] = endpoints.size === 1 ? endpoints.values() : []

  const findEndpoint = (to = config.to): Endpoint | undefined => (to === undefined ? only : endpoints.get(to))

  function explainRecipient(to = config.to): string {
    if (endpoints.size === 0) return 'No webhook can be sent: channels.webhook.endpoints is empty. Add an endpoint.'
    const names = [...endpoints.keys()].map((name) => `"${name}"`).join(', ')
    return describeWrongRecipient('webhook', to, `the name of an endpoint in channels.webhook.endpoints (${names})`)
  }

  async function post(
    { url, secret }: Endpoint,
    { id, body, hops, signal }: Omit<WebhookEvent, 'endpoint'>,
  ): Promise<SendResult> {
    const headers = { ...sign(secret, { id, body, now: clock() }), [hopsHeader]: String(hops) }
    const outcome = await sendJson({ url, headers, body, timeoutMs: config.timeoutMs, signal, fetch })
    const isSent = outcome.kind === 'answer' && outcome.status >= 200 && outcome.status < 300
    return isSent ? { kind: 'sent', id } : readFailure(outcome)
  }

  return {
    dedupes: true,
    whyNot: (to) => (findEndpoint(to) === undefined ? explainRecipient(to) : undefined),
    split: (markdown) => [markdown],
    async send({ to, text, nonce, signal, run }) {
      const endpoint = findEndpoint(to)
      if (endpoint === undefined) return { kind: 'permanent', detail: explainRecipient(to) }
      const body = JSON.stringify(toWellFormed({ runId: run.id, agentId: run.agentId, name: run.name, text }))
      return await post(endpoint, { id: `msg_${nonce}`, body, hops: run.hops, signal })
    },
    async postEvent({ endpoint: name, ...event }) {
      const endpoint = endpoints.get(name)
      return endpoint === undefined
        ? { kind: 'permanent', detail: explainRecipient(name) }
        : await post(endpoint, event)
    },
  }
}

/** The three headers of Standard Webhooks; the timestamp is in seconds. */
function sign(secret: string, { id, body, now }: { id: string; body: string; now: number }): Record<string, string> {
  const timestamp = String(Math.floor(now / 1_000))
  const signature = createHmac('sha256', decodeKey(secret)).update(`${id}.${timestamp}.${body}`).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` }
}

function decodeKey(secret: string): Buffer {
  return secret.startsWith('whsec_') ? Buffer.from(secret.slice('whsec_'.length), 'base64') : Buffer.from(secret)
}

const loopHint =
  'The receiver is a hook of a gateway, which stopped a loop: replies start runs whose replies start runs. Let its mapping skip the replies.'

const readFailure = createFailureReader({
  provider: 'The receiver',
  address: 'the URL of the endpoint',
  // a receiver that is also a Hookloom gateway refuses with a code
  schema: z.object({ code: z.literal('loop-detected') }),
  readCode: ({ code }) => code,
  explain: ({ status, code }) => ({ hint: code === undefined ? hints.get(status) : loopHint }),
})
