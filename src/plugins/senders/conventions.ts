// Conventions that many senders share, and the senders that use them.
// Facts are from the senders' public documentation.
import { defineSender, type Retries, type SchemeRow } from '../../define.ts'
import { all, body, header, sent } from './shared.ts'
import { mcpVerification } from './handshakes.ts'

const specification = 'https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md'
/** "Every time an attempt is retried the timestamp of the attempt is updated": the convention requires it of every sender. */
const standardRetries = { time: 'anew', docs: specification } satisfies Retries

const standardHmac = {
  kind: 'hmac',
  header: 'webhook-signature',
  encoding: 'base64',
  syntax: { separator: ' ', joint: ',', field: 'v1' },
  template: '{id}.{timestamp}.{body}',
  idHeader: 'webhook-id',
  timestamp: { in: 'header', name: 'webhook-timestamp', unit: 's' },
  toleranceSeconds: 300,
  retries: standardRetries,
  secretEncoding: 'base64',
  secretPrefix: 'whsec_',
  confidence: 'verified',
} satisfies SchemeRow

/** The same proof under Svix's own header names. Svix also sends its headers under the names of Standard Webhooks. */
const svixHmac = {
  ...standardHmac,
  header: 'svix-signature',
  idHeader: 'svix-id',
  timestamp: { in: 'header', name: 'svix-timestamp', unit: 's' },
  alias: { header: 'webhook-signature', idHeader: 'webhook-id', timestamp: 'webhook-timestamp' },
} satisfies SchemeRow

export const conventionsSenders = [
  defineSender({
    name: 'clerk',
    label: 'Clerk',
    docs: 'https://clerk.com/docs/guides/development/webhooks/overview',
    event: [body('type'), body('event_type')],
    deliveryId: [header('svix-id'), header('webhook-id')],
    scheme: svixHmac,
  }),
  defineSender({
    name: 'resend',
    label: 'Resend',
    docs: 'https://resend.com/docs/dashboard/webhooks/introduction',
    event: [body('type'), body('event_type')],
    deliveryId: [header('svix-id'), header('webhook-id')],
    scheme: svixHmac,
  }),
  defineSender({
    name: 'svix',
    label: 'Svix',
    docs: 'https://docs.svix.com/receiving/verifying-payloads/how-manual',
    marks: [sent('svix-id', 'svix-signature')],
    event: [body('type'), body('event_type')],
    deliveryId: [header('svix-id'), header('webhook-id')],
    scheme: svixHmac,
  }),
  // Recall.ai: workspaces from before 15 December 2025 use the header names of Svix
  defineSender({
    name: 'recall-ai',
    label: 'Recall.ai',
    docs: 'https://docs.recall.ai/docs/authenticating-requests-from-recallai',
    event: [body('event')],
    deliveryId: [header('svix-id'), header('webhook-id')],
    scheme: svixHmac,
  }),
  defineSender({
    name: 'openai',
    label: 'OpenAI',
    docs: 'https://platform.openai.com/docs/guides/webhooks',
    event: [body('type')],
    deliveryId: [header('webhook-id')],
    scheme: standardHmac,
  }),
  defineSender({
    name: 'gemini',
    label: 'Google Gemini',
    docs: 'https://ai.google.dev/gemini-api/docs/webhooks',
    event: [body('type')],
    deliveryId: [header('webhook-id')],
    scheme: { ...standardHmac, confidence: 'medium' },
  }),
  defineSender({
    name: 'replicate',
    label: 'Replicate',
    docs: 'https://replicate.com/docs/topics/webhooks/verify-webhook',
    event: [body('status')],
    deliveryId: [header('webhook-id')],
    scheme: standardHmac,
  }),
  // Anthropic: the field `type` of the payload is the same for every event
  defineSender({
    name: 'anthropic',
    label: 'Anthropic (Claude)',
    docs: 'https://platform.claude.com/docs/en/managed-agents/webhooks',
    event: [body('data.type')],
    deliveryId: [header('webhook-id')],
    scheme: standardHmac,
  }),
  defineSender({
    name: 'lithic',
    label: 'Lithic',
    docs: 'https://github.com/lithic-com/lithic-node/blob/main/src/resources/webhooks.ts',
    event: [body('event_type')],
    deliveryId: [header('webhook-id')],
    scheme: standardHmac,
  }),
  // Polar: the secret is a text that the user chose, and not base64
  defineSender({
    name: 'polar',
    label: 'Polar',
    docs: 'https://polar.sh/docs/integrate/webhooks/delivery',
    event: [body('type')],
    deliveryId: [header('webhook-id')],
    scheme: { ...standardHmac, secretEncoding: 'utf8', secretPrefix: '' },
  }),
  defineSender({
    name: 'supabase-auth',
    label: 'Supabase (auth hooks)',
    docs: 'https://supabase.com/docs/guides/auth/auth-hooks',
    event: [body('email_data.email_action_type')],
    deliveryId: [header('webhook-id')],
    scheme: { ...standardHmac, secretPrefix: 'v1,whsec_' },
  }),
  defineSender({
    name: 'brex',
    label: 'Brex',
    docs: 'https://developer.brex.com/docs/webhooks/',
    event: [body('event_type')],
    deliveryId: [header('webhook-id')],
    scheme: { ...standardHmac, confidence: 'medium' },
  }),
  // MCP Events: servers should use the id of an event upstream, which several kinds of events may share; so the id has the name too
  defineSender({
    name: 'mcp-events',
    label: 'MCP Events',
    docs: 'https://modelcontextprotocol.io/extensions/events/overview',
    marks: [sent('x-mcp-subscription-id', 'webhook-signature')],
    event: [body('type'), body('name')],
    deliveryId: [all(body('name'), header('webhook-id')), header('webhook-id')],
    scheme: { ...standardHmac, handshakes: [mcpVerification] },
  }),
  defineSender({
    name: 'standard-webhooks',
    label: 'Standard Webhooks',
    docs: specification,
    marks: [sent('webhook-id', 'webhook-signature')],
    event: [body('type')],
    deliveryId: [header('webhook-id')],
    schemes: [
      { id: 'standard-webhooks', ...standardHmac },
      {
        id: 'standard-webhooks-asym',
        variant: 'public key',
        kind: 'ed25519',
        header: 'webhook-signature',
        encoding: 'base64',
        syntax: { separator: ' ', joint: ',', field: 'v1a' },
        keyForm: 'raw-base64',
        keyPrefix: 'whpk_',
        template: '{id}.{timestamp}.{body}',
        idHeader: 'webhook-id',
        timestamp: { in: 'header', name: 'webhook-timestamp', unit: 's' },
        toleranceSeconds: 300,
        retries: standardRetries,
        confidence: 'verified',
      },
    ],
  }),
  defineSender({
    name: 'cloudevents',
    label: 'CloudEvents',
    marks: [sent('ce-specversion'), { header: 'content-type', like: /^application\/cloudevents\+json\b/i }],
    event: [header('ce-type'), body('type')],
    deliveryId: [all(header('ce-source'), header('ce-id')), all(body('source'), body('id'))],
  }),
  // Hookdeck and Convoy forward requests with the headers of the original sender, which is recognised first.
  defineSender({
    name: 'hookdeck',
    label: 'Hookdeck',
    docs: 'https://hookdeck.com/docs/authentication',
    marks: [sent('x-hookdeck-signature'), sent('x-hookdeck-eventid')],
    deliveryId: [header('x-hookdeck-eventid')],
    scheme: {
      kind: 'hmac',
      header: 'x-hookdeck-signature',
      encoding: 'base64',
      moreHeaders: /^x-hookdeck-signature-2$/,
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'convoy',
    label: 'Convoy',
    docs: 'https://docs.getconvoy.io/product-manual/signatures',
    marks: [sent('x-convoy-signature')],
    schemes: [
      {
        id: 'convoy',
        variant: 'simple',
        kind: 'hmac',
        header: 'x-convoy-signature',
        confidence: 'verified',
      },
      {
        id: 'convoy-advanced',
        variant: 'advanced',
        kind: 'hmac',
        header: 'x-convoy-signature',
        syntax: { separator: ',', joint: '=', field: 'v1' },
        template: '{timestamp},{body}',
        timestamp: { in: 'field', name: 't', unit: 's' },
        toleranceSeconds: 300,
        // each attempt signs the request anew, in its own task
        retries: {
          time: 'anew',
          docs: 'https://github.com/frain-dev/convoy/blob/main/worker/task/process_event_delivery.go',
        },
        confidence: 'medium',
      },
    ],
  }),
]
