// The options and the help of `hookloom token` and `hookloom audit`.
import type { AuditOptions } from '../audit.ts'
import type { TokenOptions } from '../token.ts'
import { type CliCommand, jsonOption, limitOption, parseSince, createIntegerParser } from '../terminal/usage.ts'

export function addAccessCommands(program: CliCommand): void {
  program
    .command('audit')
    .summary('show who changed what, or check that nobody changed the log')
    .description(
      'Shows who changed what, with the outcome, the newest last. An act that takes effect has two entries: one before it begins, and one with its outcome. ' +
        'Each entry has the hash of the one before it; --verify checks all of them. Reads the store, with or without a running gateway.',
    )
    .option('--verify', 'check all entries, and name the first one that does not fit; the exit code is then 1')
    .option('--since <time>', 'only entries of this time or later, such as 7d or 2026-01-02T03:04:05Z', parseSince)
    .addOption(limitOption())
    .option('--before <number>', 'only entries with a lower number', createIntegerParser(1, Number.MAX_SAFE_INTEGER))
    .addOption(jsonOption())
    .examples('hookloom audit', 'hookloom audit --since 7d --json', 'hookloom audit --verify')
    .run(async (context, options: AuditOptions) => (await import('../audit.ts')).audit(context, options))
  const token = program
    .command('token')
    .summary('make, list or revoke tokens with few rights')
    .description(
      'Makes, lists or revokes tokens with few rights, such as one for a CI job that may send to one hook and see its own runs.',
    )
    .examples('hookloom token new ci --may send:deploy runs --expires 90d')
  token
    .command('new')
    .summary('make a token, and print it once')
    .description(
      'Makes a token and prints it once. The store keeps only its hash. All gateways on the store accept it within a second, without a restart. Needs a running gateway.',
    )
    .argument('<name>', 'name of the token, such as that of its holder')
    .requiredOption(
      '--may <right...>',
      'on the hook port: send:<hook>, where * stands for any text, and runs, for the runs that it starts; on the admin port: read, operate or admin',
    )
    .option('--expires <time>', 'a duration such as 90d, or a time such as 2027-01-31T12:00:00Z; without it, never')
    .addOption(jsonOption())
    .examples(
      'hookloom token new ci --may send:deploy runs --expires 90d',
      'hookloom token new grafana --may read --json',
    )
    .run(async (context, name: string, options: TokenOptions) =>
      (await import('../token.ts')).tokenNew(context, name, options),
    )
  token
    .command('list')
    .summary('list the tokens, without their values')
    .description(
      'Lists the tokens of the configuration and of the store, without their values. Needs a running gateway.',
    )
    .addOption(jsonOption())
    .examples('hookloom token list')
    .run(async (context) => (await import('../token.ts')).tokenList(context))
  token
    .command('revoke')
    .summary('end a token')
    .description('Ends a token of the store. The runs that it started continue. Needs a running gateway.')
    .argument('<name>', 'name of the token, as "hookloom token list" shows it')
    .addOption(jsonOption())
    .examples('hookloom token revoke ci')
    .run(async (context, name: string) => (await import('../token.ts')).tokenRevoke(context, name))
}
