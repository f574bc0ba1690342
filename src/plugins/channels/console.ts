// Prints replies on the operator's terminal. The text may come from an attacker, so control characters are removed. Without a terminal,
// `write` must not show the reply, because a log contains no text of a payload.
import { defineChannel } from '../../define.ts'
import { toPrintable, toPrintableLine } from './shared/values.ts'

export const consoleChannel = defineChannel({
  name: 'console',
  about: 'Prints replies on the terminal of the gateway.',
  findsRecipient: true,
  create: (_, { write }) => ({
    dedupes: false,
    whyNot: () => undefined,
    split: (markdown) => [markdown],
    async send({ text, nonce, run }) {
      const title = toPrintableLine(`${run.agentId} (${run.name})`)
      const shown = `── reply of ${title} ──\n${toPrintable(text.trimEnd())}\n`
      write({ text: shown, jobId: run.id, agentId: run.agentId, chars: text.length })
      return { kind: 'sent', id: nonce }
    },
    probe: async () => ({ ok: true, detail: 'The console is always available.' }),
  }),
})
