// The command line of Hookloom as a function: it takes arguments, writes text, and returns an exit code.
import { Command, CommanderError } from 'commander'
import { exitCodes, toProblem } from '../core/model/problem.ts'
import { addAuthoringCommands } from './options/authoring.ts'
import { addGmailCommands } from './options/gmail.ts'
import { addServingCommands } from './options/serving.ts'
import { addStoredCommands } from './options/stored.ts'
import { readVersion, resolvePackagePath } from '../base/package.ts'
import { type CommandIo, createContext } from './terminal/context.ts'
import { describeFailure } from './terminal/print.ts'
import { CliCommand, findCommandName, toUsageProblem } from './terminal/usage.ts'

const about = 'Hookloom receives webhooks and turns them into agent actions.'

const firstSteps = `
First steps:
  hookloom dev                start a gateway with samples
  hookloom new greet          write a transform of your own
  hookloom add preset github  take the webhooks of a known sender
  hookloom list               see what came in; --dead: what failed;
                              --refused: what was turned away
  hookloom doctor             find what is wrong
`
const exitCodeHelp = `
"hookloom <command> --help" shows the options of a command, with examples.
Exit codes: 64 usage, 65 bad input, 69 unavailable, 70 broken code,
75 limited, 77 denied, 78 configuration.`

/**
 * Runs one command to its end and resolves with its exit code. Never rejects: a failure is a sentence for `writeError`. `start`, `dev`,
 * `list --follow`, `test --watch`, `bisect` and `gmail run` also listen for the signals of this process.
 */
export async function main(args: readonly string[], io: CommandIo): Promise<number> {
  let exitCode: number = exitCodes.ok
  const program = new CliCommand('hookloom', async (command, work) => {
    exitCode = await work(createContext(io, command.optsWithGlobals()))
  })
  addCommands(program, io)
  try {
    if (args.length > 0) await program.parseAsync(args, { from: 'user' })
    else io.writeOut(renderFirstDay())
    return exitCode
  } catch (error) {
    const problem = error instanceof CommanderError ? toUsageProblem(error, findCommandName(program, args)) : error
    if (problem === undefined) return exitCode
    io.writeError(`${describeFailure(problem)}\n`)
    return exitCodes[toProblem(problem).kind]
  }
}

/** What the program prints without arguments. */
function renderFirstDay(): string {
  return `${about}
${firstSteps}
"hookloom --help" lists all commands, "hookloom <command> --help" the options of one.
The pages begin at ${resolvePackagePath('README.md')}
`
}

/** Adds every command to the program. */
export function addCommands(program: CliCommand, { writeOut }: Pick<CommandIo, 'writeOut'>): void {
  program
    .description(about)
    .version(readVersion(), '--version', 'print the version')
    .option('--config-dir <dir>', 'the config directory (default: HOOKLOOM_HOME, else ~/.hookloom)')
    .helpOption('--help', 'show this help')
    .addHelpText('after', firstSteps + exitCodeHelp)
    .exitOverride()
    // `toUsageProblem` describes the error of commander
    .configureOutput({ writeOut, writeErr: () => {}, outputError: () => {} })
  addServingCommands(program)
  addAuthoringCommands(program)
  addStoredCommands(program)
  addGmailCommands(program)
  const help = new Command('help').argument('[command]').description('show the help of a command').helpOption(false)
  program.addHelpCommand(help.helpGroup('Other:'))
}
