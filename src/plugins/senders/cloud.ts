// Clouds. Facts are from the senders' public documentation.
import { defineSender, type SchemeRow } from '../../define.ts'
import { userAgent, all, body, header, sent } from './shared.ts'
import { snsCertificate } from './certificates.ts'
import { cloudinaryProof, snsProof } from './proofs.ts'
import { snsSubscription, googleSync, graphToken } from './handshakes.ts'

/** The token that Google adds to a push request. Its account and its audience are the operator's choice. */
const googleToken = {
  kind: 'jwt',
  header: 'authorization',
  bearer: true,
  algorithm: 'RS256',
  issuers: ['https://accounts.google.com', 'accounts.google.com'],
  jwksUrl: 'https://www.googleapis.com/oauth2/v3/certs',
  requires: ['exp', 'iat'],
  forAccount: true,
  confidence: 'verified',
} satisfies SchemeRow

export const cloudSenders = [
  defineSender({
    name: 'aws-sns',
    label: 'Amazon SNS',
    docs: 'https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html',
    marks: [sent('x-amz-sns-message-type'), userAgent(/^Amazon Simple Notification Service Agent\b/)],
    event: [header('x-amz-sns-message-type'), body('Type')],
    deliveryId: [header('x-amz-sns-message-id'), body('MessageId')],
    scheme: {
      kind: 'code',
      code: snsProof(snsCertificate),
      about: 'RSA with the sender’s certificate over the fields of the message',
      toleranceSeconds: 3_900,
      retries: {
        time: 'first',
        seconds: 3_600,
        docs: 'https://docs.aws.amazon.com/sns/latest/dg/sns-message-delivery-retries.html',
      },
      handshakes: [snsSubscription],
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'google-pubsub',
    label: 'Google Pub/Sub',
    docs: 'https://cloud.google.com/pubsub/docs/authenticate-push-subscriptions',
    marks: [
      sent('x-goog-pubsub-message-id'),
      sent('x-goog-pubsub-subscription-name'),
      userAgent(/^CloudPubSub-Google\b/),
    ],
    event: [body('message.attributes.eventType')],
    deliveryId: [header('x-goog-pubsub-message-id'), body('message.messageId')],
    scheme: googleToken,
  }),
  defineSender({
    name: 'google-cloudevents',
    label: 'Google Cloud (Eventarc)',
    docs: 'https://cloud.google.com/eventarc/docs/cloudevents',
    marks: [{ header: 'ce-source', like: /^\/\/[a-z\d-]+\.googleapis\.com\//, beside: 'ce-specversion' }],
    event: [header('ce-type')],
    deliveryId: [all(header('ce-source'), header('ce-id'))],
    // https://protobuf.dev/programming-guides/json/: a 64-bit integer is a text, and a number is accepted too
    hasNumbersAsTexts: true,
    scheme: googleToken,
  }),
  defineSender({
    name: 'google-channel',
    label: 'Google (push channels)',
    docs: 'https://developers.google.com/workspace/calendar/api/guides/push',
    marks: [sent('x-goog-channel-id')],
    event: [header('x-goog-resource-state')],
    deliveryId: [all(header('x-goog-channel-id'), header('x-goog-message-number'))],
    scheme: {
      kind: 'token',
      header: 'x-goog-channel-token',
      handshakes: [googleSync],
      acceptsEmpty: true,
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'microsoft-graph',
    label: 'Microsoft Graph',
    docs: 'https://learn.microsoft.com/graph/change-notifications-delivery-webhooks',
    event: [body('value.0.changeType')],
    scheme: {
      kind: 'client-state',
      list: 'value',
      field: 'clientState',
      handshakes: [graphToken],
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'cloudflare',
    label: 'Cloudflare (notifications)',
    docs: 'https://developers.cloudflare.com/notifications/get-started/configure-webhooks/',
    marks: [sent('cf-webhook-auth')],
    event: [body('alert_type')],
    scheme: {
      kind: 'token',
      header: 'cf-webhook-auth',
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'cloudflare-stream',
    label: 'Cloudflare Stream',
    docs: 'https://developers.cloudflare.com/stream/manage-video-library/using-webhooks/',
    marks: [{ header: 'webhook-signature', like: /^time=\d+,sig1=/ }],
    event: [body('status.state')],
    scheme: {
      kind: 'hmac',
      header: 'webhook-signature',
      syntax: { separator: ',', joint: '=', field: 'sig1' },
      template: '{timestamp}.{body}',
      timestamp: { in: 'field', name: 'time', unit: 's' },
      toleranceSeconds: 300,
      // the signed time is that "when the server sent the request"
      retries: { time: 'anew', docs: 'https://developers.cloudflare.com/stream/manage-video-library/using-webhooks/' },
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'heroku',
    label: 'Heroku',
    docs: 'https://devcenter.heroku.com/articles/app-webhooks',
    marks: [sent('heroku-webhook-hmac-sha256')],
    event: [all(body('resource'), body('action'))],
    deliveryId: [body('webhook_metadata.delivery.id')],
    scheme: {
      kind: 'hmac',
      header: 'heroku-webhook-hmac-sha256',
      encoding: 'base64',
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'terraform',
    label: 'HCP Terraform',
    docs: 'https://developer.hashicorp.com/terraform/cloud-docs/workspaces/settings/notifications',
    marks: [sent('x-tfe-notification-signature')],
    event: [body('notifications.0.trigger')],
    scheme: {
      kind: 'hmac',
      header: 'x-tfe-notification-signature',
      algorithm: 'sha512',
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'mux',
    label: 'Mux',
    docs: 'https://www.mux.com/docs/core/verify-webhook-signatures',
    marks: [sent('mux-signature')],
    event: [body('type')],
    deliveryId: [body('id')],
    scheme: {
      kind: 'hmac',
      header: 'mux-signature',
      syntax: { separator: ',', joint: '=', field: 'v1' },
      template: '{timestamp}.{body}',
      timestamp: { in: 'field', name: 't', unit: 's' },
      toleranceSeconds: 87_000,
      retries: { time: 'first', seconds: 86_400, docs: 'https://www.mux.com/docs/core/listen-for-webhooks' },
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'qstash',
    label: 'Upstash QStash',
    docs: 'https://upstash.com/docs/qstash/howto/signature',
    marks: [sent('upstash-signature')],
    deliveryId: [header('upstash-message-id')],
    scheme: {
      kind: 'jwt',
      header: 'upstash-signature',
      bearer: false,
      algorithm: 'HS256',
      issuers: ['Upstash'],
      subjectIsUrl: true,
      bodyHashClaim: 'body',
      bodyHashEncoding: 'base64url',
      requires: ['exp'],
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'zapier',
    label: 'Zapier',
    docs: 'https://help.zapier.com/hc/en-us/articles/8496326446989-Send-webhooks-in-Zaps',
    scheme: {
      kind: 'token',
      header: undefined,
      confidence: 'medium',
    },
  }),
  defineSender({
    name: 'make',
    label: 'Make',
    docs: 'https://apps.make.com/http',
    scheme: {
      kind: 'token',
      header: undefined,
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'cloudinary',
    label: 'Cloudinary',
    docs: 'https://cloudinary.com/documentation/notification_signatures',
    marks: [sent('x-cld-signature')],
    event: [body('notification_type')],
    scheme: {
      kind: 'code',
      code: cloudinaryProof,
      about: 'SHA-1 or SHA-256 of body, time and secret',
      toleranceSeconds: 7_200,
      // its libraries refuse older times
      retries: {
        time: 'limited',
        seconds: 7_200,
        docs: 'https://cloudinary.com/documentation/notification_signatures',
      },
      confidence: 'verified',
    },
  }),
  // Event Grid signs nothing: token, basic or url-secret, which also answer its check of a URL. The CloudEvents that it sends are `cloudevents`.
  defineSender({
    name: 'azure-event-grid',
    label: 'Azure Event Grid',
    // https://learn.microsoft.com/azure/event-grid/receive-events
    marks: [sent('aeg-event-type', 'aeg-data-version')],
    event: [body('0.eventType')],
  }),
]
