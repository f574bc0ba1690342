// `hookloom gmail …`: the flags of each command, one below the other.
import { type Command, InvalidArgumentError, Option } from 'commander'
import { gmailModes, leastRenewMinutes } from '../model/gmail-config.ts'
import type { Context } from './terminal/context.ts'
import type { GmailFlags } from './gmail/flags.ts'
import { collect, parseWord } from './terminal/usage.ts'

/** A command's work as commander calls it: its arguments and options come after the context. */
export type Act = <Given extends unknown[]>(
  work: (context: Context, ...given: Given) => Promise<number>,
) => (this: Command, ...given: Given) => Promise<void>

export function addGmailCommands(program: Command, act: Act): void {
  const gmail = program.command('gmail').description('watch a Gmail mailbox: its new mails go to the gmail hook')
  const json = () => new Option('--json', 'one JSON object a line')
  const account = () => new Option('--account <address>', 'the mailbox (hooks.gmail.account)')
  const credentials = () => new Option('--credentials <file>', 'the OAuth client, of type "Desktop app", as downloaded')
  const noBrowser = () => new Option('--no-browser', 'print the address of the consent, and take the answer by hand')

  gmail
    .command('auth')
    .description('ask the owner of the mailbox for his consent')
    .addOption(account())
    .addOption(mode())
    .addOption(credentials())
    .addOption(noBrowser())
    .action(act(async (context, flags: GmailFlags) => (await import('./gmail/auth.ts')).auth(context, flags)))

  gmail
    .command('setup')
    .description('consent, Google Cloud and hooks.gmail, step by step; what is done already is left alone')
    .addOption(account())
    .addOption(mode())
    .addOption(new Option('--project <id>', 'Google Cloud project, that of the OAuth client'))
    .addOption(new Option('--topic <name>', 'Pub/Sub topic'))
    .addOption(new Option('--subscription <name>', 'Pub/Sub subscription'))
    .addOption(new Option('--label <id>', 'mails with this label count, may stand several times').argParser(collect))
    .addOption(new Option('--query <search>', 'mails that this Gmail search finds count'))
    .addOption(new Option('--no-body', 'subject and snippet alone'))
    .addOption(new Option('--max-bytes <n>', 'bytes of text of one mail').argParser(parseWhole(1, 10_000_000)))
    .addOption(
      new Option('--renew-minutes <n>', 'how often the watch is renewed').argParser(
        parseWhole(leastRenewMinutes, 1_440),
      ),
    )
    .addOption(new Option('--poll-seconds <n>', 'mode poll: how often to ask').argParser(parseWhole(5, 3_600)))
    .addOption(new Option('--push-endpoint <url>', 'mode push: the public URL of the receiver'))
    .addOption(new Option('--push-service-account <address>', 'mode push: who signs'))
    .addOption(new Option('--audience <text>', 'mode push: audience of the tokens'))
    .addOption(new Option('--host <address>', 'mode push: address of the receiver'))
    .addOption(new Option('--port <n>', 'mode push: port of the receiver').argParser(parseWhole(0, 65_535)))
    .addOption(new Option('--path <path>', 'mode push: path of the receiver'))
    .addOption(credentials())
    .addOption(new Option('--service-account <file>', 'key of a service account with domain-wide delegation'))
    .addOption(noBrowser())
    .addOption(new Option('--dry-run', 'print each call and each change, and do nothing'))
    .addOption(json())
    .action(act(async (context, flags: GmailFlags) => (await import('./gmail/setup.ts')).setup(context, flags)))

  gmail
    .command('run')
    .description('watch beside a gateway that does not (HOOKLOOM_SKIP_GMAIL=1), and post to its hook')
    .action(act(async (context) => (await import('./gmail/run.ts')).run(context)))

  gmail
    .command('status')
    .description('whether the mailbox is watched, and what does not work')
    .addOption(json())
    .action(act(async (context) => (await import('./gmail/status.ts')).status(context)))

  gmail
    .command('sync')
    .description('ask the mailbox once, now')
    .addOption(json())
    .action(act(async (context) => (await import('./gmail/sync.ts')).sync(context)))

  gmail
    .command('stop')
    .description('end the notifications of the mailbox at Google')
    .addOption(new Option('--dry-run', 'print the call, and do nothing'))
    .action(act(async (context, flags: GmailFlags) => (await import('./gmail/stop.ts')).stop(context, flags)))
}

function mode(): Option {
  return new Option('--mode <mode>', `how new mails become known: ${gmailModes.join(', ')}`).argParser(
    parseWord(gmailModes),
  )
}

function parseWhole(least: number, most: number): (text: string) => number {
  return (text) => {
    const number = Number(text)
    if (/^\d+$/.test(text) && number >= least && number <= most) return number
    throw new InvalidArgumentError(`Expected a whole number from ${least} to ${most}`)
  }
}
