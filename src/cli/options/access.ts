// The options and the help of `hookloom token`.
import type { Command } from 'commander'
import type { TokenOptions } from '../token.ts'
import { type Act, jsonOption, renderExamples } from '../terminal/usage.ts'

export function addAccessCommands(program: Command, act: Act): void {
  const token = program
    .command('token')
    .summary('make, list or revoke tokens with few rights')
    .description(
      'Makes, lists or revokes tokens with few rights, such as one for a CI job that may send to one hook and see its own runs.',
    )
    .addHelpText('after', renderExamples('hookloom token new ci --may send:deploy runs --expires 90d'))
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
    .addHelpText(
      'after',
      renderExamples(
        'hookloom token new ci --may send:deploy runs --expires 90d',
        'hookloom token new grafana --may read --json',
      ),
    )
    .action(
      act(async (context, name: string, options: TokenOptions) =>
        (await import('../token.ts')).tokenNew(context, name, options),
      ),
    )
  token
    .command('list')
    .summary('list the tokens, without their values')
    .description(
      'Lists the tokens of the configuration and of the store, without their values. Needs a running gateway.',
    )
    .addOption(jsonOption())
    .addHelpText('after', renderExamples('hookloom token list'))
    .action(act(async (context) => (await import('../token.ts')).tokenList(context)))
  token
    .command('revoke')
    .summary('end a token')
    .description('Ends a token of the store. The runs that it started continue. Needs a running gateway.')
    .argument('<name>', 'name of the token, as "hookloom token list" shows it')
    .addOption(jsonOption())
    .addHelpText('after', renderExamples('hookloom token revoke ci'))
    .action(act(async (context, name: string) => (await import('../token.ts')).tokenRevoke(context, name)))
}
