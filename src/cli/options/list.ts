// The options and the help of `hookloom list`.
import { Option } from 'commander'
import { deliveryStates } from '../../core/model/delivery.ts'
import type { ListOptions } from '../list.ts'
import { type CliCommand, jsonOption, limitOption, parseSince, createWordParser } from '../terminal/usage.ts'

export function addListCommand(program: CliCommand): void {
  program
    .commandsGroup('See and repeat what came in:')
    .command('list')
    .summary('list the deliveries')
    .description('Lists the deliveries and what became of them, the newest last.')
    .addOption(limitOption())
    .option(
      '--state <state>',
      `only deliveries that are ${deliveryStates.join(', ')}`,
      createWordParser(deliveryStates),
    )
    .option(
      '--before <id>',
      'only rows before this one: a delivery id; with --dead a run id, with --refused a request id',
    )
    .addOption(
      new Option('--hook <name>', 'only deliveries, or with --refused requests, of this hook').conflicts('dead'),
    )
    .addOption(new Option('--source <name>', 'only deliveries of this sender').conflicts(['dead', 'refused']))
    .addOption(
      new Option(
        '--search <text>',
        'only deliveries with this text in their hook, sender, event, mapping, kept payload, message or reply, or whose id begins with it',
      ).conflicts(['dead', 'refused']),
    )
    .addOption(
      new Option('--since <time>', 'only deliveries since then: 30m, 2h, 7d, or a time in UTC')
        .argParser(parseSince)
        .conflicts(['dead', 'refused']),
    )
    .addOption(
      new Option('--until <time>', 'only deliveries before then: 30m, 2h, 7d ago, or a time in UTC')
        .argParser(parseSince)
        .conflicts(['dead', 'refused', 'follow']),
    )
    .addOption(
      new Option('--follow', 'then print each change until Ctrl-C; needs a running gateway').conflicts([
        'dead',
        'refused',
        'before',
      ]),
    )
    .addOption(new Option('--dead', 'the runs that failed for good, and why').conflicts('state'))
    .addOption(
      new Option('--refused', 'the requests that the running gateway refused, and why').conflicts(['state', 'dead']),
    )
    .addOption(jsonOption())
    .examples(
      'hookloom list',
      'hookloom list --follow',
      'hookloom list --state parked --hook github',
      'hookloom list --search o-13 --since 2d --until 1d',
      'hookloom list --refused',
    )
    .run(async (context, options: ListOptions) => (await import('../list.ts')).list(context, options))
}
