// Gmail: the mails of one mailbox. https://developers.google.com/workspace/gmail/api/guides/push
import { defineSource, type SourceHost, type SourceParts } from '../../../define.ts'
import { GmailConfig, isWatched } from '../shared/kit.ts'
import { readMailboxState } from './http-sink.ts'
import { gmailHook, type MailSink, noFiles, parseState, toMailKey, toStateFile } from './mail.ts'
import type { MailWatcher } from './watcher.ts'

export const gmailSource = defineSource({
  name: gmailHook,
  label: 'Gmail',
  about: 'The mails of a mailbox at Google.',
  docs: 'https://developers.google.com/workspace/gmail/api/guides/push',
  options: GmailConfig,
  account: ({ account }) => account,
  create(gmail, host) {
    let watcher: MailWatcher | undefined
    let read: SourceParts['readFiles']
    return {
      // one pass is the whole watch: it renews, polls and waits for pushes at times of its own
      async pass(signal) {
        if (!isWatched(gmail)) return
        const { account, mode } = gmail
        host.log.info({ account, mode }, 'the gateway watches the mailbox')
        // loaded on demand, because few gateways need this large module
        const { startWatcher } = await import('./watcher.ts')
        watcher = startWatcher({ ...host, gmail, sink: createSink(account, host) })
        await untilAborted(signal)
        await watcher.stop()
      },
      problems: () => watcher?.status().problems ?? [],
      async *readFiles(refs, limits) {
        if (!isWatched(gmail)) return
        const { createGmailFiles } = await import('./files.ts')
        read ??= createGmailFiles(gmail, host)
        yield* read(refs, limits)
      },
    }
  },
})

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

function createSink(account: string, { dir, place, store }: SourceHost): MailSink {
  return {
    async state() {
      const text = await place()
      // the first sync continues where `gmail run` stopped
      return text === undefined ? readMailboxState(toStateFile(dir), account) : parseState(text)
    },
    deliver: (payloads, state, files = noFiles) =>
      store(
        payloads.map((payload) => ({ key: toMailKey(payload), payload, files: files.get(payload) ?? [] })),
        JSON.stringify(state),
      ),
  }
}
