// `hooks.gmail` of the configuration: how the gmail preset converts mails, and how the gateway watches the mailbox.
import { z } from 'zod'
import { Thinking } from '../../core/model/action.ts'
import { gmailModes, minRenewMinutes } from './gmail-modes.ts'
import { mailAttachments } from './mail-attachments.ts'
import { filePath, nonBlank, httpUrl } from '../../core/model/values.ts'

/** The keys that the gmail preset reads. */
export const GmailPresetConfig = z.strictObject({
  maxBytes: z
    .int()
    .positive()
    .default(20_000)
    .describe('Bytes of text that one mail may have. The body limit of the gmail hook is computed from it.'),
  allowUnsafeExternalContent: z
    .boolean()
    .default(false)
    .describe('Dangerous. If it is true, mails reach the agent without the boundary. Anybody can send you a mail.'),
  instructions: nonBlank
    .optional()
    .describe(
      'Your own fixed text for the agent, outside the boundary. Without it, the agent is asked to summarize the mail.',
    ),
  model: nonBlank.optional().describe('Model of the runs, as <provider>/<model> or an alias.'),
  thinking: Thinking.optional().describe('Thinking level of the runs.'),
})

/** The URLs of Google. Tests and proxies replace them. */
export const GmailEndpoints = z.strictObject({
  oauthAuth: httpUrl
    .default('https://accounts.google.com/o/oauth2/v2/auth')
    .describe('URL where a person gives consent. Change it only for tests.'),
  oauthToken: httpUrl
    .default('https://oauth2.googleapis.com/token')
    .describe('URL that gives access tokens. Change it only for tests.'),
  gmail: httpUrl
    .default('https://gmail.googleapis.com')
    .describe('URL of the Gmail API. Change it only for a proxy or tests.'),
  pubsub: httpUrl
    .default('https://pubsub.googleapis.com')
    .describe('URL of the Pub/Sub API. Change it only for a proxy or tests.'),
  oidcCerts: httpUrl
    .default('https://www.googleapis.com/oauth2/v3/certs')
    .describe('URL of the public keys for the tokens of pushes. Change it only for tests.'),
  serviceUsage: httpUrl
    .default('https://serviceusage.googleapis.com')
    .describe('URL where the APIs of the project are turned on. Change it only for tests.'),
})
export type GmailEndpoints = z.infer<typeof GmailEndpoints>

const push = z.strictObject({
  host: nonBlank
    .default('127.0.0.1')
    .describe('IP address or host name of the push receiver, which is separate from the hook endpoints.'),
  port: z.int().min(0).max(65_535).default(8788).describe('Port of the push receiver. 0 takes any free port.'),
  path: z
    .string()
    .regex(/^\/[\w./~-]+$/, 'must begin with a slash')
    .default('/gmail-pubsub')
    .describe('Path of the push receiver.'),
  endpoint: httpUrl.optional().describe('Mode push: the public URL of the push receiver, behind your proxy.'),
  audience: nonBlank.optional().describe('Audience of the tokens of pushes. Without it, the value of `endpoint`.'),
  serviceAccount: nonBlank
    .optional()
    .describe('Mode push: the e-mail address of the service account that signs the pushes.'),
})

export const GmailConfig = z
  .strictObject({
    ...GmailPresetConfig.shape,
    account: z
      .string()
      .regex(/^[^\s@/]+@[^\s@/]+$/, 'must be a mail address')
      .transform((text) => text.toLowerCase())
      .optional()
      .describe('Address of the mailbox. With it, the gateway watches the mailbox.'),
    mode: z
      .enum(gmailModes)
      .default('pull')
      .describe(
        'How the gateway learns of new mails. pull: it asks Pub/Sub. push: Pub/Sub calls it. poll: it asks Gmail, without Pub/Sub.',
      ),
    project: z
      .string()
      .regex(/^[a-z][a-z0-9-]{4,28}[a-z0-9]$/, 'must be the id of a Google Cloud project')
      .optional()
      .describe('Id of the Google Cloud project of the OAuth client. Required for pull and push.'),
    topic: nonBlank.default('hookloom-gmail').describe('Name of the Pub/Sub topic.'),
    subscription: nonBlank.default('hookloom-gmail').describe('Name of the Pub/Sub subscription.'),
    labels: z
      .array(nonBlank)
      .min(1)
      .default(['INBOX'])
      .describe('Label ids, such as INBOX or Label_12. Only mails with one of them count.'),
    query: nonBlank.optional().describe('Gmail search, such as "from:billing". Only mails that it finds count.'),
    includeBody: z
      .boolean()
      .default(true)
      .describe('Whether the agent gets the text of a mail. false: only subject and snippet.'),
    attachments: mailAttachments,
    renewMinutes: z
      .int()
      .min(minRenewMinutes, `must be at least ${minRenewMinutes}: the gateway checks the watch that often`)
      .max(1_440)
      .default(720)
      .describe('Minutes after which the watch at Google is renewed. Without renewal it ends after seven days.'),
    pollSeconds: z.int().min(5).max(3_600).default(30).describe('Mode poll: seconds between two polls of the mailbox.'),
    serviceAccountKey: filePath
      .optional()
      .describe('Path of the key file of a service account with domain-wide delegation, in place of a consent.'),
    push: push.prefault({}).describe('The push receiver, for mode push.'),
    endpoints: GmailEndpoints.prefault({}).describe('URLs of Google.'),
  })
  .superRefine(({ account, mode, project, push: { endpoint, serviceAccount } }, context) => {
    if (account === undefined || mode === 'poll') return
    const report = (path: string[], message: string) => context.addIssue({ code: 'custom', path, message })
    if (project === undefined) report(['project'], `must name the Google Cloud project in mode ${mode}.`)
    if (mode !== 'push') return
    if (endpoint === undefined) report(['push', 'endpoint'], 'must be the public URL of the receiver in mode push.')
    if (serviceAccount === undefined) {
      report(['push', 'serviceAccount'], 'must name the service account that signs, in mode push.')
    }
  })
export type GmailConfig = z.infer<typeof GmailConfig>
/** A configuration with a mailbox to watch. */
export type WatchedGmail = GmailConfig & { readonly account: string }

/** The part of `hooks.gmail` that the preset reads. */
export function toGmailPresetOptions(gmail: GmailConfig): object {
  const { maxBytes, allowUnsafeExternalContent, instructions, model, thinking } = gmail
  const given = { ...(instructions && { instructions }), ...(model && { model }), ...(thinking && { thinking }) }
  return { maxBytes, allowUnsafeExternalContent, ...given }
}

export function isWatched(gmail: GmailConfig | undefined): gmail is WatchedGmail {
  return gmail?.account !== undefined
}
