// Replies on the operator's own terminal. The text is an attacker's as much as an agent's: it is shown and never drives the terminal.
import type { Channel } from '../../model/channel.ts'
import { toPrintable, toPrintableLine } from '../../base/text.ts'

/** `write` takes what belongs on the terminal, such as `process.stdout.write`. Recipients do not exist here. */
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
    probe: async () => ({ ok: true, detail: 'The console is always there.' }),
  }
}
