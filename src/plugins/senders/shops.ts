// Shops. Facts are from the senders' public documentation.
import { defineSender } from '../../define.ts'
import { userAgent, body, header, sent } from './shared.ts'
import { woocommercePing } from './handshakes.ts'

export const shopsSenders = [
  defineSender({
    name: 'shopify',
    label: 'Shopify',
    docs: 'https://shopify.dev/docs/apps/build/webhooks/verify-deliveries',
    marks: [sent('x-shopify-topic'), sent('x-shopify-hmac-sha256'), userAgent(/^Shopify-Captain-Hook\b/)],
    event: [header('x-shopify-topic')],
    deliveryId: [header('x-shopify-webhook-id')],
    scheme: {
      kind: 'hmac',
      header: 'x-shopify-hmac-sha256',
      encoding: 'base64',
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'woocommerce',
    label: 'WooCommerce',
    docs: 'https://developer.woocommerce.com/docs/webhooks/',
    marks: [sent('x-wc-webhook-topic'), sent('x-wc-webhook-signature')],
    event: [header('x-wc-webhook-topic')],
    scheme: {
      kind: 'hmac',
      header: 'x-wc-webhook-signature',
      encoding: 'base64',
      handshakes: [woocommercePing],
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'lemonsqueezy',
    label: 'Lemon Squeezy',
    docs: 'https://docs.lemonsqueezy.com/help/webhooks/signing-requests',
    marks: [sent('x-event-name', 'x-signature')],
    event: [header('x-event-name'), body('meta.event_name')],
    scheme: {
      kind: 'hmac',
      header: 'x-signature',
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'bigcommerce',
    label: 'BigCommerce',
    docs: 'https://developer.bigcommerce.com/docs/integrations/webhooks/http',
    event: [body('scope')],
    // it signs nothing, but sends the headers that its user sets
    scheme: {
      kind: 'token',
      header: undefined,
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'easypost',
    label: 'EasyPost',
    docs: 'https://docs.easypost.com/guides/webhooks-guide',
    marks: [{ header: 'x-hmac-signature', like: /^hmac-sha256-hex=/ }],
    event: [body('description')],
    deliveryId: [body('id')],
    scheme: {
      kind: 'hmac',
      header: 'x-hmac-signature',
      syntax: { prefix: 'hmac-sha256-hex=' },
      confidence: 'verified',
    },
  }),
]
