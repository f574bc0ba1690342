// Prints replies on the terminal of the operator. The text may be an attacker's, so control characters are removed.
import type { Channel } from '../../model/channel.ts'
import { toPrintable, toPrintableLine } from '../../base/text.ts'

/** `write` prints to the terminal, such as `process.stdout.write`. This channel has no recipients. */
export function createConsoleChannel({ write }: { write: (text: string) => void }): Channel {
  return {
    id: 'console',
    dedupes: false,
    to: undefined,
    whyNot: () => undefined,
    split: (markdown) => [markdown],
    async send({ text, nonce, run }) {
      const title = toPrintableLine(`${run.agentId} (${run.name})`)
      write(`── reply of ${title} ──\n${toPrintable(text.trimEnd())}\n`)
      return { kind: 'sent', id: nonce }
    },
    probe: async () => ({ ok: true, detail: 'The console is always available.' }),
  }
}
