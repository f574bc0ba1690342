// `hookloom gmail …`: the options of each command, and their help.
import { type Command, Option } from 'commander'
import { gmailModes, minRenewMinutes } from '../../model/config/gmail-modes.ts'
import type { GmailFlags } from '../gmail/flags.ts'
import {
  type InContext,
  collect,
  jsonOption,
  createIntegerParser,
  createWordParser,
  renderExamples,
} from '../terminal/usage.ts'

const accountOption = () => new Option('--account <address>', 'the mailbox (default: hooks.gmail.account)')
const credentialsOption = () =>
  new Option('--credentials <file>', 'the OAuth client of type "Desktop app", as downloaded from Google')
const noBrowserOption = () => new Option('--no-browser', 'print the address of the consent page instead of opening it')

export function addGmailCommands(program: Command, inContext: InContext): void {
  const gmail = program
    .commandsGroup('Other:')
    .command('gmail')
    .summary('watch a Gmail mailbox')
    .description('Watches a Gmail mailbox. Its new mails go to the gmail hook.')

  addSetupCommand(gmail, inContext)

  gmail
    .command('run')
    .summary('watch the mailbox in a separate process')
    .description(
      'Watches the mailbox in a separate process, and posts its mails to the hook of a gateway that does not watch it ' +
        '(HOOKLOOM_SKIP_GMAIL=1).',
    )
    .addHelpText('after', renderExamples('hookloom gmail run'))
    .action(inContext(async (context) => (await import('../gmail/run.ts')).run(context)))

  gmail
    .command('status')
    .summary('show whether the mailbox is watched')
    .description('Shows whether the mailbox is watched, and what does not work.')
    .addOption(jsonOption())
    .addHelpText('after', renderExamples('hookloom gmail status'))
    .action(inContext(async (context) => (await import('../gmail/status.ts')).status(context)))

  gmail
    .command('sync')
    .summary('fetch new mails once, now')
    .description('Fetches the new mails once, and posts them to the gateway.')
    .addOption(jsonOption())
    .addHelpText('after', renderExamples('hookloom gmail sync'))
    .action(inContext(async (context) => (await import('../gmail/sync.ts')).sync(context)))

  gmail
    .command('stop')
    .summary('stop the notifications of Google')
    .description('Ends the notifications that Google sends for the mailbox.')
    .addOption(new Option('--dry-run', 'print the request, and send nothing'))
    .addHelpText('after', renderExamples('hookloom gmail stop'))
    .action(inContext(async (context, flags: GmailFlags) => (await import('../gmail/stop.ts')).stop(context, flags)))
}

function addSetupCommand(gmail: Command, inContext: InContext): void {
  gmail
    .command('auth')
    .summary('ask the owner of the mailbox for consent')
    .description('Asks the owner of the mailbox for consent, in a browser.')
    .addOption(accountOption())
    .addOption(modeOption())
    .addOption(credentialsOption())
    .addOption(noBrowserOption())
    .addHelpText('after', renderExamples('hookloom gmail auth --account desk@example.org --credentials client.json'))
    .action(inContext(async (context, flags: GmailFlags) => (await import('../gmail/auth.ts')).auth(context, flags)))

  gmail
    .command('setup')
    .summary('set up everything for a mailbox, step by step')
    .description(
      'Sets up the consent, Google Cloud and hooks.gmail, step by step. Leaves alone what is set up already.',
    )
    .addOption(accountOption())
    .addOption(modeOption())
    .addOption(new Option('--project <id>', 'the Google Cloud project of the OAuth client'))
    .addOption(new Option('--topic <name>', 'Pub/Sub topic'))
    .addOption(new Option('--subscription <name>', 'Pub/Sub subscription'))
    .addOption(new Option('--label <id>', 'only mails with this label; may be given several times').argParser(collect))
    .addOption(new Option('--query <search>', 'only mails that this Gmail search finds'))
    .addOption(new Option('--no-body', 'send subject and snippet without the text'))
    .addOption(
      new Option('--max-bytes <n>', 'most bytes of text of one mail').argParser(createIntegerParser(1, 10_000_000)),
    )
    .addOption(
      new Option('--renew-minutes <n>', 'minutes between renewals of the watch').argParser(
        createIntegerParser(minRenewMinutes, 1_440),
      ),
    )
    .addOption(
      new Option('--poll-seconds <n>', 'mode poll: seconds between polls').argParser(createIntegerParser(5, 3_600)),
    )
    .addOption(new Option('--push-endpoint <url>', 'mode push: public URL of the receiver'))
    .addOption(new Option('--push-service-account <address>', 'mode push: the service account that signs'))
    .addOption(new Option('--audience <text>', 'mode push: audience of the tokens'))
    .addOption(new Option('--host <address>', 'mode push: address of the receiver'))
    .addOption(new Option('--port <n>', 'mode push: port of the receiver').argParser(createIntegerParser(0, 65_535)))
    .addOption(new Option('--path <path>', 'mode push: path of the receiver'))
    .addOption(credentialsOption())
    .addOption(new Option('--service-account <file>', 'key of a service account with domain-wide delegation'))
    .addOption(noBrowserOption())
    .addOption(new Option('--dry-run', 'print each request and each change, and do nothing'))
    .addOption(jsonOption())
    .addHelpText(
      'after',
      renderExamples(
        'hookloom gmail setup --account desk@example.org --project my-project --credentials client.json',
        'hookloom gmail setup --account desk@example.org --mode poll --credentials client.json',
      ),
    )
    .action(inContext(async (context, flags: GmailFlags) => (await import('../gmail/setup.ts')).setup(context, flags)))
}

function modeOption(): Option {
  return new Option('--mode <mode>', `how new mails are found: ${gmailModes.join(', ')}`).argParser(
    createWordParser(gmailModes),
  )
}
