// The options and the help of `hookloom init`, `dev`, `start`, `relay`, `open`, `check`, `doctor`, `alert` and `schema`.
import { Option } from 'commander'
import type { Ports } from '../gateway/serve.ts'
import { type CliCommand, jsonOption, createIntegerParser } from '../terminal/usage.ts'

const portOption = () =>
  new Option('--port <n>', 'port of the hooks, instead of server.port').argParser(createIntegerParser(0, 65_535))
const adminPortOption = () =>
  new Option('--admin-port <n>', 'port of the admin API, instead of server.adminPort').argParser(
    createIntegerParser(0, 65_535),
  )

export function addServingCommands(program: CliCommand): void {
  program
    .commandsGroup('Set up and run:')
    .command('init')
    .summary('create a config directory')
    .description(
      'Creates a config directory with new tokens, sample mappings and a sample transform. With --from, its mappings, ' +
        'transforms, models and channels come from the file of another program. Overwrites nothing.',
    )
    .option('--from <file>', 'an openclaw.json, or a hooks.json of webhook')
    .examples(
      'hookloom init',
      'hookloom init --config-dir /etc/hookloom',
      'hookloom init --from ~/.openclaw/openclaw.json',
      'hookloom init --from /etc/webhook/hooks.json',
    )
    .run(async (context, options: { from?: string }) => (await import('../init.ts')).init(context, options))

  program
    .command('dev')
    .summary('run a gateway for development')
    .description(
      'Runs a gateway for development. Creates the config directory if it is missing, prints the URL and the token, ' +
        'and shows every problem in full. In a terminal, o + Enter opens the page, and q + Enter or Ctrl-C stops the gateway.',
    )
    .addOption(portOption())
    .addOption(adminPortOption())
    .option('--relay <url>', 'take requests from the relay at this URL, and print the public URL of the hooks')
    .examples('hookloom dev', 'hookloom dev --port 9000', 'hookloom dev --relay https://relay.example.org')
    .run(async (context, options: Ports & { relay?: string }) => (await import('../dev.ts')).dev(context, options))

  program
    .command('start')
    .summary('run the gateway, with JSON log lines')
    .description(
      'Runs the gateway. Its log is one JSON object a line on standard output. SIGTERM stops it after the requests and ' +
        'steps that are running; a second SIGTERM ends it at once.',
    )
    .addOption(portOption())
    .addOption(adminPortOption())
    .examples('hookloom start --config-dir /etc/hookloom', 'hookloom start --port 9000')
    .run(async (context, ports: Ports) => (await import('../start.ts')).start(context, ports))

  program
    .command('relay')
    .summary('run a relay for gateways without a public address')
    .description(
      'Runs a relay on a server with a public address. It keeps requests, sealed, until the gateway that they are for has taken them. ' +
        'Needs no configuration. Put a server that ends TLS in front of it.',
    )
    .addOption(new Option('--port <n>', 'port to listen on').default(8788).argParser(createIntegerParser(0, 65_535)))
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--dir <dir>', 'folder in which requests are kept', './hookloom-relay')
    .examples('hookloom relay', 'hookloom relay --port 8788 --dir /var/lib/hookloom-relay')
    .run(async (_context, options: { port: number; host: string; dir: string }) =>
      (await import('../relay.ts')).relay(options),
    )

  program
    .command('open')
    .summary('open the page of the running gateway')
    .description(
      'Prints a link to the page of the running gateway, and opens it where there is a browser. The link works once, and for ' +
        'a minute; the page stays open for twelve hours.',
    )
    .option('--no-browser', 'only print the link')
    .addOption(jsonOption())
    .examples('hookloom open', 'hookloom open --no-browser')
    .run(async (context, options: { browser: boolean }) => (await import('../open.ts')).open(context, options))

  program
    .command('check')
    .summary('check the configuration, the templates and the modules')
    .description('Checks the configuration, every template, and every module with its fixtures. Needs no gateway.')
    .option('--types', 'also report type errors of transforms, with the TypeScript that is installed')
    .addOption(jsonOption())
    .examples('hookloom check', 'hookloom check --types')
    .run(async (context, options: { types?: boolean }) => (await import('../check.ts')).check(context, options))

  program
    .command('doctor')
    .summary('check everything, with the store, the gateway, models and channels')
    .description(
      'Checks everything that "hookloom check" does, and the store, the gateway, the disk, the runners and the channels. ' +
        'Sends no message.',
    )
    .option('--ask', 'ask each model of an agent for one word, which costs a few tokens')
    .addOption(jsonOption())
    .examples('hookloom doctor', 'hookloom doctor --ask')
    .run(async (context, options: { ask?: boolean }) => (await import('../doctor.ts')).doctor(context, options))

  program
    .command('alert')
    .summary('send a test alert to the chat of hooks.alerts')
    .description(
      'Sends a test alert to the chat of hooks.alerts, in the same way as every alert, and prints which chat took it or why it failed. ' +
        'Needs a running gateway.',
    )
    .option('--test', 'send a test alert')
    .addOption(jsonOption())
    .examples('hookloom alert --test')
    .run(async (context, options: { test?: boolean }) => (await import('../alert.ts')).alert(context, options))

  program
    .command('schema')
    .summary('print the JSON Schema of hookloom.jsonc')
    .description('Prints the JSON Schema of hookloom.jsonc, for editors and other tools.')
    .examples('hookloom schema > hookloom.schema.json')
    .run(async (context) => (await import('../schema.ts')).schema(context))
}
