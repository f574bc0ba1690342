// New and cancelled orders, refunds, new customers and uninstalled apps become agent turns.
import { defineSignedPreset } from '../signed.ts'

const admin = 'https://{{headers.x-shopify-shop-domain | default: "admin.shopify.com"}}/admin'
const orderLines = [
  'Customer: {{customer.first_name | default: "(no first name)"}} {{customer.last_name | default: "(no last name)"}} <{{email | default: "no e-mail"}}>',
  'Total: {{total_price | default: "unknown"}} {{currency}}; payment: {{financial_status | default: "unknown"}}',
  'Lines: {{line_items.length}}, the first {{line_items[0].quantity | default: "0"}} × {{line_items[0].name | default: "nothing"}}',
  'Note: {{note | default: "none" | truncate: 1000}}',
  `${admin}/orders/{{id}}`,
]

/** Source: https://shopify.dev/docs/api/webhooks */
export default defineSignedPreset({
  name: 'shopify',
  title: 'New and cancelled orders, refunds, new customers and uninstalled apps become agent turns.',
  scheme: 'shopify',
  from: 'sender',
  instructions: 'Say in a few sentences what happened in the shop, and whether somebody should act.',
  events: [
    {
      event: 'order',
      match: { event: 'orders/create' },
      name: 'Shopify order',
      sessionKey: 'hook:shopify:order-{{id}}',
      message: ['New order {{name | default: "without a number"}}.', ...orderLines],
    },
    {
      event: 'cancelled',
      match: { event: 'orders/cancelled' },
      name: 'Shopify order',
      sessionKey: 'hook:shopify:order-{{id}}',
      message: [
        'The order {{name | default: "without a number"}} is cancelled; reason: {{cancel_reason | default: "not given"}}.',
        ...orderLines,
      ],
    },
    {
      event: 'refund',
      match: { event: 'refunds/create' },
      name: 'Shopify refund',
      sessionKey: 'hook:shopify:order-{{order_id}}',
      message: [
        'Refund; paid back: {{transactions[0].amount | default: "nothing"}} {{transactions[0].currency | default: "(no transaction)"}}',
        'Lines: {{refund_line_items.length}}, the first {{refund_line_items[0].quantity | default: "0"}} × {{refund_line_items[0].line_item.name | default: "nothing"}} for {{refund_line_items[0].subtotal | default: "an amount that is not given"}}',
        'Note: {{note | default: "none" | truncate: 1000}}',
        `${admin}/orders/{{order_id}}`,
      ],
    },
    {
      event: 'customer',
      match: { event: 'customers/create' },
      name: 'Shopify customer',
      sessionKey: 'hook:shopify:customer-{{id}}',
      message: [
        'New customer: {{first_name | default: "(no first name)"}} {{last_name | default: "(no last name)"}} <{{email | default: "no e-mail"}}>',
        'Note: {{note | default: "none" | truncate: 1000}}',
        `${admin}/customers/{{id}}`,
      ],
    },
    {
      event: 'uninstalled',
      match: { event: 'app/uninstalled' },
      name: 'Shopify app',
      sessionKey: 'hook:shopify:shop-{{id}}',
      message: [
        '{{name | default: "A shop"}} uninstalled the app.',
        'Owner: {{shop_owner | default: "unknown"}} <{{email | default: "no e-mail"}}>; plan: {{plan_display_name | default: "unknown"}}',
        'Shop: {{headers.x-shopify-shop-domain | default: "unknown"}}',
      ],
    },
  ],
})
