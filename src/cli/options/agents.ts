// The options and the help of `hookloom mcp` and `hookloom skill`.
import { type CliCommand } from '../terminal/usage.ts'

export function addAgentCommands(program: CliCommand): void {
  program
    .command('mcp')
    .summary('serve tools for an agent that writes hooks')
    .description(
      'Serves the Model Context Protocol on standard input and output: tools that show what came in, and check, test and replay code. ' +
        'With --write, tools also write transforms, mappings and fixtures, and publish them: such an agent can run code as your user.',
    )
    .option('--write', 'also serve the tools that change something')
    .examples('hookloom mcp', 'hookloom mcp --write --config-dir /etc/hookloom')
    .run(async (context, options: { write?: boolean }) => (await import('../mcp.ts')).mcp(context, options))

  program
    .command('skill')
    .summary('print the guide for an agent that writes hooks')
    .description('Prints the guide for an agent that writes hooks, with a shell or with the tools of "hookloom mcp".')
    .examples('hookloom skill', 'hookloom skill > .claude/skills/hookloom/SKILL.md')
    .run(async (context) => (await import('../skill.ts')).skill(context))
}
