// Mail. Facts are from the senders' public documentation.
import { defineSender } from '../../define.ts'
import { body, sent } from './shared.ts'
import { mailgunProof } from './proofs.ts'
import { anyHead, getChallenge } from './handshakes.ts'

export const mailSenders = [
  defineSender({
    name: 'gmail',
    label: 'Gmail',
    from: ['messages', 0, 'from'],
    subject: ['messages', 0, 'subject'],
  }),
  defineSender({
    name: 'sendgrid',
    label: 'SendGrid',
    docs: 'https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/getting-started-event-webhook-security-features',
    marks: [sent('x-twilio-email-event-webhook-signature')],
    scheme: {
      kind: 'ecdsa',
      header: 'x-twilio-email-event-webhook-signature',
      encoding: 'base64',
      keyForm: 'spki-base64',
      template: '{timestamp}{body}',
      timestamp: { in: 'header', name: 'x-twilio-email-event-webhook-timestamp', unit: 's' },
      toleranceSeconds: 87_000,
      retries: {
        time: 'first',
        seconds: 86_400,
        docs: 'https://docs.sendgrid.com/for-developers/tracking-events/troubleshooting',
      },
      textIsId: true,
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'mandrill',
    label: 'Mandrill',
    docs: 'https://mailchimp.com/developer/transactional/guides/track-respond-activity-webhooks/',
    marks: [sent('x-mandrill-signature')],
    jsonFields: ['mandrill_events'],
    scheme: {
      kind: 'hmac',
      header: 'x-mandrill-signature',
      algorithm: 'sha1',
      encoding: 'base64',
      template: '{url}{form}',
      handshakes: [anyHead],
      confidence: 'medium',
    },
  }),
  // Mailchimp signs nothing: url-secret
  defineSender({
    name: 'mailchimp',
    label: 'Mailchimp',
    // https://mailchimp.com/developer/marketing/guides/sync-audience-data-webhooks/
    event: [body('type')],
  }),
  defineSender({
    name: 'mailgun',
    label: 'Mailgun',
    docs: 'https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks',
    event: [body('event-data.event')],
    deliveryId: [body('signature.token')],
    scheme: {
      kind: 'code',
      code: mailgunProof,
      about: 'HMAC-SHA256 of time and token in the body, not of the event',
      // a token is accepted only once while deliveries are remembered, which is longer than this tolerance
      toleranceSeconds: 86_400,
      retries: {
        time: 'first',
        seconds: 28_800,
        docs: 'https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/webhook-retries',
      },
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'postmark',
    label: 'Postmark',
    docs: 'https://postmarkapp.com/developer/webhooks/webhooks-overview',
    event: [body('RecordType')],
    from: ['From'],
    subject: ['Subject'],
    scheme: {
      kind: 'basic',
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'nylas',
    label: 'Nylas',
    docs: 'https://developer.nylas.com/docs/v3/notifications/webhooks/',
    marks: [sent('x-nylas-signature')],
    event: [body('type')],
    deliveryId: [body('id')],
    scheme: {
      kind: 'hmac',
      header: 'x-nylas-signature',
      handshakes: [getChallenge],
      confidence: 'verified',
    },
  }),
]
