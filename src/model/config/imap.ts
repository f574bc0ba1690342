// `hooks.imap` of the configuration: the mailbox that the gateway watches by IMAP.
import { z } from 'zod'
import { isLoopbackHost } from '../../base/http.ts'
import { nonBlank } from '../../core/model/values.ts'
import { mailAttachments } from './mail-attachments.ts'

export const ImapConfig = z
  .strictObject({
    host: nonBlank.describe('Host name of the IMAP server.'),
    port: z
      .int()
      .min(1)
      .max(65_535)
      .optional()
      .describe('Port of the IMAP server. Without it, 993 for `tls`, and 143 for the others.'),
    security: z
      .enum(['tls', 'starttls', 'plain'])
      .default('tls')
      .describe('How the connection is encrypted. plain: not at all, which only a server on loopback may have.'),
    allowUnsafePlainText: z
      .boolean()
      .default(false)
      .describe('Dangerous. If it is true, the password and the mails may cross a network without encryption.'),
    user: nonBlank.max(200).describe('Name of the account, usually the address of the mailbox.'),
    password: nonBlank.describe('Password of the account, or an app password: `${IMAP_PASSWORD}`.'),
    folders: z
      .array(nonBlank.max(400))
      .min(1)
      .max(20)
      .default(['INBOX'])
      .describe('Folders that are watched. The server reports new mails of the first one; the others are polled.'),
    pollSeconds: z
      .int()
      .min(5)
      .max(1_740)
      .default(60)
      .describe('Seconds between two polls of the folders, in case the server reports nothing.'),
    maxBytes: z.int().positive().max(200_000).default(20_000).describe('Bytes of text that one mail may have.'),
    includeBody: z
      .boolean()
      .default(true)
      .describe('Whether the agent gets the text of a mail. false: only subject and snippet.'),
    attachments: mailAttachments,
  })
  .superRefine(({ host, security, allowUnsafePlainText }, { addIssue }) => {
    if (security !== 'plain' || allowUnsafePlainText || isLoopbackHost(host)) return
    const message = `must be "tls" or "starttls" for ${host}, which is not on loopback; else set allowUnsafePlainText.`
    addIssue({ code: 'custom', path: ['security'], message })
  })
export type ImapConfig = z.infer<typeof ImapConfig>
