// `hooks.gmail` of the configuration: what the gmail preset makes of mails, and how the mailbox is watched.
import { z } from 'zod'
import { Thinking } from './action.ts'
import { filled, httpUrl } from './values.ts'

/** How new mails become known. `poll` needs a consent and nothing else; the others need a Google Cloud project. */
export const gmailModes = ['pull', 'push', 'poll'] as const
export type GmailMode = (typeof gmailModes)[number]

/** The keys that the gmail preset reads. */
export const GmailPresetConfig = z.strictObject({
  maxBytes: z
    .int()
    .positive()
    .default(20_000)
    .describe('Bytes of text that one mail may have. The body limit of the gmail hook follows from it.'),
  allowUnsafeExternalContent: z
    .boolean()
    .default(false)
    .describe('Dangerous: mails reach the agent outside the boundary.'),
  model: filled.optional().describe('Model of the runs.'),
  thinking: Thinking.optional().describe('Thinking level of the runs.'),
})

/** Google's addresses. Tests and proxies put their own in place. */
export const GmailEndpoints = z.strictObject({
  oauthAuth: httpUrl.default('https://accounts.google.com/o/oauth2/v2/auth').describe('Where a person consents.'),
  oauthToken: httpUrl.default('https://oauth2.googleapis.com/token').describe('Where access tokens come from.'),
  gmail: httpUrl.default('https://gmail.googleapis.com').describe('The Gmail API.'),
  pubsub: httpUrl.default('https://pubsub.googleapis.com').describe('The Pub/Sub API.'),
  oidcCerts: httpUrl.default('https://www.googleapis.com/oauth2/v3/certs').describe('Keys of the tokens on a push.'),
  serviceUsage: httpUrl
    .default('https://serviceusage.googleapis.com')
    .describe('Where the project’s APIs are turned on.'),
})
export type GmailEndpoints = z.infer<typeof GmailEndpoints>

const push = z.strictObject({
  host: filled.default('127.0.0.1').describe('Address of the push receiver, which is no hook endpoint.'),
  port: z.int().min(0).max(65_535).default(8788).describe('Its port; 0 takes any.'),
  path: z
    .string()
    .regex(/^\/[\w./~-]+$/, 'must begin with a slash')
    .default('/gmail-pubsub')
    .describe('Its path.'),
  endpoint: httpUrl.optional().describe('Mode push: the public URL that leads to the receiver.'),
  audience: filled.optional().describe('Audience of the tokens on a push. Default: the endpoint.'),
  serviceAccount: filled.optional().describe('Mode push: the service account that signs the pushes.'),
})

export const GmailConfig = z
  .strictObject({
    ...GmailPresetConfig.shape,
    account: z
      .string()
      .regex(/^[^\s@/]+@[^\s@/]+$/, 'must be a mail address')
      .transform((text) => text.toLowerCase())
      .optional()
      .describe('The mailbox. Set: the gateway watches it.'),
    mode: z
      .enum(gmailModes)
      .default('pull')
      .describe('How new mails become known: pull from Pub/Sub, push by Pub/Sub, poll without Pub/Sub.'),
    project: z
      .string()
      .regex(/^[a-z][a-z0-9-]{4,28}[a-z0-9]$/, 'must be the id of a Google Cloud project')
      .optional()
      .describe('Google Cloud project, that of the OAuth client.'),
    topic: filled.default('hookloom-gmail').describe('Pub/Sub topic.'),
    subscription: filled.default('hookloom-gmail').describe('Pub/Sub subscription.'),
    labels: z.array(filled).min(1).default(['INBOX']).describe('A mail counts when it has one of these label ids.'),
    query: filled.optional().describe('A mail counts when this Gmail search finds it, such as "from:billing".'),
    includeBody: z.boolean().default(true).describe('false: subject and snippet alone.'),
    renewMinutes: z
      .int()
      .min(1)
      .max(1_440)
      .default(720)
      .describe('How often the watch, which ends by itself, is renewed.'),
    pollSeconds: z.int().min(5).max(3_600).default(30).describe('Mode poll: how often the mailbox is asked.'),
    serviceAccountKey: filled
      .optional()
      .describe('Key file of a service account with domain-wide delegation, in place of a consent.'),
    push: push.prefault({}).describe('The receiver of mode push.'),
    endpoints: GmailEndpoints.prefault({}).describe('Google’s addresses.'),
  })
  .superRefine(({ account, mode, project, push: { endpoint, serviceAccount } }, context) => {
    if (account === undefined || mode === 'poll') return
    const need = (path: string[], message: string) => context.addIssue({ code: 'custom', path, message })
    if (project === undefined) need(['project'], `must name the Google Cloud project in mode ${mode}.`)
    if (mode !== 'push') return
    if (endpoint === undefined) need(['push', 'endpoint'], 'must be the public URL of the receiver in mode push.')
    if (serviceAccount === undefined) {
      need(['push', 'serviceAccount'], 'must name the service account that signs, in mode push.')
    }
  })
export type GmailConfig = z.infer<typeof GmailConfig>
/** A configuration with a mailbox to watch. */
export type WatchedGmail = GmailConfig & { readonly account: string }

/** What of `hooks.gmail` is the preset's. */
export function toGmailPresetOptions({ maxBytes, allowUnsafeExternalContent, model, thinking }: GmailConfig): object {
  return { maxBytes, allowUnsafeExternalContent, ...(model && { model }), ...(thinking && { thinking }) }
}

export function isWatched(gmail: GmailConfig | undefined): gmail is WatchedGmail {
  return gmail?.account !== undefined
}
