// `hookloom gmail …`: the options of each command, and their help.
import { Option } from 'commander'
import { gmailModes, minRenewMinutes } from '../../model/config/gmail-modes.ts'
import type { GmailFlags } from '../gmail/flags.ts'
import { type CliCommand, collect, jsonOption, createIntegerParser, createWordParser } from '../terminal/usage.ts'

const accountOption = () => new Option('--account <address>', 'the mailbox (default: hooks.gmail.account)')
const credentialsOption = () =>
  new Option('--credentials <file>', 'the OAuth client of type "Desktop app", as downloaded from Google')
const noBrowserOption = () => new Option('--no-browser', 'print the address of the consent page instead of opening it')

export function addGmailCommands(program: CliCommand): void {
  const gmail = program
    .commandsGroup('Other:')
    .command('gmail')
    .summary('watch a Gmail mailbox')
    .description('Watches a Gmail mailbox. Its new mails go to the gmail hook.')

  addSetupCommand(gmail)

  gmail
    .command('run')
    .summary('watch the mailbox in a separate process')
    .description(
      'Watches the mailbox in a separate process, and posts its mails to the hook of a gateway that does not watch it ' +
        '(HOOKLOOM_SKIP_GMAIL=1).',
    )
    .examples('hookloom gmail run')
    .run(async (context) => (await import('../gmail/run.ts')).run(context))

  gmail
    .command('status')
    .summary('show whether the mailbox is watched')
    .description('Shows whether the mailbox is watched, and what does not work.')
    .addOption(jsonOption())
    .examples('hookloom gmail status')
    .run(async (context) => (await import('../gmail/status.ts')).status(context))

  gmail
    .command('sync')
    .summary('fetch new mails once, now')
    .description('Fetches the new mails once, and posts them to the gateway.')
    .addOption(jsonOption())
    .examples('hookloom gmail sync')
    .run(async (context) => (await import('../gmail/sync.ts')).sync(context))

  gmail
    .command('stop')
    .summary('stop the notifications of Google')
    .description('Ends the notifications that Google sends for the mailbox.')
    .option('--dry-run', 'print the request, and send nothing')
    .examples('hookloom gmail stop')
    .run(async (context, flags: GmailFlags) => (await import('../gmail/stop.ts')).stop(context, flags))
}

function addSetupCommand(gmail: CliCommand): void {
  gmail
    .command('auth')
    .summary('ask the owner of the mailbox for consent')
    .description('Asks the owner of the mailbox for consent, in a browser.')
    .addOption(accountOption())
    .addOption(modeOption())
    .addOption(credentialsOption())
    .addOption(noBrowserOption())
    .examples('hookloom gmail auth --account desk@example.org --credentials client.json')
    .run(async (context, flags: GmailFlags) => (await import('../gmail/auth.ts')).auth(context, flags))

  gmail
    .command('setup')
    .summary('set up everything for a mailbox, step by step')
    .description(
      'Sets up the consent, Google Cloud and hooks.gmail, step by step. Leaves alone what is set up already.',
    )
    .addOption(accountOption())
    .addOption(modeOption())
    .option('--project <id>', 'the Google Cloud project of the OAuth client')
    .option('--topic <name>', 'Pub/Sub topic')
    .option('--subscription <name>', 'Pub/Sub subscription')
    .option('--label <id>', 'only mails with this label; may be given several times', collect)
    .option('--query <search>', 'only mails that this Gmail search finds')
    .option('--no-body', 'send subject and snippet without the text')
    .option('--max-bytes <n>', 'most bytes of text of one mail', createIntegerParser(1, 10_000_000))
    .option('--renew-minutes <n>', 'minutes between renewals of the watch', createIntegerParser(minRenewMinutes, 1_440))
    .option('--poll-seconds <n>', 'mode poll: seconds between polls', createIntegerParser(5, 3_600))
    .option('--push-endpoint <url>', 'mode push: public URL of the receiver')
    .option('--push-service-account <address>', 'mode push: the service account that signs')
    .option('--audience <text>', 'mode push: audience of the tokens')
    .option('--host <address>', 'mode push: address of the receiver')
    .option('--port <n>', 'mode push: port of the receiver', createIntegerParser(0, 65_535))
    .option('--path <path>', 'mode push: path of the receiver')
    .addOption(credentialsOption())
    .option('--service-account <file>', 'key of a service account with domain-wide delegation')
    .addOption(noBrowserOption())
    .option('--dry-run', 'print each request and each change, and do nothing')
    .addOption(jsonOption())
    .examples(
      'hookloom gmail setup --account desk@example.org --project my-project --credentials client.json',
      'hookloom gmail setup --account desk@example.org --mode poll --credentials client.json',
    )
    .run(async (context, flags: GmailFlags) => (await import('../gmail/setup.ts')).setup(context, flags))
}

function modeOption(): Option {
  return new Option('--mode <mode>', `how new mails are found: ${gmailModes.join(', ')}`).argParser(
    createWordParser(gmailModes),
  )
}
