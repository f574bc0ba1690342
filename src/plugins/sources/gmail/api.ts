// The calls to Gmail, with parsed answers. Shapes: developers.google.com/workspace/gmail/api/reference/rest
import { z } from 'zod'
import { Problem } from '../shared/kit.ts'
import type { GoogleAnswer, GoogleCall } from './call.ts'

/** A uint64 as text, because it does not fit into a number. */
const historyId = z.string().regex(/^\d+$/)
const labels = z.array(z.string()).default([])

const Profile = z.object({ emailAddress: z.string(), historyId })
const WatchAnswer = z.object({ historyId, expiration: z.coerce.number() })
const History = z.object({
  historyId,
  nextPageToken: z.string().optional(),
  history: z
    .array(
      z.object({
        messagesAdded: z.array(z.object({ message: z.object({ id: z.string(), labelIds: labels }) })).default([]),
      }),
    )
    .default([]),
})
const MessageList = z.object({
  nextPageToken: z.string().optional(),
  messages: z.array(z.object({ id: z.string() })).default([]),
})

/** A part of a mail, with its own parts. */
export type MailPart = {
  partId?: string | undefined
  mimeType?: string | undefined
  filename?: string | undefined
  headers?: { name: string; value: string }[] | undefined
  body?: { data?: string | undefined; attachmentId?: string | undefined; size?: number | undefined } | undefined
  parts?: MailPart[] | undefined
}
const MailPart: z.ZodType<MailPart> = z.lazy(() =>
  z.object({
    partId: z.string().optional(),
    mimeType: z.string().optional(),
    filename: z.string().optional(),
    headers: z.array(z.object({ name: z.string(), value: z.string() })).optional(),
    body: z
      .object({ data: z.string().optional(), attachmentId: z.string().optional(), size: z.number().optional() })
      .optional(),
    parts: z.array(MailPart).optional(),
  }),
)
const StoredText = z.object({ data: z.string() })
/** The schema of a mail. A malformed field gets a default, so that the mail is not lost. Only the id and the payload must be valid. */
const GmailMessage = z.object({
  id: z.string(),
  threadId: z.string().catch(''),
  labelIds: labels.catch([]),
  snippet: z.string().catch(''),
  internalDate: z.coerce.number().catch(0),
  payload: MailPart.optional(),
})
export type GmailMessage = z.infer<typeof GmailMessage>
const MessageWithoutBody = GmailMessage.extend({ payload: MailPart.optional().catch(undefined) })

export type AddedMessage = { readonly id: string; readonly labels: readonly string[] }

export type GmailApi = {
  /** The address and the current position of the mailbox. */
  profile(): Promise<z.infer<typeof Profile>>
  /** Starts or renews notifications. They end at `expiration`, in milliseconds since the epoch. */
  watch(topic: string, labelIds: readonly string[]): Promise<z.infer<typeof WatchAnswer>>
  stop(): Promise<void>
  /** One page of the mails that were added since a position; 'expired' if Gmail no longer has the changes since then. */
  history(
    since: string,
    pageToken?: string,
  ): Promise<{ added: AddedMessage[]; historyId: string; next?: string | undefined } | 'expired'>
  list(
    query: string,
    options: { max: number; labelId?: string | undefined; pageToken?: string | undefined },
  ): Promise<{
    ids: string[]
    next?: string | undefined
  }>
  /** The content of a part that Gmail stores separately, in base64url. Undefined if Gmail no longer has it or does not return it. */
  storedText(messageId: string, attachmentId: string): Promise<string | undefined>
  /** A mail; undefined if it was deleted. If its body is too large, too deep or malformed, the mail has no body. */
  message(id: string, format: 'full' | 'metadata'): Promise<GmailMessage | undefined>
}

export function createGmailApi({ call, base }: { call: GoogleCall; base: string }): GmailApi {
  const users = `${base}/gmail/v1/users/me`

  async function message(id: string, format: 'full' | 'metadata'): Promise<GmailMessage | undefined> {
    const url = `${users}/messages/${encodeURIComponent(id)}?format=${format}`
    const isFull = format === 'full'
    const answer = await call({ method: 'GET', url, allow: isFull ? [400, 404, 413] : [404] })
    if (answer.status === 404) return undefined
    if (!isFull) return parseAnswer(MessageWithoutBody, answer, 'messages.get')
    return answer.status < 300 ? (tryParse(answer) ?? message(id, 'metadata')) : message(id, 'metadata')
  }

  /** Parses a mail; undefined if it is invalid, or if its parts are nested so deep that the stack is exhausted. */
  function tryParse(answer: GoogleAnswer): GmailMessage | undefined {
    try {
      return parseAnswer(GmailMessage, answer, 'messages.get')
    } catch {
      return undefined
    }
  }

  return {
    message,
    async storedText(messageId, attachmentId) {
      const part = `${encodeURIComponent(messageId)}/attachments/${encodeURIComponent(attachmentId)}`
      const answer = await call({ method: 'GET', url: `${users}/messages/${part}`, allow: [400, 404, 413] })
      return StoredText.safeParse(answer.body).data?.data
    },
    profile: async () => parseAnswer(Profile, await call({ method: 'GET', url: `${users}/profile` }), 'getProfile'),
    async watch(topicName, labelIds) {
      const body = { topicName, labelIds, labelFilterBehavior: 'INCLUDE' }
      return parseAnswer(WatchAnswer, await call({ method: 'POST', url: `${users}/watch`, body }), 'watch')
    },
    async stop() {
      await call({ method: 'POST', url: `${users}/stop` })
    },
    async history(since, pageToken) {
      const query = toQuery({ startHistoryId: since, historyTypes: 'messageAdded', maxResults: '500', pageToken })
      const answer = await call({ method: 'GET', url: `${users}/history?${query}`, allow: [404] })
      if (answer.status === 404) return 'expired'
      const page = parseAnswer(History, answer, 'history.list')
      const added = page.history.flatMap(({ messagesAdded }) =>
        messagesAdded.map(({ message: { id, labelIds } }) => ({ id, labels: labelIds })),
      )
      return { added, historyId: page.historyId, next: page.nextPageToken }
    },
    async list(q, { max, labelId, pageToken }) {
      const query = toQuery({ q, maxResults: String(max), labelIds: labelId, pageToken })
      const page = parseAnswer(
        MessageList,
        await call({ method: 'GET', url: `${users}/messages?${query}` }),
        'messages.list',
      )
      return { ids: page.messages.map(({ id }) => id), next: page.nextPageToken }
    },
  }
}

function toQuery(fields: Readonly<Record<string, string | undefined>>): URLSearchParams {
  return new URLSearchParams(
    Object.entries(fields).filter((entry): entry is [string, string] => entry[1] !== undefined),
  )
}

/** Parses an answer. Throws `gmail-unavailable` if it does not match Google's reference. */
export function parseAnswer<T>(schema: z.ZodType<T>, { body }: GoogleAnswer, name: string): T {
  const parsed = schema.safeParse(body)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new Problem('gmail-unavailable', `The answer of ${name} has no valid ${issue?.path.join('.') ?? 'form'}.`)
}
