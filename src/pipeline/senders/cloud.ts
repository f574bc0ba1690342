// Clouds. Facts are from the senders' public documentation.
import { agent, all, body, header, sent, type Sender } from './sender.ts'

export const cloudSenders: readonly Sender[] = [
  {
    source: 'aws-sns',
    label: 'Amazon SNS',
    docs: 'https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html',
    marks: [sent('x-amz-sns-message-type'), agent(/^Amazon Simple Notification Service Agent\b/)],
    event: [header('x-amz-sns-message-type'), body('Type')],
    deliveryId: [header('x-amz-sns-message-id'), body('MessageId')],
    scheme: {
      kind: 'x509',
      header: 'x-amz-sns-message-type',
      signs: 'fields',
      toleranceSeconds: 3_900,
      retries: {
        time: 'first',
        seconds: 3_600,
        docs: 'https://docs.aws.amazon.com/sns/latest/dg/sns-message-delivery-retries.html',
      },
      handshakes: ['sns-confirmation'],
      confidence: 'verified',
    },
  },
  {
    source: 'google-pubsub',
    label: 'Google Pub/Sub',
    docs: 'https://cloud.google.com/pubsub/docs/authenticate-push-subscriptions',
    marks: [sent('x-goog-pubsub-message-id'), sent('x-goog-pubsub-subscription-name'), agent(/^CloudPubSub-Google\b/)],
    event: [body('message.attributes.eventType')],
    deliveryId: [header('x-goog-pubsub-message-id'), body('message.messageId')],
    scheme: {
      kind: 'jwt',
      header: 'authorization',
      bearer: true,
      algorithm: 'RS256',
      issuers: ['https://accounts.google.com', 'accounts.google.com'],
      jwksUrl: 'https://www.googleapis.com/oauth2/v3/certs',
      requires: ['exp', 'iat'],
      forAccount: true,
      confidence: 'verified',
    },
  },
  {
    source: 'google-channel',
    label: 'Google (push channels)',
    docs: 'https://developers.google.com/workspace/calendar/api/guides/push',
    marks: [sent('x-goog-channel-id')],
    event: [header('x-goog-resource-state')],
    deliveryId: [all(header('x-goog-channel-id'), header('x-goog-message-number'))],
    scheme: {
      kind: 'token',
      header: 'x-goog-channel-token',
      handshakes: ['google-sync'],
      acceptsEmpty: true,
      confidence: 'verified',
    },
  },
  {
    source: 'microsoft-graph',
    label: 'Microsoft Graph',
    docs: 'https://learn.microsoft.com/graph/change-notifications-delivery-webhooks',
    event: [body('value[0].changeType')],
    scheme: {
      kind: 'client-state',
      list: 'value',
      field: 'clientState',
      handshakes: ['graph-token'],
      confidence: 'verified',
    },
  },
]
