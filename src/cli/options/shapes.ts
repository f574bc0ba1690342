// The options and the help of `hookloom types` and `hookloom shapes`.
import { type CliCommand, jsonOption, parseSince } from '../terminal/usage.ts'

export function addShapeCommands(program: CliCommand): void {
  program
    .command('types')
    .summary('write the types of payloads, learnt from requests')
    .description(
      'Writes the types of the payloads of a hook, or of all hooks, into hooks/transforms/payloads. They come from the requests that ' +
        'came in, the fixtures, and the samples of the senders.',
    )
    .argument('[hook]', 'only this hook')
    .option('--zod', 'also write schemas of Zod')
    .addOption(jsonOption())
    .examples('hookloom types', 'hookloom types github --zod')
    .run(async (context, hook: string | undefined, { zod = false }: { zod?: boolean }) =>
      (await import('../types.ts')).types(context, { hook, zod }),
    )

  program
    .command('shapes')
    .summary('list the events that came in, or what changed in their payloads')
    .description(
      'Lists the events that came in, with the number of their requests and fields. With --since: which events are new, and which ' +
        'fields and kinds of values are new or gone.',
    )
    .argument('[hook]', 'only this hook')
    .option('--since <time>', 'what changed since then: 30m, 2h, 7d, or a time in UTC', parseSince)
    .addOption(jsonOption())
    .examples('hookloom shapes', 'hookloom shapes github --since 7d')
    .run(async (context, hook: string | undefined, { since }: { since?: number }) =>
      (await import('../shapes.ts')).shapes(context, { hook, since }),
    )
}
