// The nouns of a watched mailbox: a mail, what the hook gets of it, how far the mailbox has been read, and where mails go.
import { join } from 'node:path'
import { z } from 'zod'

export type Mail = {
  readonly id: string
  readonly threadId: string
  readonly from: string
  readonly to: string
  readonly subject: string
  /** ISO 8601: when Gmail took the mail. */
  readonly date: string
  readonly snippet: string
  /** Plain text; empty where bodies are not wanted. */
  readonly body: string
  /** True: the mail has more text than this. */
  readonly bodyTruncated: boolean
  /** Ids of its labels. */
  readonly labels: readonly string[]
}

/** The body of the hook: one mail each, so that each is a delivery of its own. */
export type GmailPayload = {
  readonly source: 'gmail'
  readonly account: string
  readonly historyId: string
  readonly messages: readonly [Mail]
}

/** How far a mailbox has been read. `syncedAt`: when it was last asked, in milliseconds since the epoch. */
export type GmailState = { readonly historyId: string; readonly syncedAt: number }

/** Where mails go, and where the place in the mailbox is kept. */
export type MailSink = {
  /** Undefined: the mailbox has never been read. */
  state(): Promise<GmailState | undefined>
  /**
   * Resolves when every mail is durable and the state has moved; the state never moves before the mails. Rejects otherwise: then all
   * of them come again, and a mail that comes again is dropped by its key. `payload-invalid`: some mails were refused, and the others
   * are durable.
   */
  deliver(payloads: readonly GmailPayload[], state: GmailState): Promise<void>
}

/** The hook of the preset. */
export const gmailHook = 'gmail'

/** The Idempotency-Key of a mail: the same whoever delivers it. */
export function toMailKey({ account, messages: [{ id }] }: GmailPayload): string {
  return `gmail:${account}:${id}`
}

/** Under which the gateway's store keeps how far a mailbox has been read. */
export function cursorName(account: string): string {
  return `gmail:${account}`
}

const State = z.object({ historyId: z.string().regex(/^\d+$/), syncedAt: z.number() })

/** What `JSON.stringify` made of a state. */
export function parseState(text: string): GmailState {
  return State.parse(JSON.parse(text))
}

/** How far `gmail run` has read. The gateway keeps the same in its store. */
export function toStateFile(dir: string): string {
  return join(dir, 'state', 'gmail-cursor.json')
}
