// A fake of Shopify's subscriptions: https://shopify.dev/docs/api/admin-graphql/latest/queries/webhookSubscriptions and
// https://shopify.dev/docs/api/admin-graphql/latest/mutations/webhookSubscriptionCreate
import { z } from 'zod'
import type { Received, Reply } from './loopback.ts'
import { type FakeOutbox, startOutbox } from './outbox.ts'

export type FakeShopify = FakeOutbox & {
  /** The topics, with their destinations, in the order in which they were made. */
  readonly subscriptions: { topic: string; uri: string }[]
  /** Throttles the next request: its answer is an error with the status 200. */
  throttle(): void
}

export const shopifyToken = 'shpat_recover'
const pageSize = 2

const Request = z.strictObject({
  query: z.string(),
  variables: z.object({
    after: z.string().nullish(),
    topic: z
      .string()
      .regex(/^[A-Z]+(_[A-Z]+)+$/)
      .optional(),
    uri: z.url({ protocol: /^https$/ }).optional(),
  }),
})

export async function startShopify({ clock }: { clock: () => number }): Promise<FakeShopify> {
  const subscriptions: FakeShopify['subscriptions'] = []
  let isThrottled = false
  const fake = await startOutbox({
    clock,
    isAuthorised: ({ headers }) => headers['x-shopify-access-token'] === shopifyToken,
    buildLimitAnswer: ({ seconds }) => ({ status: 429, headers: { 'retry-after': String(seconds) }, body: '' }),
    answer,
  })

  function answer({ method, path, body }: Received): Reply | undefined {
    const request = Request.safeParse(body)
    if (method !== 'POST' || !/^\/admin\/api\/20\d\d-(01|04|07|10)\/graphql\.json$/.test(path) || !request.success)
      return undefined
    if (isThrottled) {
      isThrottled = false
      return { status: 200, body: { errors: [{ message: 'Throttled', extensions: { code: 'THROTTLED' } }] } }
    }
    const { query, variables } = request.data
    return { status: 200, body: { data: query.startsWith('mutation') ? create(variables) : list(variables) } }
  }

  function list({ after }: z.infer<typeof Request>['variables']): object {
    const from = Number(after ?? 0)
    const end = from + pageSize
    const pageInfo = { hasNextPage: end < subscriptions.length, endCursor: String(end) }
    return { webhookSubscriptions: { nodes: subscriptions.slice(from, end), pageInfo } }
  }

  function create({ topic = '', uri = '' }: z.infer<typeof Request>['variables']): object {
    const isTaken = subscriptions.some((each) => each.topic === topic && each.uri === uri)
    if (!isTaken) subscriptions.push({ topic, uri })
    const userErrors = isTaken ? [{ message: 'Address for this topic has already been taken' }] : []
    return { webhookSubscriptionCreate: { userErrors } }
  }

  return Object.assign(fake, { subscriptions, throttle: () => void (isThrottled = true) })
}
