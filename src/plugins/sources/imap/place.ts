// The place in a mailbox: how far each folder was read. It is stored as JSON in the commit of the mails.
import { z } from 'zod'
import { tryParseJson } from '../shared/kit.ts'

const FolderPlace = z.object({
  name: z.string(),
  /** Another value means that the server has numbered the mails again. */
  uidValidity: z.string(),
  /** The number of the last mail that was read. Later mails have greater numbers. */
  uid: z.number(),
  /** When the folder was watched first, in milliseconds since the epoch: earlier mails are not delivered. */
  since: z.number(),
  /** The numbers of earlier mails that the server could not return. */
  missed: z.array(z.number()).default([]),
})
export type FolderPlace = z.infer<typeof FolderPlace>

const MailboxPlace = z.object({
  /** When the folders were last read, in milliseconds since the epoch. */
  syncedAt: z.number(),
  folders: z.array(FolderPlace),
})
export type MailboxPlace = z.infer<typeof MailboxPlace>

/** Throws if the text is no place: to begin again would lose the mails since then. */
export function parsePlace(text: string): MailboxPlace {
  return MailboxPlace.parse(tryParseJson(text))
}

export function findFolderPlace({ folders }: MailboxPlace, name: string): FolderPlace | undefined {
  return folders.find((folder) => folder.name === name)
}

export function setFolderPlace({ folders }: MailboxPlace, place: FolderPlace, syncedAt: number): MailboxPlace {
  return { syncedAt, folders: [...folders.filter(({ name }) => name !== place.name), place] }
}
