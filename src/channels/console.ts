// Prints replies on the operator's terminal. The text may come from an attacker, so control characters are removed. Without a terminal,
// `write` must not show the reply, because a log contains no text of a payload.
import type { Channel } from '../model/channel.ts'
import { toPrintable, toPrintableLine } from '../base/text.ts'

/** `text` is for a terminal only. The other fields may be logged: `chars` is the length of the reply. */
type PrintedReply = {
  readonly text: string
  readonly jobId: string
  readonly agentId: string
  readonly chars: number
}

/** Prints a reply, for example with `process.stdout.write`. */
export type WriteReply = (reply: PrintedReply) => void

export function createConsoleChannel({ write }: { write: WriteReply }): Channel {
  return {
    id: 'console',
    dedupes: false,
    to: undefined,
    whyNot: () => undefined,
    split: (markdown) => [markdown],
    async send({ text, nonce, run }) {
      const title = toPrintableLine(`${run.agentId} (${run.name})`)
      const shown = `── reply of ${title} ──\n${toPrintable(text.trimEnd())}\n`
      write({ text: shown, jobId: run.id, agentId: run.agentId, chars: text.length })
      return { kind: 'sent', id: nonce }
    },
    probe: async () => ({ ok: true, detail: 'The console is always available.' }),
  }
}
