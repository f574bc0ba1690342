#!/usr/bin/env node
// The commands, one below the other. Each is loaded when it is called, and ends with an exit code or a Problem.
import { Command, CommanderError, Option } from 'commander'
import { deliveryStates } from '../model/delivery.ts'
import { exitCodes, Problem, toProblem } from '../model/problem.ts'
import { createContext } from './terminal/context.ts'
import type { EventsOptions } from './events.ts'
import type { ListOptions } from './list.ts'
import { type Act, addGmailCommands } from './gmail.ts'
import { readVersion } from './scaffold/package.ts'
import { toFailure } from './terminal/print.ts'
import { collect, parseCount, parseMoment, parseWord, toAsked, toUsageProblem } from './terminal/usage.ts'

let exitCode: number = exitCodes.ok

/** The exit code is kept. */
const act: Act = (work) =>
  async function (...given) {
    exitCode = await work(createContext(this.optsWithGlobals()), ...given)
  }

const json = () => new Option('--json', 'one JSON object a line')
const limit = () => new Option('--limit <n>', 'how many, the newest').argParser(parseCount).default(50)
const before = (what: string) => new Option('--before <id>', `only those older than this one: ${what}`)
const beforeMoment = (field: string) =>
  new Option(
    '--before <time>',
    `only those older than this time: the "${field}" of the oldest one shown, in UTC`,
  ).argParser(parseMoment)
const header = () =>
  new Option('--header <name: value>', 'a request header, may stand several times').argParser(collect)

const firstSteps = `
First steps:
  hookloom dev                a gateway with samples, and a curl line that works
  hookloom new greet          a transform of your own
  hookloom add preset github  a sender, with its secret and what to click there
  hookloom list               what came in; --dead: what failed; --refused: who
                              was turned away
  hookloom doctor             what is weak or broken

"hookloom <command> --help" lists the flags of one. Exit codes: 64 usage,
65 bad input, 69 unavailable, 70 broken code, 75 limited, 77 denied,
78 configuration.`

const program = new Command('hookloom')
  .description('Receives any webhook, and turns it durably into an agent action.')
  .version(readVersion(), '--version')
  .option('--config-dir <dir>', 'where the configuration lies (HOOKLOOM_HOME, ~/.hookloom)')
  .helpOption('--help', 'what there is')
  .addHelpText('after', firstSteps)
  .exitOverride()
  .configureOutput({ writeErr: () => {}, outputError: () => {} })

program
  .command('init')
  .description('make a config directory; nothing is overwritten')
  .action(act(async (context) => (await import('./init.ts')).init(context)))

program
  .command('dev')
  .description('make the config directory if need be, serve, and show every problem')
  .action(act(async (context) => (await import('./dev.ts')).dev(context)))

program
  .command('start')
  .description('serve, with JSON log lines')
  .action(act(async (context) => (await import('./start.ts')).start(context)))

program
  .command('check')
  .description('the configuration, every template, every module and its fixtures')
  .addOption(json())
  .action(act(async (context) => (await import('./check.ts')).check(context)))

program
  .command('run')
  .description('dry run: what a payload or a fixture would become, and why')
  .argument('<hook>', 'name of the hook')
  .argument('<file>', 'payload, or fixture {request: {headers, payload}}')
  .addOption(header())
  .option('--event <name>', 'the event type, in place of the one that the headers give')
  .addOption(json())
  .action(
    act(async (context, hook: string, file: string, options: { header?: string[]; event?: string }) => {
      const { run } = await import('./run.ts')
      return run(context, { hook, file, headers: options.header ?? [], event: options.event })
    }),
  )

program
  .command('send')
  .description('post a payload to the running gateway, signed where its mapping asks for it, or a sample of a preset')
  .argument('<hook>', 'name of the hook, or of a preset')
  .argument('[what]', 'payload, or fixture {request: {headers, payload}}; of a preset, a fixture’s name or an event')
  .addOption(new Option('--file <file>', 'the payload, or the fixture, in any case; - is standard input'))
  .addOption(header())
  .addOption(json())
  .action(
    act(async (context, hook: string, what: string | undefined, options: { file?: string; header?: string[] }) => {
      const { send } = await import('./send.ts')
      return send(context, { hook, what, file: options.file, headers: options.header ?? [] })
    }),
  )

program
  .command('verify')
  .description('why the signed mappings take a request or refuse it')
  .addOption(new Option('--explain <file>', 'a fixture, or {headers, body | payload, url}').conflicts('arm'))
  .option('--mapping <id>', 'ask this mapping alone')
  .addOption(new Option('--arm <id>', 'let this mapping take the secret that its sender hands over, for ten minutes'))
  .addOption(json())
  .action(
    act(async (context, options: { explain?: string; mapping?: string; arm?: string }) => {
      const { arm, explainProofs } = await import('./verify.ts')
      if (options.arm !== undefined) return arm(context, { mappingId: options.arm })
      if (options.explain !== undefined) {
        return explainProofs(context, { file: options.explain, mappingId: options.mapping })
      }
      throw new Problem('usage-invalid', 'verify takes --explain <file> or --arm <mapping id>.')
    }),
  )

const add = program.command('add').description('a bundled preset or transform')

add
  .command('preset')
  .description('put a preset into hooks.presets, with a secret in .env')
  .argument('<name>', 'name of the preset')
  .option('--secret-env <NAME>', 'the variable of its secret')
  .action(
    act(async (context, name: string, options: { secretEnv?: string }) => {
      const { addPreset } = await import('./add.ts')
      return addPreset(context, { name, secretEnv: options.secretEnv })
    }),
  )

add
  .command('transform')
  .description('copy a transform and its fixtures into the transforms root')
  .argument('<name>', 'name of the transform')
  .action(act(async (context, name: string) => (await import('./add.ts')).addTransform(context, { name })))

program
  .command('new')
  .description('a transform of your own, with its first fixture and its mapping')
  .argument('<name>', 'name of the transform and of its hook')
  .option('--from <sender>', 'take the fixture from a bundled request of this sender')
  .action(
    act(async (context, name: string, options: { from?: string }) => {
      const { createTransform } = await import('./new.ts')
      return createTransform(context, { name, from: options.from })
    }),
  )

program
  .command('test')
  .description('run the fixtures of the transforms')
  .argument('[module...]', 'these modules alone')
  .option('--watch', 'run again what each save touches')
  .option('-u, --update', 'write what the code does now as what is expected')
  .addOption(json())
  .action(
    act(async (context, modules: string[], options: { watch?: boolean; update?: boolean }) => {
      const { test } = await import('./test.ts')
      return test(context, { modules, watch: options.watch === true, update: options.update === true })
    }),
  )

program
  .command('capture')
  .description('make a fixture of a delivery that was kept, without its secrets')
  .argument('<id>', 'delivery id or run id')
  .option('--name <name>', 'name of the fixture')
  .option('--module <module>', 'whose fixture it is, in place of the mapping’s transform')
  .addOption(json())
  .action(
    act(async (context, id: string, options: { name?: string; module?: string }) => {
      const { capture } = await import('./capture.ts')
      return capture(context, { id, name: options.name, module: options.module })
    }),
  )

program
  .command('list')
  .description('deliveries, newest last')
  .addOption(limit())
  .addOption(
    new Option('--state <state>', `only those that are ${deliveryStates.join(', ')}`).argParser(
      parseWord(deliveryStates),
    ),
  )
  .addOption(before('a delivery id; with --dead a run id, with --refused a request id'))
  .addOption(new Option('--dead', 'runs that failed for good, and why').conflicts('state'))
  .addOption(new Option('--refused', 'what the running gateway refused').conflicts(['state', 'dead']))
  .addOption(json())
  .action(act(async (context, options: ListOptions) => (await import('./list.ts')).list(context, options)))

program
  .command('show')
  .description('one delivery: its trace, jobs and steps')
  .argument('<id>', 'delivery id or run id')
  .addOption(json())
  .action(act(async (context, id: string) => (await import('./show.ts')).show(context, { id })))

program
  .command('retry')
  .description('run a parked delivery again, or the dead jobs of an accepted one, or of all')
  .argument('[id]', 'delivery id or run id')
  .option('--dead', 'all runs that failed for good, oldest first, heartbeats too')
  .addOption(json())
  .action(
    act(async (context, id: string | undefined, options: { dead?: boolean }) =>
      (await import('./retry.ts')).retry(context, id, options),
    ),
  )

program
  .command('drop')
  .description('end what waits of a delivery')
  .argument('<id>', 'delivery id or run id')
  .addOption(json())
  .action(act(async (context, id: string) => (await import('./drop.ts')).drop(context, { id })))

program
  .command('events')
  .description('system events, pending and consumed')
  .addOption(limit())
  .addOption(beforeMoment('at'))
  .addOption(json())
  .action(act(async (context, options: EventsOptions) => (await import('./events.ts')).events(context, options)))

program
  .command('sessions')
  .description('sessions, or the transcript of one key')
  .argument('[key]', 'session key')
  .addOption(limit())
  .addOption(beforeMoment('updatedAt'))
  .addOption(json())
  .action(
    act(async (context, key: string | undefined, options: { limit: number; before?: number }) =>
      (await import('./sessions.ts')).sessions(context, { key, limit: options.limit, before: options.before }),
    ),
  )

addGmailCommands(program, act)

program
  .command('doctor')
  .description('all that check looks at, and the store, the gateway, the runners, the channels')
  .addOption(json())
  .action(act(async (context) => (await import('./doctor.ts')).doctor(context)))

program
  .command('schema')
  .description('the JSON Schema of hookloom.jsonc')
  .action(act(async (context) => (await import('./schema.ts')).schema(context)))

// `hookloom list | head`: nobody reads on, and that is no failure
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? exitCodes.ok : exitCodes.broken)
})

try {
  if (process.argv.length > 2) await program.parseAsync()
  else program.outputHelp()
} catch (error) {
  const problem =
    error instanceof CommanderError ? toUsageProblem(error, toAsked(program, process.argv.slice(2))) : error
  if (problem !== undefined) {
    process.stderr.write(`${toFailure(problem)}\n`)
    exitCode = exitCodes[toProblem(problem).kind]
  }
}
// a command that failed may leave a thread or a socket behind
process.stdout.write('', () => process.exit(exitCode))
