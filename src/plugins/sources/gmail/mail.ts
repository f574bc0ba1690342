// The types of a watched mailbox: the payload of the hook, the position in the mailbox, and the sink of mails.
import { join } from 'node:path'
import { z } from 'zod'
import type { SourceFile } from '../../../define.ts'
import type { Mail } from '../shared/mail.ts'

/** The payload of the hook: one mail for each delivery. */
export type GmailPayload = {
  readonly source: 'gmail'
  readonly account: string
  readonly historyId: string
  readonly messages: readonly [Mail]
}

/** The position in a mailbox. `syncedAt`: the last sync, in milliseconds since the epoch. */
export type GmailState = { readonly historyId: string; readonly syncedAt: number }

/** Receives mails, and keeps the position in the mailbox. */
export type MailSink = {
  /** The stored position; undefined if the mailbox was never read. */
  state(): Promise<GmailState | undefined>
  /**
   * Stores the mails, and then the state. Resolves when all of them are durable. If `deliver` rejects, all mails come again, and known mails are
   * dropped by their key. `payload-invalid`: some mails were refused, and the others are durable. `files`: those of the mails.
   */
  deliver(payloads: readonly GmailPayload[], state: GmailState, files?: MailFiles): Promise<void>
}

export type MailFiles = ReadonlyMap<GmailPayload, readonly SourceFile[]>
export const noFiles: MailFiles = new Map()

/** The name of the source, and of the hook of the preset `gmail`. */
export const gmailHook = 'gmail'

/** The Idempotency-Key of a mail: the same for every way of delivery. */
export function toMailKey({ account, messages: [{ id }] }: GmailPayload): string {
  return `gmail:${account}:${id}`
}

const State = z.object({ historyId: z.string().regex(/^\d+$/), syncedAt: z.number() })

/** Parses a state that `JSON.stringify` wrote. */
export function parseState(text: string): GmailState {
  return State.parse(JSON.parse(text))
}

/** The file with the position of `gmail run`. The gateway keeps its position in the store. */
export function toStateFile(dir: string): string {
  return join(dir, 'state', 'gmail-cursor.json')
}
