// New mails, posted in batches as {"messages": [{id, from, subject, snippet, body}, …]}, become agent turns, one for each mail.
import { z } from 'zod'
import { definePreset } from '../../src/define.ts'
import { buildMailMapping, MailOptions } from '../mail.ts'

const kib = 1024
const mib = 1024 * kib

/** The keys of `hooks.gmail` that the preset reads. The schema of the configuration has the same keys; a test compares the two. */
const GmailOptions = z.strictObject({
  maxBytes: z.int().positive().default(20_000),
  ...MailOptions.shape,
})
type GmailOptions = z.infer<typeof GmailOptions>

export default definePreset<GmailOptions>({
  name: 'gmail',
  title: 'Every new mail of a batch becomes an agent turn in a session of its own.',
  options: GmailOptions,
  build: ({ maxBytes, ...options }) => ({
    mappings: [buildMailMapping({ id: 'gmail', name: 'Gmail' }, options)],
    maxBodyBytes: toMaxBodyBytes(maxBytes),
  }),
})

/** The maximum size of a batch of 100 mails: JSON may triple the bytes of a text, and the headers of a mail take up to 8 KiB. */
function toMaxBodyBytes(maxBytes: number): number {
  return Math.max(256 * kib, Math.min(32 * mib, 100 * (3 * maxBytes + 8 * kib)))
}
