// Forms, appointments, signatures, and what people do. Facts are from the senders' public documentation.
import { defineSender } from '../../define.ts'
import { userAgent, all, body, sent } from './shared.ts'
import { stravaHub } from './handshakes.ts'

export const peopleSenders = [
  defineSender({
    name: 'typeform',
    label: 'Typeform',
    docs: 'https://www.typeform.com/developers/webhooks/secure-your-webhooks/',
    marks: [sent('typeform-signature')],
    event: [body('event_type')],
    deliveryId: [body('event_id')],
    scheme: {
      kind: 'hmac',
      header: 'typeform-signature',
      encoding: 'base64',
      syntax: { prefix: 'sha256=' },
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'calendly',
    label: 'Calendly',
    docs: 'https://developer.calendly.com/api-docs/4c305798a61d3-webhook-signatures',
    marks: [sent('calendly-webhook-signature')],
    event: [body('event')],
    deliveryId: [all(body('event'), body('payload.uri'))],
    scheme: {
      kind: 'hmac',
      header: 'calendly-webhook-signature',
      syntax: { separator: ',', joint: '=', field: 'v1' },
      template: '{timestamp}.{body}',
      timestamp: { in: 'field', name: 't', unit: 's' },
      toleranceSeconds: 87_000,
      retries: {
        time: 'first',
        seconds: 86_400,
        docs: 'https://developer.calendly.com/api-docs/overview/webhooks/webhook-errors',
      },
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'cal.com',
    label: 'Cal.com',
    docs: 'https://cal.com/docs/developing/guides/automation/webhooks',
    marks: [sent('x-cal-signature-256')],
    event: [body('triggerEvent')],
    deliveryId: [all(body('triggerEvent'), body('payload.uid'), body('createdAt'))],
    scheme: {
      kind: 'hmac',
      header: 'x-cal-signature-256',
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'docusign',
    label: 'DocuSign',
    docs: 'https://developers.docusign.com/platform/webhooks/connect/validate/',
    marks: [sent('x-docusign-signature-1')],
    event: [body('event')],
    scheme: {
      kind: 'hmac',
      header: 'x-docusign-signature-1',
      encoding: 'base64',
      moreHeaders: /^x-docusign-signature-\d{1,3}$/,
      confidence: 'verified',
    },
  }),
  // Strava signs nothing: the id of the subscription is all that can be checked, and a number can be guessed. So give its hook a path that
  // nobody can guess.
  defineSender({
    name: 'strava',
    label: 'Strava',
    docs: 'https://developers.strava.com/docs/webhooks/',
    event: [all(body('object_type'), body('aspect_type'))],
    scheme: {
      kind: 'client-state',
      list: undefined,
      field: 'subscription_id',
      // a number, such as 120475: https://developers.strava.com/docs/webhooks/
      minSecretBytes: 1,
      handshakes: [stravaHub],
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'home-assistant',
    label: 'Home Assistant',
    docs: 'https://www.home-assistant.io/integrations/rest_command/',
    scheme: {
      kind: 'token',
      header: 'authorization',
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'tally',
    label: 'Tally',
    docs: 'https://tally.so/help/webhooks',
    marks: [sent('tally-signature')],
    event: [body('eventType')],
    deliveryId: [body('eventId')],
    scheme: {
      kind: 'hmac',
      header: 'tally-signature',
      encoding: 'base64',
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'ashby',
    label: 'Ashby',
    docs: 'https://developers.ashbyhq.com/docs/authenticating-webhooks',
    marks: [sent('ashby-signature')],
    event: [body('action')],
    scheme: {
      kind: 'hmac',
      header: 'ashby-signature',
      syntax: { prefix: 'sha256=' },
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'persona',
    label: 'Persona',
    docs: 'https://docs.withpersona.com/webhooks-best-practices',
    marks: [sent('persona-signature')],
    event: [body('data.attributes.name')],
    deliveryId: [body('data.id')],
    scheme: {
      kind: 'hmac',
      header: 'persona-signature',
      syntax: { separator: ',', joint: '=', field: 'v1' },
      template: '{timestamp}.{body}',
      timestamp: { in: 'field', name: 't', unit: 's' },
      toleranceSeconds: 300,
      // the signed time is "the unix time that the request was sent"
      retries: { time: 'anew', docs: 'https://docs.withpersona.com/webhooks-best-practices' },
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'tiktok',
    label: 'TikTok',
    docs: 'https://developers.tiktok.com/doc/webhooks-verification',
    marks: [sent('tiktok-signature')],
    event: [body('event')],
    scheme: {
      kind: 'hmac',
      header: 'tiktok-signature',
      syntax: { separator: ',', joint: '=', field: 's' },
      template: '{timestamp}.{body}',
      timestamp: { in: 'field', name: 't', unit: 's' },
      toleranceSeconds: 86_400,
      retries: { time: 'unsaid', docs: 'https://developers.tiktok.com/doc/webhooks-verification' },
      textIsId: true,
      confidence: 'verified',
    },
  }),
  // Fireflies: without a signing secret, it sends no signature
  defineSender({
    name: 'fireflies',
    label: 'Fireflies',
    docs: 'https://docs.fireflies.ai/graphql-api/webhooks-v2',
    marks: [userAgent(/^Fireflies-Webhook\b/)],
    event: [body('event')],
    // a meeting can be summarized again, at another time
    deliveryId: [all(body('event'), body('meeting_id'), body('timestamp'))],
    scheme: {
      kind: 'hmac',
      header: 'x-hub-signature',
      syntax: { prefix: 'sha256=' },
      confidence: 'medium',
    },
  }),
  // Plex signs nothing: url-secret. Its form has a file beside the field with the event.
  defineSender({
    name: 'plex',
    label: 'Plex',
    // https://support.plex.tv/articles/115002267687-webhooks/
    event: [body('payload.event')],
    jsonFields: ['payload'],
  }),
]
