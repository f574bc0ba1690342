// The options and the help of `hookloom retry`, `drop` and `recover`.
import { Problem } from '../../core/model/problem.ts'
import type { Target } from '../gateway/gateway.ts'
import type { RecoverOptions } from '../recover.ts'
import { type CliCommand, exampleId, idArgument, jsonOption, parseSince } from '../terminal/usage.ts'
import { formatCommand } from '../../base/shell.ts'

type TargetOptions = {
  readonly dead?: boolean
  readonly parked?: boolean
  readonly refused?: boolean
  readonly hook?: string
  readonly since?: number
  readonly dryRun?: boolean
}

/** Adds the argument and the options that say what `retry` and `drop` act on: an id, or all items of one kind. `order`: added to the help of
 * --parked and --refused. */
function addTargetOptions(command: CliCommand, { order = '' }: { order?: string } = {}): CliCommand {
  return command
    .argument('[id]', idArgument)
    .option('--parked', `all parked deliveries${order}`)
    .option('--refused', `all refused requests that are kept${order}`)
    .option('--hook <name>', 'with --parked and --refused: only those of this hook')
    .option('--since <time>', 'with --refused: only those that arrived since this time, such as 2h', parseSince)
}

/** Throws `usage-invalid` unless the command line names exactly one target, and only options of that target. `kinds`: the kinds that the
 * command accepts. */
function readTarget(id: string | undefined, options: TargetOptions, kinds: string): Target {
  const { dead = false, parked = false, refused = false, hook, since, dryRun = false } = options
  if ([id !== undefined, dead, parked, refused].filter(Boolean).length !== 1)
    throw new Problem('usage-invalid', `Give ${kinds}.`)
  if (hook !== undefined && !parked && !refused)
    throw new Problem('usage-invalid', '--hook is only for --parked and --refused.')
  if (since !== undefined && !refused) throw new Problem('usage-invalid', '--since is only for --refused.')
  if (dryRun && !refused) throw new Problem('usage-invalid', '--dry-run is only for --refused.')
  if (refused) return { kind: 'refused', hook, since, isDry: dryRun }
  if (parked) return { kind: 'parked', hook }
  return id === undefined ? { kind: 'dead' } : { kind: 'one', id }
}

const kept = '--parked for all parked deliveries, or --refused for all refused requests that are kept'

export function addRepeatCommands(program: CliCommand): void {
  addTargetOptions(
    program
      .command('retry')
      .summary('run parked deliveries, refused requests or dead runs again')
      .description(
        'Runs a parked delivery again, or the dead and failing runs of an accepted one, or all dead runs or parked deliveries. With --refused: verifies ' +
          'once more the refused requests that are kept, with the time of their arrival as the clock, and runs those whose proof is valid now.',
      ),
    { order: ', the oldest first' },
  )
    .option('--dead', 'all runs that failed for good, heartbeats too, the oldest first')
    .option('--dry-run', 'with --refused: say what would run, and change nothing')
    .addOption(jsonOption())
    .examples(
      formatCommand`hookloom retry ${exampleId}`,
      'hookloom retry --dead',
      'hookloom retry --parked --hook github',
      'hookloom retry --refused --dry-run',
    )
    .run(async (context, id: string | undefined, options: TargetOptions) => {
      const kinds = `the id of a delivery or a run, --dead for all runs that failed for good, ${kept}`
      return (await import('../retry.ts')).retry(context, readTarget(id, options, kinds))
    })

  addTargetOptions(
    program
      .command('drop')
      .summary('cancel what is left of a delivery')
      .description(
        'Cancels what is left of a delivery: a parked one, or its queued and dead runs. Or drops all parked deliveries, or deletes the refused ' +
          'requests that are kept.',
      ),
  )
    .addOption(jsonOption())
    .examples(
      formatCommand`hookloom drop ${exampleId}`,
      'hookloom drop --parked --hook github',
      'hookloom drop --refused',
    )
    .run(async (context, id: string | undefined, options: TargetOptions) =>
      (await import('../drop.ts')).drop(context, readTarget(id, options, `the id of a delivery, ${kept}`)),
    )

  program
    .command('recover')
    .summary('fetch what senders could not deliver')
    .description(
      'Asks the senders of mappings with "recover" for what they could not deliver, and runs what did not arrive. The running gateway ' +
        'does this by itself at its start, after the machine slept, and every hour.',
    )
    .argument('[name]', 'a hook or a sender; default: all')
    .option(
      '--since <time>',
      'take everything since then, such as 3d or a time; default: since the last time',
      parseSince,
    )
    .option('--dry-run', 'only count what did not arrive')
    .addOption(jsonOption())
    .examples('hookloom recover', 'hookloom recover github --since 3d --dry-run')
    .run(async (context, name: string | undefined, options: RecoverOptions) =>
      (await import('../recover.ts')).recover(context, name, options),
    )
}
