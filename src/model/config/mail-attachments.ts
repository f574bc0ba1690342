import { z } from 'zod'

/** A key of each mailbox. The limits are those of the files of any source: `model/source-files.ts`. */
export const mailAttachments = z
  .boolean()
  .default(false)
  .describe(
    'Whether a run gets the attachments of its mail as files in the workspace of its agent: at most 20, of 10 MiB each and 25 MiB in all. Only claude, codex and runners of the kind `command` open files.',
  )
