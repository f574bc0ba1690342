/** A Stripe invoice whose payment failed, or that was paid, becomes a message to the agent; every other event is skipped. */
import { defineTransform } from 'hookloom'

/** What is read of an event about an invoice: https://docs.stripe.com/api/invoices/object */
type InvoiceEvent = {
  type?: string
  livemode?: boolean
  /** Connect: the account that the event is of. */
  account?: string
  data?: {
    object?: {
      id: string
      number?: string | null
      currency: string
      amount_paid: number
      amount_remaining: number
      customer_name?: string | null
      customer_email?: string | null
      attempt_count: number
      /** Seconds since the epoch; null when Stripe tries no more. */
      next_payment_attempt?: number | null
      hosted_invoice_url?: string | null
    }
  }
}

// currencies whose amounts are not in hundredths; UGX and ISK are: https://docs.stripe.com/currencies#minor-units
const wholeUnits = 'bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf'.split(' ')
const thousandths = 'bhd jod kwd omr tnd'.split(' ')

export default defineTransform<InvoiceEvent>(({ payload }, { log }) => {
  const { type = '', livemode, account, data } = payload
  const invoice = data?.object
  if (invoice === undefined || (type !== 'invoice.payment_failed' && type !== 'invoice.paid')) {
    log(`skipped: ${type || 'no Stripe event'}`)
    return null
  }

  const failed = type === 'invoice.payment_failed'
  const isTest = livemode === false
  const name = invoice.number ?? invoice.id
  const money = toMoney(failed ? invoice.amount_remaining : invoice.amount_paid, invoice.currency)
  const at = invoice.next_payment_attempt
  const next = at ? `the next at ${new Date(at * 1000).toISOString()}` : 'no other is planned'
  const email = invoice.customer_email ? `<${invoice.customer_email}>` : ''
  const customer = [invoice.customer_name ?? '', email].filter((part) => part !== '').join(' ')
  const page = [...(account ? [account] : []), ...(isTest ? ['test'] : []), 'invoices', invoice.id].join('/')
  return {
    kind: 'agent',
    name: `Invoice ${name}`,
    sessionKey: `hook:stripe:${invoice.id}`,
    message: [
      `Invoice ${name}: ${failed ? `payment of ${money} failed` : `${money} paid`}${isTest ? ' (test mode)' : ''}`,
      ...(customer === '' ? [] : [`customer ${customer}`]),
      ...(failed ? [`attempt ${invoice.attempt_count}, ${next}`] : []),
      `https://dashboard.stripe.com/${page}`,
      ...(failed && invoice.hosted_invoice_url ? [`The customer can pay here: ${invoice.hosted_invoice_url}`] : []),
    ].join('\n'),
  }
})

function toMoney(amount: number, currency: string): string {
  const digits = wholeUnits.includes(currency) ? 0 : thousandths.includes(currency) ? 3 : 2
  return `${(amount / 10 ** digits).toFixed(digits)} ${currency.toUpperCase()}`
}
