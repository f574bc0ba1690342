// `recover` of a mapping: the API of its sender, which the gateway asks for deliveries that did not arrive.
import { z } from 'zod'
import { apiUrl, httpUrl, nonBlank, pathPart, senderId } from '../values.ts'

const turnOn = z
  .boolean()
  .default(false)
  .describe('Whether the gateway turns the webhook on again when its sender has switched it off.')
/** The id or the path of a project or a group. */
const numberOrPath = z.union([z.int().positive().transform(String), nonBlank]).optional()
const apiUrlWithDefault = (url: string) =>
  apiUrl.default(url).describe('URL of the API. Change it only for a proxy or tests.')
const token = nonBlank.describe('Credential of the API of the sender, such as "${GITHUB_RECOVER_TOKEN}".')

const GitHubRecover = z
  .strictObject({
    sender: z.literal('github').describe('Deliveries of the last 3 days.'),
    repository: z
      .string()
      .regex(/^[\w.-]+\/[\w.-]+$/, 'must be <owner>/<repository>')
      .optional()
      .describe('Repository of the webhook, as <owner>/<repository>.'),
    organization: pathPart.optional().describe('Organization of the webhook, in place of `repository`.'),
    appId: senderId
      .optional()
      .describe('Id of the GitHub App whose webhook it is, in place of `repository`, `hookId` and `token`.'),
    hookId: senderId
      .optional()
      .describe('Id of the webhook: the last part of the URL of its page, and the header X-GitHub-Hook-ID.'),
    token: token
      .optional()
      .describe('Fine-grained token that may read the webhooks of the repository or organization.'),
    privateKey: nonBlank
      .optional()
      .describe('Private key of the GitHub App, in PEM format, such as "${file:/run/secrets/github-app.pem}".'),
    baseUrl: apiUrl
      .default('https://api.github.com')
      .describe('URL of the API. GitHub Enterprise Server: https://<host>/api/v3.'),
    turnOn,
  })
  .superRefine(({ repository, organization, appId, hookId, token: own, privateKey }, context) => {
    const report = (key: string, message: string) => context.addIssue({ code: 'custom', path: [key], message })
    const owners = [repository, organization, appId].filter((owner) => owner !== undefined)
    if (owners.length !== 1) report('repository', 'must be set, or organization, or appId: exactly one of them')
    if (appId !== undefined && privateKey === undefined)
      report('privateKey', 'must be the private key of the GitHub App')
    if (appId === undefined && hookId === undefined) report('hookId', 'must be the id of the webhook')
    if (appId === undefined && own === undefined) report('token', 'must be a token that may read webhooks')
  })
export type GitHubRecover = z.infer<typeof GitHubRecover>

const GitLabRecover = z
  .strictObject({
    sender: z.literal('gitlab').describe('Events of the last 7 days.'),
    project: numberOrPath.describe('Project of the webhook: its id, or its path such as "acme/app".'),
    group: numberOrPath.describe('Group of the webhook, in place of `project`.'),
    hookId: senderId.describe('Id of the webhook, which the URL of its page shows.'),
    token: token.describe('Access token with the scope api of a maintainer of the project, or an owner of the group.'),
    baseUrl: apiUrl
      .default('https://gitlab.com/api/v4')
      .describe('URL of the API. Self-managed: https://<host>/api/v4.'),
    turnOn,
  })
  .superRefine(({ project, group }, context) => {
    if ((project === undefined) === (group === undefined))
      context.addIssue({ code: 'custom', path: ['project'], message: 'must be set, or group: exactly one of them' })
  })
export type GitLabRecover = z.infer<typeof GitLabRecover>

const StripeRecover = z.strictObject({
  sender: z.literal('stripe').describe('Events of the last 30 days.'),
  hookId: pathPart.describe('Id of the webhook endpoint, such as we_1Mr5jULkdIwHu7ix1ibLTM0x.'),
  token: token.describe('Restricted key that may read events and webhook endpoints.'),
  baseUrl: apiUrlWithDefault('https://api.stripe.com'),
  turnOn,
})
export type StripeRecover = z.infer<typeof StripeRecover>

const BasecampRecover = z.strictObject({
  sender: z.literal('basecamp').describe('The last 25 deliveries.'),
  account: senderId.describe('Id of the account: the number in the URL of a page.'),
  hookId: senderId.describe('Id of the webhook.'),
  token: token.describe('Access token of an OAuth app.'),
  contact: nonBlank.describe('Mail address or URL of you, which Basecamp requires in each request.'),
  baseUrl: apiUrlWithDefault('https://3.basecampapi.com'),
  turnOn,
})
export type BasecampRecover = z.infer<typeof BasecampRecover>

const ShopifyRecover = z.strictObject({
  sender: z
    .literal('shopify')
    .describe('Shopify lists no deliveries. The gateway checks whether the subscriptions still exist.'),
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
  turnOn,
})
export type ShopifyRecover = z.infer<typeof ShopifyRecover>

/** One section for each sender. */
const sections = [GitHubRecover, GitLabRecover, StripeRecover, BasecampRecover, ShopifyRecover] as const
export const Recover = z.discriminatedUnion('sender', sections, {
  error: ({ code }) =>
    code === 'invalid_union' ? 'its `sender` must be github, gitlab, stripe, basecamp or shopify' : undefined,
})
export type Recover = z.infer<typeof Recover>

/** Senders with an API that lists their deliveries. */
export const outboxSenders: readonly Recover['sender'][] = ['github', 'gitlab', 'stripe', 'basecamp']
