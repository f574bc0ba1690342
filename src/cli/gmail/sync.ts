// Fetches once the mails that came since the last sync, and posts them to the gateway's hook.
import { formatQuantity } from '../../base/text.ts'
import { createHttpSink, readMailboxState } from '../../plugins/sources/gmail/http-sink.ts'
import { readCredentials } from '../../plugins/sources/gmail/credentials.ts'
import { openGoogle } from '../../plugins/sources/gmail/google.ts'
import { gmailHook, type GmailState, parseState, toStateFile } from '../../plugins/sources/gmail/mail.ts'
import { syncOnce } from '../../plugins/sources/gmail/sync.ts'
import { loadConfig } from '../../gateway/config/config.ts'
import { toSourceCursor } from '../../model/source.ts'
import { silentLog } from '../../base/log.ts'
import { exitCodes } from '../../core/model/problem.ts'
import { type Context, withProgress } from '../terminal/context.ts'
import { readStore } from '../gateway/stored.ts'
import { createTools } from './auth.ts'
import { requireWatched } from './flags.ts'
import { findHooksUrl } from './run.ts'

export async function sync(context: Context): Promise<number> {
  const { dir, env } = context
  const { config } = loadConfig({ dir, env })
  const gmail = requireWatched(config)
  const file = toStateFile(dir)
  const posting = createHttpSink({ account: gmail.account, hooks: () => findHooksUrl(dir, config), file })
  const state = await findState(context, gmail.account)
  // replaces the position of the file: a mail that the gateway already has is dropped as a duplicate, because it has the same key
  const sink = { ...posting, state: async () => state }
  const google = openGoogle(gmail, { credentials: readCredentials(dir, gmail), clock: Date.now, tools: createTools() })
  const { mails, gap } = await withProgress(context, 'Asking the mailbox', () =>
    syncOnce({ api: google.gmail, sink, gmail, clock: Date.now, log: silentLog }),
  )
  if (context.json) context.printJson({ account: gmail.account, mails, gap, isFirst: state === undefined })
  else if (state === undefined)
    context.print(`${gmail.account} is read from now on. Mails that are already there are ignored.`)
  else context.print(`${formatQuantity(mails, 'new mail was', 'new mails were')} delivered.`)
  if (gap && !context.json)
    context.print('Gmail no longer had the whole history: only the newest hundred mails were fetched.')
  return exitCodes.ok
}

/** The position in the mailbox from which to read: that of the file or that of the gateway, whichever is newer. */
async function findState(context: Context, account: string): Promise<GmailState | undefined> {
  const [own, gateways] = [
    await readMailboxState(toStateFile(context.dir), account),
    await readGatewayState(context, account),
  ]
  if (own === undefined || gateways === undefined) return own ?? gateways
  return BigInt(own.historyId) > BigInt(gateways.historyId) ? own : gateways
}

async function readGatewayState(context: Context, account: string): Promise<GmailState | undefined> {
  const value = await readStore(context, undefined, (store) => store.cursor(toSourceCursor(gmailHook, account)))
  return value === undefined ? undefined : parseState(value)
}
