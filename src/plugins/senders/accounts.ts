// Billing, bookkeeping and coins. Facts are from the senders' public documentation.
import { defineSender } from '../../define.ts'
import { all, body, sent } from './shared.ts'

const entity = 'eventNotifications.0.dataChangeEvent.entities.0'

export const accountsSenders = [
  // Mollie: what the `webhookUrl` of a payment gets is not signed, and has only an id
  defineSender({
    name: 'mollie',
    label: 'Mollie (next-gen webhooks)',
    docs: 'https://docs.mollie.com/reference/webhooks-new',
    marks: [sent('x-mollie-signature')],
    event: [body('type')],
    scheme: {
      kind: 'hmac',
      header: 'x-mollie-signature',
      // for a day after a change of the secret, there are two of these headers
      syntax: { prefix: 'sha256=', isList: true },
      confidence: 'medium',
    },
  }),
  defineSender({
    name: 'chargebee',
    label: 'Chargebee',
    docs: 'https://www.chargebee.com/docs/webhook_settings.html',
    event: [body('event_type')],
    deliveryId: [body('id')],
    scheme: { kind: 'basic', confidence: 'verified' },
  }),
  defineSender({
    name: 'intuit',
    label: 'Intuit (QuickBooks Online)',
    docs: 'https://developer.intuit.com/app/developer/qbo/docs/develop/webhooks/managing-webhooks-notifications',
    marks: [sent('intuit-signature')],
    event: [body('0.type'), all(body(`${entity}.name`), body(`${entity}.operation`))],
    scheme: {
      kind: 'hmac',
      header: 'intuit-signature',
      encoding: 'base64',
      confidence: 'medium',
    },
  }),
  defineSender({
    name: 'coinbase-commerce',
    label: 'Coinbase Commerce',
    docs: 'https://docs.cdp.coinbase.com/commerce/api-arcitecture/webhooks-security',
    marks: [sent('x-cc-webhook-signature')],
    event: [body('event.type')],
    deliveryId: [body('event.id')],
    scheme: {
      kind: 'hmac',
      header: 'x-cc-webhook-signature',
      confidence: 'medium',
    },
  }),
  // Coinbase: `v0` signs time and body; `v1` also signs headers, of which its page says that most receivers do not need them
  defineSender({
    name: 'coinbase',
    label: 'Coinbase (developer platform)',
    docs: 'https://docs.cdp.coinbase.com/webhooks/verify-signatures',
    marks: [sent('x-hook0-signature')],
    scheme: {
      kind: 'hmac',
      header: 'x-hook0-signature',
      syntax: { separator: ',', joint: '=', field: 'v0' },
      template: '{timestamp}.{body}',
      timestamp: { in: 'field', name: 't', unit: 's' },
      toleranceSeconds: 300,
      // the code of its page refuses older times
      retries: { time: 'limited', seconds: 300, docs: 'https://docs.cdp.coinbase.com/webhooks/verify-signatures' },
      confidence: 'medium',
    },
  }),
  defineSender({
    name: 'airwallex',
    label: 'Airwallex',
    docs: 'https://www.airwallex.com/docs/developer-tools/webhooks/listen-for-webhook-events',
    event: [body('name')],
    deliveryId: [body('id')],
    scheme: {
      kind: 'hmac',
      header: 'x-signature',
      template: '{timestamp}{body}',
      timestamp: { in: 'header', name: 'x-timestamp', unit: 'ms' },
      toleranceSeconds: 259_500,
      retries: {
        time: 'first',
        seconds: 259_200,
        docs: 'https://www.airwallex.com/docs/developer-tools/webhooks/webhooks-overview',
      },
      confidence: 'medium',
    },
  }),
  defineSender({
    name: 'alchemy',
    label: 'Alchemy',
    docs: 'https://www.alchemy.com/docs/reference/notify-api-quickstart',
    marks: [sent('x-alchemy-signature')],
    event: [body('type')],
    deliveryId: [body('id')],
    scheme: {
      kind: 'hmac',
      header: 'x-alchemy-signature',
      confidence: 'medium',
    },
  }),
]
