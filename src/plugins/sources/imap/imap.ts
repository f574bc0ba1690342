// IMAP: the mails of folders of one mailbox. https://www.rfc-editor.org/rfc/rfc9051
import { defineSource, type SourceParts } from '../../../define.ts'
import { ImapConfig } from '../shared/kit.ts'

export const imapSource = defineSource({
  name: 'imap',
  label: 'IMAP',
  about: 'The mails of a mailbox, by IMAP.',
  docs: 'https://www.rfc-editor.org/rfc/rfc9051',
  options: ImapConfig,
  // another server numbers the mails differently
  account: ({ user, host }) => `${user}@${host}`,
  create(imap, host) {
    let problems: readonly string[] = []
    const oversized = new Set<string>()
    let read: SourceParts['readFiles']
    return {
      // a pass ends with its connection, and the next one connects again
      everyMs: 1_000,
      async pass(signal) {
        // loaded on demand, because few gateways need this large module
        const { watchMailbox } = await import('./watch.ts')
        return watchMailbox({ imap, host, signal, oversized, onProblems: (next) => (problems = next) })
      },
      problems: () => problems,
      async probe(signal) {
        const { probeMailbox } = await import('./watch.ts')
        return probeMailbox(imap, signal)
      },
      async *readFiles(refs, limits) {
        const { createImapFiles } = await import('./files.ts')
        read ??= createImapFiles(imap, host)
        yield* read(refs, limits)
      },
    }
  },
})
