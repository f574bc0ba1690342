// Shopify keeps no list of its deliveries. It removes a subscription whose requests fail eight times in four hours, and its API lists
// the remaining subscriptions. https://shopify.dev/docs/apps/build/webhooks/troubleshooting-webhooks and
// https://shopify.dev/docs/api/admin-graphql/latest/queries/webhookSubscriptions
import { z } from 'zod'
import { defineOutbox, type Outbox, type OutboxHost } from '../../define.ts'
import { ApiDenial, apiUrl, httpUrl, parseApiAnswer, Problem, token, tryParseJson } from './shared/kit.ts'

/** Since this version, `uri` names every kind of destination. */
const apiPath = '/admin/api/2025-10/graphql.json'

const listQuery = `query ($after: String) {
  webhookSubscriptions(first: 100, after: $after) { nodes { topic uri } pageInfo { hasNextPage endCursor } }
}`
const createMutation = `mutation ($topic: WebhookSubscriptionTopic!, $uri: String!) {
  webhookSubscriptionCreate(topic: $topic, webhookSubscription: { uri: $uri, format: JSON }) { userErrors { message } }
}`

const ErrorAnswer = z.object({
  errors: z.array(z.object({ extensions: z.looseObject({ code: z.string() }).optional() })),
})
const SubscriptionList = z.object({
  data: z.object({
    webhookSubscriptions: z.object({
      nodes: z.array(z.object({ topic: z.string(), uri: z.string() })),
      pageInfo: z.object({ hasNextPage: z.boolean(), endCursor: z.string().nullable() }),
    }),
  }),
})
const CreateAnswer = z.object({
  data: z.object({ webhookSubscriptionCreate: z.object({ userErrors: z.array(z.object({ message: z.string() })) }) }),
})

/** The maximum number of pages, with 100 subscriptions each: an API whose pages never end would hold up the other senders. */
const maxPages = 50

const options = z.strictObject({
  shop: z
    .string()
    .regex(/^[a-z\d][a-z\d-]*\.myshopify\.com$/, 'must be <name>.myshopify.com')
    .describe('Domain of the shop, such as acme.myshopify.com.'),
  topics: z
    .array(z.string().regex(/^[a-z_]+(\/[a-z_]+)+$/, 'must be a topic such as orders/create'))
    .min(1)
    .describe('Topics that the app is subscribed to, such as ["orders/create"].'),
  url: httpUrl.describe('Public URL of the hook, as in the subscriptions.'),
  token: token.describe('Admin API access token of the app that made the subscriptions.'),
  baseUrl: apiUrl.optional().describe('URL of the API. Default: https://<shop>. Change it only for a proxy or tests.'),
})
type Settings = z.infer<typeof options>

export const shopifyOutbox = defineOutbox({
  name: 'shopify',
  about: 'Shopify lists no deliveries. The gateway checks whether the subscriptions still exist.',
  remembers: false,
  options,
  create: openShopify,
})

function openShopify({ shop, baseUrl, topics, url, token }: Settings, { openApi }: OutboxHost): Outbox {
  const authorize = () => ({ 'x-shopify-access-token': token })
  const call = openApi({ baseUrl: baseUrl ?? `https://${shop}`, authorize })

  async function ask<T>(schema: z.ZodType<T>, query: string, variables: object): Promise<T> {
    const answer = await call({ method: 'POST', path: apiPath, body: { query, variables } })
    // an error, such as THROTTLED, has the status 200
    const failed = ErrorAnswer.safeParse(tryParseJson(answer.text))
    if (!failed.success) return parseApiAnswer(schema, answer, 'Shopify’s subscriptions')
    const code = failed.data.errors[0]?.extensions?.code.slice(0, 40) ?? 'an error'
    if (code === 'ACCESS_DENIED')
      throw new ApiDenial('Shopify answers ACCESS_DENIED. The token in recover may not read webhooks. Make a new one.')
    throw new Problem('recover-unavailable', `Shopify answers ${code}. It is asked again.`)
  }

  async function listMissing(): Promise<string[]> {
    const found = new Set<string>()
    let after: string | null = null
    for (let pages = 0; pages < maxPages; pages += 1) {
      const page: z.infer<typeof SubscriptionList> = await ask(SubscriptionList, listQuery, { after })
      const { nodes, pageInfo } = page.data.webhookSubscriptions
      // the configuration has no slash at the end of a URL
      for (const { topic, uri } of nodes) if (uri.replace(/\/+$/, '') === url) found.add(topic)
      if (!pageInfo.hasNextPage || pageInfo.endCursor === null)
        return topics.filter((topic) => !found.has(toGraphQLTopic(topic)))
      after = pageInfo.endCursor
    }
    throw new Problem('recover-unavailable', `Shopify’s list of subscriptions does not end after ${maxPages} pages.`)
  }

  return {
    name: `shopify ${shop} ${url}`,
    remembers: false,
    hasTimes: true,
    overlap: 0,
    async *pages() {},
    fetch: async () => undefined,
    async state() {
      const missing = await listMissing()
      if (missing.length === 0) return { isOn: true }
      const names = missing.join(', ')
      return { isOn: false, why: `Shopify has no subscription of ${names} for the URL of the hook any more.` }
    },
    async turnOn() {
      for (const topic of await listMissing()) {
        const { data } = await ask(CreateAnswer, createMutation, { topic: toGraphQLTopic(topic), uri: url })
        const [error] = data.webhookSubscriptionCreate.userErrors
        if (error !== undefined)
          throw new Problem(
            'recover-unavailable',
            `Shopify refused to create the subscription to ${topic}: ${error.message.slice(0, 200)}`,
          )
      }
    },
  }
}

/** The topic as a value of GraphQL's enum: `orders/create` becomes `ORDERS_CREATE`. */
function toGraphQLTopic(topic: string): string {
  return topic.toUpperCase().replaceAll('/', '_')
}
