/** A Stripe payment that failed for the last time becomes an agent run; one that Stripe will try again, or that succeeds, becomes a wake. */
import { defineTransform } from 'hookloom'

/** The fields of an invoice event that are read: https://docs.stripe.com/api/invoices/object */
type InvoiceEvent = {
  type?: string
  livemode?: boolean
  /** The account of the event, only with Connect. */
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
      /** In seconds since the epoch. Null if Stripe makes no further attempt. */
      next_payment_attempt?: number | null
      hosted_invoice_url?: string | null
    }
  }
}

// the currencies whose amounts are not in hundredths (UGX and ISK are): https://docs.stripe.com/currencies#minor-units
const wholeUnits = 'bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf'.split(' ')
const thousandths = 'bhd jod kwd omr tnd'.split(' ')

export default defineTransform<InvoiceEvent>(({ payload }, { log }) => {
  const { type = '', livemode, account, data } = payload
  const invoice = data?.object
  if (invoice === undefined || (type !== 'invoice.payment_failed' && type !== 'invoice.paid')) {
    log(`skipped: ${type || 'no Stripe event'}`)
    return null
  }

  const isTest = livemode === false
  const name = `Invoice ${invoice.number ?? invoice.id}`
  const email = invoice.customer_email ? `<${invoice.customer_email}>` : ''
  const customer = [invoice.customer_name ?? '', email].filter((part) => part !== '').join(' ')
  const page = [...(account ? [account] : []), ...(isTest ? ['test'] : []), 'invoices', invoice.id].join('/')
  const toText = (what: string, further: string[] = []) =>
    [
      `${name}: ${what}${isTest ? ' (test mode)' : ''}`,
      ...(customer === '' ? [] : [`customer ${customer}`]),
      ...further,
      `https://dashboard.stripe.com/${page}`,
    ].join('\n')

  // a wake is a line in the main session, which the agent reads at its next heartbeat; it starts no run and gets no reply
  if (type === 'invoice.paid') {
    const text = toText(`${toMoney(invoice.amount_paid, invoice.currency)} paid`)
    return { kind: 'wake', mode: 'next-heartbeat', text }
  }
  const what = `payment of ${toMoney(invoice.amount_remaining, invoice.currency)} failed`
  const { attempt_count: attempt, next_payment_attempt: at, hosted_invoice_url: link } = invoice
  if (at) {
    const text = toText(what, [`attempt ${attempt}, the next at ${new Date(at * 1000).toISOString()}`])
    return { kind: 'wake', mode: 'next-heartbeat', text }
  }
  return {
    kind: 'agent',
    name,
    sessionKey: `hook:stripe:${invoice.id}`,
    message: toText(what, [
      `attempt ${attempt}, no other is planned`,
      ...(link ? [`the customer can pay at ${link}`] : []),
    ]),
  }
})

function toMoney(amount: number, currency: string): string {
  const digits = wholeUnits.includes(currency) ? 0 : thousandths.includes(currency) ? 3 : 2
  return `${(amount / 10 ** digits).toFixed(digits)} ${currency.toUpperCase()}`
}
