// Completed checkouts, paid and failed invoices, new and ended subscriptions, and disputes become agent turns.
import { defineSignedPreset } from '../signed.ts'

// an amount in the smallest unit of its currency, as Stripe sends it: a template cannot look up that unit
const money = (field: string) => `{{data.object.${field}}} {{data.object.currency}} (in the currency’s smallest unit)`
const invoiceOf =
  'invoice {{data.object.number | default: "without a number"}} of {{data.object.customer_name | default: "a customer without a name"}} <{{data.object.customer_email | default: "no e-mail"}}>'
const further = ['Live: {{livemode | default: "unknown"}}', 'https://dashboard.stripe.com/events/{{id}}']
const customer = 'hook:stripe:{{data.object.customer | default: "guest"}}'
const subscriptionLines = [
  'Customer: {{data.object.customer}}; status: {{data.object.status | default: "unknown"}}',
  'Price: {{data.object.items.data[0].price.nickname | default: "without a name"}} ({{data.object.items.data[0].price.id | default: "unknown"}})',
  ...further,
]

/** Source: https://docs.stripe.com/api/events/types */
export default defineSignedPreset({
  name: 'stripe',
  title: 'Completed checkouts, paid and failed invoices, subscriptions and disputes become agent turns.',
  scheme: 'stripe',
  from: 'sender',
  instructions:
    'Say in a few sentences what happened, for which customer and which amount, and whether somebody should act.',
  events: [
    {
      event: 'checkout',
      match: { payload: { type: ['checkout.session.completed', 'checkout.session.async_payment_failed'] } },
      name: 'Stripe checkout',
      sessionKey: customer,
      message: [
        `{{type}}: {{data.object.customer_details.name | default: "a customer without a name"}} <{{data.object.customer_details.email | default: "no e-mail"}}>, ${money('amount_total')}`,
        'Payment: {{data.object.payment_status | default: "unknown"}}; session {{data.object.id}}',
        ...further,
      ],
    },
    {
      event: 'invoice-paid',
      match: { payload: { type: 'invoice.paid' } },
      name: 'Stripe invoice',
      sessionKey: customer,
      message: [
        `Paid: ${invoiceOf}, ${money('amount_paid')}`,
        'Invoice: {{data.object.hosted_invoice_url | default: "no page"}}',
        ...further,
      ],
    },
    {
      event: 'invoice-failed',
      match: { payload: { type: ['invoice.payment_failed', 'invoice.payment_action_required'] } },
      name: 'Stripe failed payment',
      sessionKey: customer,
      message: [
        `{{type}}: ${invoiceOf}, ${money('amount_due')}`,
        'Attempt: {{data.object.attempt_count | default: "unknown"}}',
        'Invoice: {{data.object.hosted_invoice_url | default: "no page"}}',
        ...further,
      ],
    },
    {
      event: 'subscription-started',
      match: { payload: { type: 'customer.subscription.created' } },
      name: 'Stripe subscription',
      sessionKey: customer,
      message: ['The subscription {{data.object.id}} began.', ...subscriptionLines],
    },
    {
      event: 'subscription-ended',
      match: { payload: { type: 'customer.subscription.deleted' } },
      name: 'Stripe subscription',
      sessionKey: customer,
      message: [
        'The subscription {{data.object.id}} ended.',
        'Reason: {{data.object.cancellation_details.reason | default: "not given"}}; comment: {{data.object.cancellation_details.comment | default: "none" | truncate: 1000}}',
        ...subscriptionLines,
      ],
    },
    {
      event: 'dispute',
      match: { payload: { type: 'charge.dispute.created' } },
      name: 'Stripe dispute',
      sessionKey: 'hook:stripe:{{data.object.id}}',
      message: [
        `The charge {{data.object.charge}} is disputed: ${money('amount')}`,
        'Reason: {{data.object.reason | default: "not given"}}; status: {{data.object.status | default: "unknown"}}',
        'Answer until: {{data.object.evidence_details.due_by | default: "not given"}} (seconds since 1970)',
        ...further,
      ],
    },
  ],
})
