// Conventions that many senders share, and the senders that use them, which only their names tell apart.
// Facts are from the senders' public documentation.
import type { Retries } from '../verifiers/scheme.ts'
import { all, body, header, type SchemeRow, sent, type Sender } from './sender.ts'

const specification = 'https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md'
/** "Every time an attempt is retried the timestamp of the attempt is updated": a promise of all who follow the convention. */
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

export const conventionsSenders: readonly Sender[] = [
  {
    source: 'clerk',
    label: 'Clerk',
    docs: 'https://clerk.com/docs/guides/development/webhooks/overview',
    event: [body('type'), body('event_type')],
    deliveryId: [header('svix-id'), header('webhook-id')],
    scheme: svixHmac,
  },
  {
    source: 'resend',
    label: 'Resend',
    docs: 'https://resend.com/docs/dashboard/webhooks/introduction',
    event: [body('type'), body('event_type')],
    deliveryId: [header('svix-id'), header('webhook-id')],
    scheme: svixHmac,
  },
  {
    source: 'svix',
    label: 'Svix',
    docs: 'https://docs.svix.com/receiving/verifying-payloads/how-manual',
    marks: [sent('svix-id', 'svix-signature')],
    event: [body('type'), body('event_type')],
    deliveryId: [header('svix-id'), header('webhook-id')],
    scheme: svixHmac,
  },
  {
    source: 'recall-ai',
    label: 'Recall.ai',
    event: [body('event')],
    deliveryId: [header('svix-id'), header('webhook-id')],
  },
  {
    source: 'openai',
    label: 'OpenAI',
    docs: 'https://platform.openai.com/docs/guides/webhooks',
    event: [body('type')],
    deliveryId: [header('webhook-id')],
    scheme: standardHmac,
  },
  {
    source: 'replicate',
    label: 'Replicate',
    docs: 'https://replicate.com/docs/topics/webhooks/verify-webhook',
    event: [body('status')],
    deliveryId: [header('webhook-id')],
    scheme: standardHmac,
  },
  {
    source: 'standard-webhooks',
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
  },
  {
    source: 'cloudevents',
    label: 'CloudEvents',
    marks: [sent('ce-specversion'), { header: 'content-type', like: /^application\/cloudevents\+json\b/i }],
    event: [header('ce-type'), body('type')],
    deliveryId: [all(header('ce-source'), header('ce-id')), all(body('source'), body('id'))],
  },
]
