// The commands that show and change what a gateway stored: their options and their help.
import { type Command, Option } from 'commander'
import { deliveryStates } from '../../model/delivery.ts'
import { Problem } from '../../model/problem.ts'
import type { EventsOptions } from '../events.ts'
import type { ListOptions } from '../list.ts'
import type { DropOptions } from '../drop.ts'
import type { RetryOptions } from '../retry.ts'
import {
  type Act,
  idArgument,
  jsonOption,
  parseWhole,
  parseMoment,
  parseWord,
  renderExamples,
} from '../terminal/usage.ts'

const exampleId = '01a1fb45-0fdd-7713-8f98-02441594b06c'

const limitOption = () =>
  new Option('--limit <n>', 'the maximum number of rows; the newest are shown')
    .argParser(parseWhole(1, 10_000))
    .default(50)
const beforeMomentOption = (field: string) =>
  new Option('--before <time>', `only rows before this time: the "${field}" of the oldest row shown, in UTC`).argParser(
    parseMoment,
  )

export function addStoredCommands(program: Command, act: Act): void {
  addDeliveries(program, act)
  addStore(program, act)

  program
    .command('events')
    .summary('list the system events')
    .description('Lists the system events, pending and consumed, the newest last.')
    .addOption(limitOption())
    .addOption(beforeMomentOption('at'))
    .addOption(jsonOption())
    .addHelpText('after', renderExamples('hookloom events', 'hookloom events --before 2026-01-02T03:04:05.678Z'))
    .action(act(async (context, options: EventsOptions) => (await import('../events.ts')).events(context, options)))

  program
    .command('sessions')
    .summary('list the sessions, or show the transcript of one')
    .description('Lists the sessions, or shows the transcript of one.')
    .argument('[key]', 'session key')
    .addOption(limitOption())
    .addOption(beforeMomentOption('updatedAt'))
    .addOption(jsonOption())
    .addHelpText('after', renderExamples('hookloom sessions', 'hookloom sessions hook:inbox'))
    .action(
      act(async (context, key: string | undefined, options: { limit: number; before?: number }) =>
        (await import('../sessions.ts')).sessions(context, { key, limit: options.limit, before: options.before }),
      ),
    )
}

function addStore(program: Command, act: Act): void {
  program
    .commandsGroup('Other:')
    .command('store')
    .summary('copy the store to another engine')
    .description('Copies the store to another engine or another place.')
    .command('copy')
    .summary('copy everything into an empty store')
    .description(
      'Copies everything from the store of the configuration into an empty store: deliveries, jobs, events, sessions, transcripts and ' +
        'cursors, with their ids and their order. Stop every gateway that uses one of the stores first. A copy that fails leaves nothing.',
    )
    .requiredOption(
      '--to <place>',
      'the URL of a Postgres database, or a new file, relative to the config directory; ${NAME} reads .env',
    )
    .addOption(jsonOption())
    .addHelpText(
      'after',
      renderExamples("hookloom store copy --to '${DATABASE_URL}'", 'hookloom store copy --to state/copy.db'),
    )
    .action(
      act(async (context, options: { to: string }) => (await import('../store-copy.ts')).storeCopy(context, options)),
    )
}

function addDeliveries(program: Command, act: Act): void {
  program
    .commandsGroup('See and repeat what came in:')
    .command('list')
    .summary('list the deliveries')
    .description('Lists the deliveries and what became of them, the newest last.')
    .addOption(limitOption())
    .addOption(
      new Option('--state <state>', `only deliveries that are ${deliveryStates.join(', ')}`).argParser(
        parseWord(deliveryStates),
      ),
    )
    .addOption(
      new Option(
        '--before <id>',
        'only rows before this one: a delivery id; with --dead a run id, with --refused a request id',
      ),
    )
    .option('--hook <name>', 'only deliveries of this hook')
    .option('--source <name>', 'only deliveries of this sender')
    .option(
      '--search <text>',
      'only deliveries whose hook, sender, event or mapping contains this, or whose id begins with it',
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
    .addHelpText(
      'after',
      renderExamples(
        'hookloom list',
        'hookloom list --follow',
        'hookloom list --state parked --hook github',
        'hookloom list --refused',
      ),
    )
    .action(act(async (context, options: ListOptions) => (await import('../list.ts')).list(context, options)))

  program
    .command('show')
    .summary('show one delivery with its trace, jobs and steps')
    .description('Shows one delivery with its trace, jobs and steps, or how two deliveries differ.')
    .argument('<id>', idArgument)
    .argument('[other]', 'with --diff: the second delivery')
    .option('--diff', 'what differs between two deliveries: their requests, if both are kept, and what they became')
    .addOption(jsonOption())
    .addHelpText('after', renderExamples(`hookloom show ${exampleId}`, `hookloom show --diff ${exampleId} last`))
    .action(
      act(async (context, id: string, other: string | undefined, { diff }: { diff?: boolean }) => {
        if ((diff === true) !== (other !== undefined)) {
          throw new Problem('usage-invalid', 'show takes one id, or two ids with --diff.')
        }
        if (other === undefined) return (await import('../show.ts')).show(context, { id })
        return (await import('../show-diff.ts')).showDiff(context, [id, other])
      }),
    )

  program
    .command('retry')
    .summary('run parked deliveries or dead runs again')
    .description(
      'Runs a parked delivery again, or the dead runs of an accepted one, or all dead runs or parked deliveries.',
    )
    .argument('[id]', idArgument)
    .option('--dead', 'all runs that failed for good, heartbeats too, the oldest first')
    .option('--parked', 'all parked deliveries, the oldest first')
    .option('--hook <name>', 'with --parked: only the deliveries of this hook')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      renderExamples(`hookloom retry ${exampleId}`, 'hookloom retry --dead', 'hookloom retry --parked --hook github'),
    )
    .action(
      act(async (context, id: string | undefined, options: RetryOptions) =>
        (await import('../retry.ts')).retry(context, id, options),
      ),
    )

  program
    .command('drop')
    .summary('cancel what is left of a delivery')
    .description(
      'Cancels what is left of a delivery: a parked one, or its queued and dead runs. Or drops all parked deliveries.',
    )
    .argument('[id]', idArgument)
    .option('--parked', 'all parked deliveries')
    .option('--hook <name>', 'with --parked: only the deliveries of this hook')
    .addOption(jsonOption())
    .addHelpText('after', renderExamples(`hookloom drop ${exampleId}`, 'hookloom drop --parked --hook github'))
    .action(
      act(async (context, id: string | undefined, options: DropOptions) =>
        (await import('../drop.ts')).drop(context, id, options),
      ),
    )
}
