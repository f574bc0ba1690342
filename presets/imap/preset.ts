// New mails of a mailbox that `hooks.imap` watches become agent turns. Their payload has the keys of the preset gmail.
import type { z } from 'zod'
import { definePreset } from '../../src/define.ts'
import { buildMailMapping, MailOptions } from '../mail.ts'

/** More than the greatest mail that `hooks.imap.maxBytes` allows: JSON may triple the bytes of a text. */
const maxBodyBytes = 1024 * 1024

export default definePreset<z.infer<typeof MailOptions>>({
  name: 'imap',
  title: 'Every new mail of a mailbox becomes an agent turn in a session of its own.',
  options: MailOptions,
  build: (options) => ({ mappings: [buildMailMapping({ id: 'imap', name: 'IMAP' }, options)], maxBodyBytes }),
})
