// The options and the help of `hookloom shadow`, `try`, `replay`, `bisect` and `record`.
import { InvalidArgumentError, Option } from 'commander'
import { maxReplays, defaultReplays } from '../../model/api/limits.ts'
import type { ReplayClass } from '../../model/api/replay.ts'
import type { RecordOptions } from '../record.ts'
import type { ReplayOptions } from '../replay.ts'
import {
  type CliCommand,
  collect,
  exampleId,
  jsonOption,
  parseSince,
  createIntegerParser,
  createWordParser,
} from '../terminal/usage.ts'
import { formatCommand } from '../../base/shell.ts'

export function addReplayCommands(program: CliCommand): void {
  program
    .command('shadow')
    .summary('show how the next version of a transform differs on live requests')
    .description(
      'Shows how the shadows of transforms differ from the live code, on the requests that came in since one of the two changed. Asks the ' +
        'running gateway. "hookloom publish <mapping>" puts a shadow in the place of its module.',
    )
    .argument('[mapping]', 'only the shadow of this mapping')
    .addOption(jsonOption())
    .examples('hookloom shadow', 'hookloom shadow pull-requests')
    .run(async (context, mappingId: string | undefined) =>
      (await import('../shadow.ts')).shadow(context, { mappingId }),
    )

  program
    .command('try')
    .summary('show what a template makes of requests that came in')
    .description(
      'Shows which kept requests a template and its conditions take, and what it says of each. Asks the running gateway. Has no effects. ' +
        '"retain" keeps requests.',
    )
    .argument('<template>', 'a message template, such as "{{issue.title}}"')
    .option(
      '--match <condition>',
      'event=push, payload.action=opened, headers.<name>=<value>, source=<sender>, or the "match" of a mapping as JSON; may be given several times',
      collect,
    )
    .addOption(createCountOption(20))
    .option(...hookOption)
    .addOption(jsonOption())
    .examples(
      `hookloom try '{{sender.login}}: {{issue.title}}' --match event=issues --match payload.action=opened`,
      `hookloom try '{{payload}}' --hook orders --match '{"payload": {"total": {"gte": 100}}}' --last 100`,
    )
    .run(async (context, template: string, options: { match?: string[]; last: number; hook?: string }) => {
      const { tryTemplate } = await import('../try.ts')
      return tryTemplate(context, { ...options, template, match: options.match ?? [] })
    })

  addRequestOptions(program.command('replay'), createCountOption(`${defaultReplays}; of a recording: all`))
    .summary('show what an edit would change, with requests that came in')
    .description(
      'Runs kept requests through the live code and through the files on disk, and shows what differs. Has no effects. ' +
        '"retain" keeps requests.',
    )
    .option('--from <dir>', 'the edit: a config directory, such as a checkout of another branch')
    .option(
      '--fail-on <changes>',
      'exit with code 70 if the replay finds one of these changes: changed (any change), or a list of now-skipped, now-refused, now-parks, now-works, another-mapping',
      parseChanges,
    )
    .option('--recording <file>', 'replay the requests of "hookloom record"; --config-dir is the base, --from the edit')
    .addOption(
      new Option('--format <format>', 'text, or markdown for a comment in a pull request')
        .argParser(createWordParser(['text', 'markdown']))
        .conflicts('json'),
    )
    .addOption(jsonOption())
    .examples(
      'hookloom replay',
      'hookloom replay --hook github --since 2h',
      'hookloom replay --from ../next --fail-on changed',
      'hookloom replay --recording requests.jsonl --config-dir base --from head --format markdown --fail-on now-parks,now-refused',
    )
    .run(async (context, options: ReplayOptions) => (await import('../replay.ts')).replay(context, options))

  program
    .command('bisect')
    .summary('find the save that changed the outcome of a delivery')
    .description(
      'Runs a kept request through the saves that went live since it came, and names the first one after which its outcome is another. ' +
        'Has no effects.',
    )
    .argument('<id>', 'delivery id, a unique prefix of one, or "last"')
    .addOption(jsonOption())
    .examples(formatCommand`hookloom bisect ${exampleId}`)
    .run(async (context, id: string) => (await import('../bisect.ts')).bisect(context, id))

  addRequestOptions(program.command('record'), createCountOption(defaultReplays))
    .summary('print requests that came in, without their secrets')
    .description(
      'Prints kept requests without their secrets, as a file for "hookloom replay --recording". Names, addresses and texts of people ' +
        'are still in it.',
    )
    .examples('hookloom record --last 500 > requests.jsonl')
    .run(async (context, options: RecordOptions) => (await import('../record.ts')).record(context, options))
}

const hookOption = ['--hook <name>', 'only requests of this hook'] as const

/** `defaultCount`: a text describes a default that the command chooses. */
function createCountOption(defaultCount: number | string): Option {
  const option = new Option('--last <n>', 'how many of the newest kept requests')
  option.argParser(createIntegerParser(1, maxReplays))
  return typeof defaultCount === 'number' ? option.default(defaultCount) : option.default(undefined, defaultCount)
}

/** Adds the options that choose kept requests. */
function addRequestOptions(command: CliCommand, count: Option): CliCommand {
  const since = new Option('--since <time>', 'only requests since then: 30m, 2h, 7d, or a time in UTC')
  return command
    .addOption(count)
    .option(...hookOption)
    .option('--source <sender>', 'only requests of this sender')
    .addOption(since.argParser(parseSince))
}

const changes = ['changed', 'now skipped', 'now refused', 'now parks', 'now works', 'another mapping'] as const

/** Parses the value of `--fail-on`: a list of classes, whose words are joined with "-" or a space. */
function parseChanges(text: string): Exclude<ReplayClass, 'same'>[] {
  return text.split(',').map((word) => {
    const plain = word.trim().replaceAll('-', ' ')
    const found = changes.find((known) => known === plain)
    if (found !== undefined) return found
    throw new InvalidArgumentError(`Expected some of ${changes.map((known) => known.replaceAll(' ', '-')).join(', ')}`)
  })
}
