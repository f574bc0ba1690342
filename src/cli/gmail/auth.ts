// Asks the owner of the mailbox for consent, and stores the consent in a file that only its owner can read.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { type CallTools, createCall } from '../../plugins/sources/gmail/call.ts'
import { askConsent } from '../../plugins/sources/gmail/consent.ts'
import {
  type Consent,
  type OAuthClient,
  readClientFile,
  readConsent,
  writeConsent,
} from '../../plugins/sources/gmail/credentials.ts'
import { openGoogle, scopes } from '../../plugins/sources/gmail/google.ts'
import { sleepUnlessAborted } from '../../base/retry.ts'
import { loadConfig } from '../../gateway/config/config.ts'
import { GmailEndpoints } from '../../model/config/gmail.ts'
import type { GmailMode } from '../../model/config/gmail-modes.ts'
import { exitCodes, Problem } from '../../core/model/problem.ts'
import type { Context } from '../terminal/context.ts'
import { type GmailFlags, chooseAccount, chooseMode } from './flags.ts'

export async function auth(context: Context, flags: GmailFlags): Promise<number> {
  const { dir, env } = context
  const { gmail } = loadConfig({ dir, env }).config.hooks
  await storeConsent(context, flags, {
    account: chooseAccount(flags, gmail),
    mode: chooseMode(flags, gmail),
    endpoints: gmail?.endpoints ?? GmailEndpoints.parse({}),
  })
  return exitCodes.ok
}

type ConsentRequest = { readonly account: string; readonly mode: GmailMode; readonly endpoints: GmailEndpoints }

/** Throws `gmail-consent-missing` if the person declines, or consents for another mailbox. */
export async function storeConsent(
  context: Context,
  flags: GmailFlags,
  { account, mode, endpoints }: ConsentRequest,
): Promise<void> {
  const client = await findClient(context.dir, flags)
  const tools = createTools()
  const given = await withPastedLine(context.stdin, flags.browser === false, (pasted) =>
    askConsent({
      client,
      account,
      scopes: listScopes(mode),
      endpoints,
      call: createCall(tools),
      pasted,
      show: (url) => openConsentPage(context, url, flags.browser !== false),
    }),
  )
  const google = openGoogle({ account, endpoints }, { credentials: given, clock: Date.now, tools })
  const { emailAddress } = await google.gmail.profile()
  if (emailAddress.toLowerCase() !== account) {
    throw new Problem(
      'gmail-consent-missing',
      `The consent is for ${emailAddress}, not for ${account}. Start again, and choose ${account} in the browser.`,
    )
  }
  await writeConsent(context.dir, given)
  context.note(`${account} consented. The consent is kept in state/gmail-consent.json.`)
  context.note(
    'If the OAuth app is in "Testing", the consent ends after seven days: publish the app, or make it internal.',
  )
}

/** The scope of Pub/Sub is included only if the mode uses Pub/Sub. */
function listScopes(mode: GmailMode): string[] {
  return mode === 'poll' ? [scopes.gmail] : [scopes.gmail, scopes.pubsub]
}

/** Whether a consent covers the scopes of the mode. */
export function hasScopes({ scopes: granted }: Consent, mode: GmailMode): boolean {
  return listScopes(mode).every((scope) => granted.includes(scope))
}

export function createTools(): CallTools {
  return { pause: sleepUnlessAborted, random: Math.random, signal: new AbortController().signal }
}

async function findClient(dir: string, { credentials }: GmailFlags): Promise<OAuthClient> {
  if (credentials !== undefined) return readClientFile(credentials)
  const earlier = readConsent(dir)
  if (earlier !== undefined) return { clientId: earlier.clientId, clientSecret: earlier.clientSecret }
  throw new Problem(
    'usage-invalid',
    'The OAuth client is missing. Create one of type "Desktop app" at https://console.cloud.google.com/apis/credentials, download it, and give the file with --credentials.',
  )
}

function openConsentPage(context: Context, url: string, opens: boolean): void {
  context.note(`Open this address and allow Hookloom to read the mailbox:\n\n  ${url}\n`)
  if (!opens) {
    context.note(
      'If the browser runs on another machine, its last page does not load. Paste the address of that page here.',
    )
    return
  }
  const [command = '', ...args] = { darwin: ['open'], win32: ['cmd', '/c', 'start', ''] }[String(process.platform)] ?? [
    'xdg-open',
  ]
  // an error is ignored: the address was printed above
  spawn(command, [...args, url], { stdio: 'ignore', detached: true })
    .on('error', () => undefined)
    .unref()
}

/** Runs `work`. If `isAsked`, reads one line of standard input at the same time. */
async function withPastedLine<T>(
  stdin: Readable,
  isAsked: boolean,
  work: (pasted: Promise<string>) => Promise<T>,
): Promise<T> {
  if (!isAsked) return work(new Promise(() => {}))
  const lines = createInterface({ input: stdin })
  try {
    return await work(new Promise((resolve) => lines.once('line', resolve)))
  } finally {
    lines.close()
    stdin.pause()
  }
}
