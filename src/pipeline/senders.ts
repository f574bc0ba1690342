// Who sends webhooks: one row a sender, the most specific first. Facts are from the senders' public documentation.
// A delivery id has to be the same when one event comes again and another for every other event: a wrong one loses events,
// none loses nothing. So what repeats (Alertmanager's groupKey, GitLab's X-Gitlab-Event-UUID, WooCommerce's delivery id,
// a hash of the second) is left out, and so are the ids inside of batches.
import { parsePath, type Path } from './path.ts'

/** Where a fact stands. `key`: the name of a top-level field; `all`: every part, joined. */
export type Fact =
  | { readonly in: 'header'; readonly name: string }
  | { readonly in: 'body'; readonly path: Path }
  | { readonly in: 'key'; readonly like: RegExp }
  | { readonly in: 'all'; readonly parts: readonly Fact[] }

/** A header that gives the sender away: by being there, by its value, or together with another header. */
export type Mark = { readonly header: string; readonly like?: RegExp; readonly beside?: string }

/** Facts are tried in order. No marks: the headers do not tell, only the name does. */
export type Sender = {
  readonly source: string
  readonly marks?: readonly Mark[]
  readonly event?: readonly Fact[]
  readonly deliveryId?: readonly Fact[]
  readonly from?: Path
  readonly subject?: Path
}

const sent = (header: string, beside?: string): Mark => (beside === undefined ? { header } : { header, beside })
const agent = (like: RegExp): Mark => ({ header: 'user-agent', like })
const header = (name: string): Fact => ({ in: 'header', name })
const body = (path: string): Fact => ({ in: 'body', path: parsePath(path) })
const key = (like: RegExp): Fact => ({ in: 'key', like })
const all = (...parts: Fact[]): Fact => ({ in: 'all', parts })

export const senders: readonly Sender[] = [
  // forges; Forgejo and Gitea also send the headers of those whose fork or stand-in they are
  ...['forgejo', 'gitea', 'gogs'].map((source) => ({
    source,
    marks: [sent(`x-${source}-event`), sent(`x-${source}-delivery`)],
    event: [header(`x-${source}-event`)],
    deliveryId: [header(`x-${source}-delivery`)],
  })),
  {
    source: 'github',
    marks: [sent('x-github-event'), sent('x-github-delivery'), agent(/^GitHub-Hookshot\//)],
    event: [header('x-github-event')],
    deliveryId: [header('x-github-delivery')],
  },
  {
    source: 'gitlab',
    marks: [sent('x-gitlab-event'), sent('x-gitlab-webhook-uuid'), agent(/^GitLab\//)],
    event: [header('x-gitlab-event'), body('object_kind')],
    deliveryId: [header('idempotency-key'), header('webhook-id')],
  },
  {
    source: 'bitbucket',
    marks: [sent('x-hook-uuid', 'x-event-key'), agent(/^Bitbucket-Webhooks\//)],
    event: [header('x-event-key')],
    deliveryId: [header('x-request-uuid')],
  },
  {
    source: 'bitbucket-server',
    marks: [sent('x-event-key')],
    event: [header('x-event-key'), body('eventKey')],
    deliveryId: [header('x-request-id')],
  },
  { source: 'azure-devops', event: [body('eventType')], deliveryId: [body('id')] },

  // building, watching, planning
  {
    source: 'buildkite',
    marks: [sent('x-buildkite-event')],
    event: [header('x-buildkite-event'), body('event')],
    deliveryId: [header('x-buildkite-request')],
  },
  {
    source: 'circleci',
    marks: [sent('circleci-event-type'), sent('circleci-signature')],
    event: [header('circleci-event-type'), body('type')],
    deliveryId: [body('id')],
  },
  { source: 'vercel', marks: [sent('x-vercel-signature')], event: [body('type')], deliveryId: [body('id')] },
  { source: 'netlify', marks: [sent('x-netlify-event')], event: [header('x-netlify-event')] },
  {
    source: 'sentry',
    marks: [sent('sentry-hook-resource'), sent('sentry-hook-signature')],
    event: [header('sentry-hook-resource')],
    deliveryId: [header('request-id')],
  },
  {
    source: 'pagerduty',
    marks: [sent('x-pagerduty-signature')],
    event: [body('event.event_type')],
    deliveryId: [body('event.id')],
  },
  { source: 'grafana', marks: [sent('x-grafana-alerting-signature'), agent(/^Grafana\b/)], event: [body('status')] },
  { source: 'datadog', event: [body('event_type')] },
  { source: 'alertmanager', marks: [agent(/^Alertmanager\//)], event: [body('status')] },
  {
    source: 'linear',
    marks: [sent('linear-event'), sent('linear-delivery'), sent('linear-signature')],
    event: [header('linear-event'), body('type')],
    deliveryId: [header('linear-delivery')],
  },
  {
    source: 'jira',
    marks: [sent('x-atlassian-webhook-identifier')],
    event: [body('webhookEvent')],
    deliveryId: [header('x-atlassian-webhook-identifier')],
  },
  {
    source: 'trello',
    marks: [sent('x-trello-webhook')],
    event: [body('action.type')],
    deliveryId: [body('action.id')],
  },
  { source: 'asana', marks: [sent('x-hook-signature')] },
  { source: 'clickup', event: [body('event')] },
  {
    source: 'monday',
    event: [body('event.type')],
    deliveryId: [all(body('event.triggerUuid'), body('event.subscriptionId'))],
  },
  { source: 'notion', marks: [sent('x-notion-signature')], event: [body('type')], deliveryId: [body('id')] },
  { source: 'airtable', marks: [sent('x-airtable-content-mac')] },
  { source: 'huggingface', event: [all(body('event.scope'), body('event.action'))] },
  {
    source: 'box',
    marks: [sent('box-delivery-id'), sent('box-signature-primary')],
    event: [body('trigger')],
    deliveryId: [header('box-delivery-id')],
  },
  { source: 'dropbox', marks: [sent('x-dropbox-signature')] },
  { source: 'webflow', marks: [sent('x-webflow-signature')], event: [body('triggerType')] },
  { source: 'sanity', marks: [sent('sanity-webhook-signature')], deliveryId: [header('idempotency-key')] },

  // money
  {
    source: 'stripe',
    marks: [sent('stripe-signature'), agent(/^Stripe\//)],
    event: [body('type')],
    deliveryId: [body('id')],
  },
  {
    source: 'shopify',
    marks: [sent('x-shopify-topic'), sent('x-shopify-hmac-sha256'), agent(/^Shopify-Captain-Hook\b/)],
    event: [header('x-shopify-topic')],
    deliveryId: [header('x-shopify-webhook-id')],
  },
  {
    source: 'woocommerce',
    marks: [sent('x-wc-webhook-topic'), sent('x-wc-webhook-signature')],
    event: [header('x-wc-webhook-topic')],
  },
  {
    source: 'square',
    marks: [sent('x-square-hmacsha256-signature')],
    event: [body('type')],
    deliveryId: [body('event_id')],
  },
  {
    source: 'paypal',
    marks: [sent('paypal-transmission-sig'), sent('paypal-transmission-id')],
    event: [body('event_type')],
    deliveryId: [body('id')],
  },
  {
    source: 'paddle',
    marks: [sent('paddle-signature'), agent(/^Paddle\b/)],
    event: [body('event_type'), body('alert_name')],
    deliveryId: [body('notification_id'), body('event_id'), body('alert_id')],
  },
  {
    source: 'checkout',
    marks: [sent('cko-signature'), sent('cko-correlation-id')],
    event: [body('type')],
    deliveryId: [body('id')],
  },
  { source: 'adyen', event: [body('notificationItems[0].NotificationRequestItem.eventCode')] },
  { source: 'adyen-platform', marks: [sent('hmacsignature')], event: [body('type')] },
  {
    source: 'razorpay',
    marks: [sent('x-razorpay-signature'), sent('x-razorpay-event-id')],
    event: [body('event')],
    deliveryId: [header('x-razorpay-event-id')],
  },
  { source: 'paystack', marks: [sent('x-paystack-signature')], event: [body('event')] },
  {
    source: 'lemonsqueezy',
    marks: [sent('x-event-name', 'x-signature')],
    event: [header('x-event-name'), body('meta.event_name')],
  },
  { source: 'revolut', marks: [sent('revolut-signature')], event: [body('event')] },
  { source: 'orb', marks: [sent('x-orb-signature')], event: [body('type')], deliveryId: [body('id')] },
  { source: 'xero', marks: [sent('x-xero-signature')] },
  { source: 'plaid', marks: [sent('plaid-verification')], event: [all(body('webhook_type'), body('webhook_code'))] },
  { source: 'gocardless', marks: [agent(/^gocardless-webhook-service\//)] },
  { source: 'bigcommerce', event: [body('scope')] },
  { source: 'brex', event: [body('event_type')] },

  // customers and their accounts
  {
    source: 'hubspot',
    marks: [sent('x-hubspot-signature-v3'), sent('x-hubspot-signature'), agent(/^HubSpot Connect\b/)],
  },
  { source: 'intercom', event: [body('topic')], deliveryId: [body('id')] },
  {
    source: 'zendesk',
    marks: [sent('x-zendesk-webhook-invocation-id'), sent('x-zendesk-webhook-signature')],
    event: [body('type')],
    deliveryId: [header('x-zendesk-webhook-invocation-id')],
  },
  { source: 'front', marks: [sent('x-front-signature')], event: [body('type')] },
  { source: 'attio', marks: [sent('attio-signature')], deliveryId: [header('idempotency-key')] },
  {
    source: 'customerio',
    marks: [sent('x-cio-signature')],
    event: [all(body('object_type'), body('metric'))],
    deliveryId: [body('event_id')],
  },
  // `event` is how version 1 says it; its meta.id is the id of the changed object, not of the event
  {
    source: 'pipedrive',
    marks: [agent(/^Pipedrive Webhooks\b/)],
    event: [body('event'), all(body('meta.action'), body('meta.entity'))],
  },
  {
    source: 'typeform',
    marks: [sent('typeform-signature')],
    event: [body('event_type')],
    deliveryId: [body('event_id')],
  },
  {
    source: 'calendly',
    marks: [sent('calendly-webhook-signature')],
    event: [body('event')],
    deliveryId: [all(body('event'), body('payload.uri'))],
  },
  {
    source: 'cal.com',
    marks: [sent('x-cal-signature-256')],
    event: [body('triggerEvent')],
    deliveryId: [all(body('triggerEvent'), body('payload.uid'), body('createdAt'))],
  },
  { source: 'docusign', marks: [sent('x-docusign-signature-1')], event: [body('event')] },
  { source: 'workos', marks: [sent('workos-signature')], event: [body('event')], deliveryId: [body('id')] },
  { source: 'okta', deliveryId: [body('eventId')] },
  { source: 'strava', event: [all(body('object_type'), body('aspect_type'))] },

  // people talking
  {
    source: 'slack',
    marks: [sent('x-slack-signature'), sent('x-slack-request-timestamp')],
    event: [body('event.type'), body('type')],
    deliveryId: [body('event_id')],
  },
  {
    source: 'discord',
    marks: [sent('x-signature-ed25519', 'x-signature-timestamp')],
    event: [body('event.type'), body('type')],
    deliveryId: [body('id')],
  },
  {
    source: 'telegram',
    marks: [sent('x-telegram-bot-api-secret-token')],
    event: [key(/^(?!update_id$)/)],
    deliveryId: [body('update_id')],
  },
  { source: 'meta', marks: [agent(/^facebookexternalua\b/)], event: [body('object')] },
  { source: 'line', marks: [sent('x-line-signature')] },
  { source: 'x-twitter', marks: [sent('x-twitter-webhooks-signature')], event: [key(/_events$/)] },
  { source: 'msteams-outgoing', event: [body('type')] },
  {
    source: 'zoom',
    marks: [sent('x-zm-signature'), sent('x-zm-request-timestamp')],
    event: [body('event')],
  },
  {
    source: 'twitch',
    marks: [sent('twitch-eventsub-message-id')],
    event: [header('twitch-eventsub-subscription-type')],
    deliveryId: [header('twitch-eventsub-message-id')],
  },
  { source: 'twilio', marks: [sent('x-twilio-signature')], deliveryId: [header('i-twilio-idempotency-token')] },
  {
    source: 'telnyx',
    marks: [sent('telnyx-signature-ed25519')],
    event: [body('data.event_type')],
    deliveryId: [body('data.id')],
  },
  { source: 'vapi', marks: [sent('x-vapi-signature'), sent('x-vapi-secret')], event: [body('message.type')] },
  {
    source: 'elevenlabs',
    marks: [sent('elevenlabs-signature')],
    event: [body('type')],
    deliveryId: [all(body('type'), body('data.conversation_id'))],
  },
  { source: 'knock', marks: [sent('x-knock-signature')], event: [body('type')], deliveryId: [body('id')] },

  // mail
  { source: 'gmail', from: parsePath('messages[0].from'), subject: parsePath('messages[0].subject') },
  { source: 'sendgrid', marks: [sent('x-twilio-email-event-webhook-signature')] },
  { source: 'mailgun', event: [body('event-data.event')], deliveryId: [body('signature.token')] },
  { source: 'postmark', event: [body('RecordType')], from: parsePath('From'), subject: parsePath('Subject') },
  { source: 'nylas', marks: [sent('x-nylas-signature')], event: [body('type')], deliveryId: [body('id')] },

  // clouds
  {
    source: 'aws-sns',
    marks: [sent('x-amz-sns-message-type'), agent(/^Amazon Simple Notification Service Agent\b/)],
    event: [header('x-amz-sns-message-type'), body('Type')],
    deliveryId: [header('x-amz-sns-message-id'), body('MessageId')],
  },
  {
    source: 'google-pubsub',
    marks: [sent('x-goog-pubsub-message-id'), sent('x-goog-pubsub-subscription-name'), agent(/^CloudPubSub-Google\b/)],
    event: [body('message.attributes.eventType')],
    deliveryId: [header('x-goog-pubsub-message-id'), body('message.messageId')],
  },
  {
    source: 'google-channel',
    marks: [sent('x-goog-channel-id')],
    event: [header('x-goog-resource-state')],
    deliveryId: [all(header('x-goog-channel-id'), header('x-goog-message-number'))],
  },

  { source: 'microsoft-graph', event: [body('value[0].changeType')] },
  { source: 'home-assistant' },

  // conventions that many senders share; Clerk, Resend and the like are told apart only by name
  ...['clerk', 'resend', 'svix'].map((source) => ({
    source,
    ...(source === 'svix' ? { marks: [sent('svix-id', 'svix-signature')] } : {}),
    event: [body('type'), body('event_type')],
    deliveryId: [header('svix-id'), header('webhook-id')],
  })),
  { source: 'recall-ai', event: [body('event')], deliveryId: [header('svix-id'), header('webhook-id')] },
  { source: 'openai', event: [body('type')], deliveryId: [header('webhook-id')] },
  { source: 'replicate', event: [body('status')], deliveryId: [header('webhook-id')] },
  {
    source: 'standard-webhooks',
    marks: [sent('webhook-id', 'webhook-signature')],
    event: [body('type')],
    deliveryId: [header('webhook-id')],
  },
  {
    source: 'cloudevents',
    marks: [sent('ce-specversion'), { header: 'content-type', like: /^application\/cloudevents\+json\b/i }],
    event: [header('ce-type'), body('type')],
    deliveryId: [all(header('ce-source'), header('ce-id')), all(body('source'), body('id'))],
  },
]
