// Gmail: the mails of one mailbox. https://developers.google.com/workspace/gmail/api/guides/push
import { defineSource, GmailConfig, isWatched, type SourceHost, type SourceWatch } from '../shared/kit.ts'
import { readMailboxState } from './http-sink.ts'
import { gmailHook, type MailSink, parseState, toMailKey, toStateFile } from './mail.ts'

export const gmailSource = defineSource({
  name: gmailHook,
  label: 'Gmail',
  about: 'The mails of a mailbox at Google.',
  docs: 'https://developers.google.com/workspace/gmail/api/guides/push',
  options: GmailConfig,
  account: ({ account }) => account,
  watch,
})

async function watch(gmail: GmailConfig, host: SourceHost): Promise<SourceWatch> {
  if (!isWatched(gmail)) return { problems: () => [], stop: async () => {} }
  const { account, mode } = gmail
  host.log.info({ account, mode }, 'the gateway watches the mailbox')
  // loaded on demand, because few gateways need this large module
  const { startWatcher } = await import('./watcher.ts')
  const watcher = startWatcher({ ...host, gmail, sink: createSink(account, host) })
  return { problems: () => watcher.status().problems, stop: watcher.stop }
}

function createSink(account: string, { dir, place, store }: SourceHost): MailSink {
  return {
    async state() {
      const text = await place()
      // the first sync continues where `gmail run` stopped
      return text === undefined ? readMailboxState(toStateFile(dir), account) : parseState(text)
    },
    deliver: (payloads, state) =>
      store(
        payloads.map((payload) => ({ key: toMailKey(payload), payload })),
        JSON.stringify(state),
      ),
  }
}
