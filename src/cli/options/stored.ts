// The commands that show and change the contents of the store: their options and their help.
import { Option } from 'commander'
import { Problem } from '../../core/model/problem.ts'
import { addAccessCommands } from './access.ts'
import { addBudgetCommands, addStateCommands } from './budgets.ts'
import { addListCommand } from './list.ts'
import { addRepeatCommands } from './repeats.ts'
import type { EventsOptions } from '../events.ts'
import type { PauseOptions } from '../pause.ts'
import type { TrimOptions } from '../trim.ts'
import {
  type CliCommand,
  createIntegerParser,
  exampleId,
  idArgument,
  jsonOption,
  limitOption,
  parseMoment,
} from '../terminal/usage.ts'
import { formatCommand } from '../../base/shell.ts'

/** The help of the argument that says what to pause. */
const pausable =
  'the id of a mapping or an agent, the name of a limit or a source, or "all"; with "mapping:", "agent:", "limit:", "source:" or "session:" before it if several have the name'

const beforeMomentOption = (field: string) =>
  new Option('--before <time>', `only rows before this time: the "${field}" of the oldest row shown, in UTC`).argParser(
    parseMoment,
  )

export function addStoredCommands(program: CliCommand): void {
  addDeliveryCommands(program)
  addStoreCommands(program)
  addBudgetCommands(program)
  addStateCommands(program)
  addAccessCommands(program)

  program
    .command('events')
    .summary('list the system events')
    .description('Lists the system events, pending and consumed, the newest last.')
    .addOption(limitOption())
    .addOption(beforeMomentOption('at'))
    .addOption(jsonOption())
    .examples('hookloom events', 'hookloom events --before 2026-01-02T03:04:05.678Z')
    .run(async (context, options: EventsOptions) => (await import('../events.ts')).events(context, options))

  const sessions = program
    .command('sessions')
    .summary('list the sessions, show the transcript of one, or shorten it')
    .description('Lists the sessions, or shows the transcript of one.')
    .argument('[key]', 'session key')
    .addOption(limitOption())
    .addOption(beforeMomentOption('updatedAt'))
    .addOption(jsonOption())
    .examples('hookloom sessions', 'hookloom sessions hook:inbox', 'hookloom sessions clear main')
    .run(async (context, key: string | undefined, options: { limit: number; before?: number }) =>
      (await import('../sessions.ts')).sessions(context, { key, limit: options.limit, before: options.before }),
    )
  const addTrim = (name: 'clear' | 'trim', what: string) =>
    sessions
      .command(name)
      .summary(what)
      .argument('<key>', 'session key')
      .option('--agent <id>', 'the agent of the session, if it is not the default agent')
      .addOption(jsonOption())
      .examples(formatCommand`hookloom sessions ${name} main`)
  addTrim('clear', 'delete the messages of a session')
    .description('Deletes the messages of a session: its next turn begins without a history. Events that wait stay.')
    .run(async (context, key: string, options: { agent?: string }) =>
      (await import('../trim.ts')).trim(context, { key, keep: 0, ...options }),
    )
  addTrim('trim', 'delete the older messages of a session')
    .description('Deletes all messages of a session but the newest exchanges. An exchange is a prompt with its reply.')
    .option('--keep <n>', 'the number of exchanges that stay', createIntegerParser(0, 999_999), 10)
    .run(async (context, key: string, options: TrimOptions) =>
      (await import('../trim.ts')).trim(context, { key, ...options }),
    )
}

function addStoreCommands(program: CliCommand): void {
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
    .examples("hookloom store copy --to '${DATABASE_URL}'", 'hookloom store copy --to state/copy.db')
    .run(async (context, options: { to: string }) => (await import('../store-copy.ts')).storeCopy(context, options))
}

function addDeliveryCommands(program: CliCommand): void {
  addListCommand(program)
  program
    .command('show')
    .summary('show one delivery with its trace, jobs and steps')
    .description('Shows one delivery with its trace, jobs and steps, or how two deliveries differ.')
    .argument('<id>', idArgument)
    .argument('[other]', 'with --diff: the second delivery')
    .option('--diff', 'what differs between two deliveries: their requests, if both are kept, and what they became')
    .addOption(jsonOption())
    .examples(formatCommand`hookloom show ${exampleId}`, formatCommand`hookloom show --diff ${exampleId} last`)
    .run(async (context, id: string, other: string | undefined, { diff }: { diff?: boolean }) => {
      if ((diff === true) !== (other !== undefined)) {
        throw new Problem('usage-invalid', 'show takes one id, or two ids with --diff.')
      }
      if (other === undefined) return (await import('../show.ts')).show(context, { id })
      return (await import('../show-diff.ts')).showDiff(context, [id, other])
    })

  addRepeatCommands(program)
  addPauseCommands(program)
}

function addPauseCommands(program: CliCommand): void {
  program
    .command('pause')
    .summary('accept requests, and let their runs wait')
    .description(
      'Lets the runs of a mapping, an agent, a source, a limit, a session or all wait until "hookloom resume". Requests are accepted and kept. Runs that have begun continue. Without an argument, it lists what is paused. It works for all gateways on the store, and after a restart.',
    )
    .argument('[what]', pausable)
    .option('--until <time>', 'a duration such as 2h, or a time such as 2026-01-02T03:04:05Z; then it ends by itself')
    .option('--reason <text>', 'why, for everybody who asks why a run waits')
    .addOption(jsonOption())
    .examples(
      'hookloom pause github --until 2h --reason "The repository moves."',
      'hookloom pause all',
      'hookloom pause',
    )
    .run(async (context, what: string | undefined, options: PauseOptions) =>
      (await import('../pause.ts')).pause(context, what, options),
    )

  program
    .command('resume')
    .summary('let paused runs start')
    .description('Ends a pause. The runs that waited start in their order, as fast as their limits allow.')
    .argument('<what>', `${pausable}, as "hookloom pause" lists it`)
    .option('--reason <text>', 'why')
    .addOption(jsonOption())
    .examples('hookloom resume github', 'hookloom resume agent:ops')
    .run(async (context, what: string, options: { reason?: string }) =>
      (await import('../pause.ts')).resume(context, what, options),
    )

  program
    .command('cancel')
    .summary('end runs that wait or run')
    .description(
      'Ends a run that waits or runs, those of a delivery, or all of a session or of a key of a flow. A turn that runs is stopped, and nothing of it is posted from then on. What was posted stays.',
    )
    .argument('<id|key>', `${idArgument}; or a session key, or a key of a flow`)
    .option('--reason <text>', 'why')
    .addOption(jsonOption())
    .examples(formatCommand`hookloom cancel ${exampleId}`, 'hookloom cancel hook:pr:17')
    .run(async (context, given: string, options: { reason?: string }) =>
      (await import('../cancel.ts')).cancel(context, given, options),
    )
}
