// The commands that write, try and test mappings and transforms: their options and their help.
import { Option } from 'commander'
import { maxAwaitSeconds } from '../../model/api/limits.ts'
import { Problem } from '../../core/model/problem.ts'
import type { ServiceKind } from '../add-service.ts'
import { type PluginKind, pluginKinds } from '../../model/plugin.ts'
import {
  type CliCommand,
  collect,
  idArgument,
  jsonOption,
  createIntegerParser,
  createWordParser,
} from '../terminal/usage.ts'
import { addAgentCommands } from './agents.ts'
import { addReplayCommands } from './replaying.ts'
import { addShapeCommands } from './shapes.ts'

/** Ten minutes: longer than most turns, shorter than most limits of CI jobs. */
const waitSeconds = 600

type SendFlags = { file?: string; header?: string[]; wait?: number }

const headerOption = () =>
  new Option('--header <name: value>', 'a request header; may be given several times').argParser(collect)

export function addAuthoringCommands(program: CliCommand): void {
  addWritingCommands(program)
  addCheckingCommands(program)
  addShapeCommands(program)
  addAgentCommands(program)
}

/** Adds the commands that write modules, fixtures and other files. */
function addWritingCommands(program: CliCommand): void {
  const add = program
    .commandsGroup('Write and try mappings:')
    .command('add')
    .summary('add a preset, a bundled transform or a service')
    .description('Adds a preset, a bundled transform, or the files of a service.')

  add
    .command('preset')
    .summary('add a mapping pack for one sender')
    .description('Adds a preset to hooks.presets and a new secret to .env, and prints what to set up at the sender.')
    .argument('<name>', 'name of the preset')
    .option('--secret-env <NAME>', 'the variable of the secret (default: <NAME>_WEBHOOK_SECRET)')
    .examples('hookloom add preset github')
    .run(async (context, name: string, options: { secretEnv?: string }) => {
      const { addPreset } = await import('../add.ts')
      return addPreset(context, { name, secretEnv: options.secretEnv })
    })

  add
    .command('transform')
    .summary('copy a bundled transform')
    .description('Copies a bundled transform and its fixtures into the transforms folder, and prints its mapping.')
    .argument('<name>', 'name of the transform')
    .examples('hookloom add transform github-pull-request')
    .run(async (context, name: string) => (await import('../add.ts')).addTransform(context, { name }))

  add
    .command('service')
    .summary('write what runs the gateway as a service')
    .description(
      'systemd: prints a hardened unit. The others write files into the config directory. docker: a Dockerfile, and this package. compose: the same, ' +
        'and a compose file with Postgres, two gateways and a load balancer. kubernetes: the same, a Dockerfile with the configuration, and the objects of a Deployment, ' +
        'or of a StatefulSet if the store is a file. Overwrites nothing that you edited.',
    )
    .requiredOption(
      '--kind <kind>',
      'systemd, docker, compose or kubernetes',
      createWordParser(['systemd', 'docker', 'compose', 'kubernetes']),
    )
    .examples('hookloom add service --kind systemd', 'hookloom add service --kind compose')
    .run(async (context, options: { kind: ServiceKind }) =>
      (await import('../add-service.ts')).addService(context, options),
    )

  const create = program
    .command('new')
    .summary('write a new transform, its first fixture and its mapping')
    .description('Writes a new transform, its first fixture and its mapping. Overwrites nothing.')
    .argument('<name>', 'name of the transform and of its hook')
    .option(
      '--from <source>',
      'the fixture: a file, - for standard input, the id of a delivery or of a refused request, "last", or a known sender',
    )
    .option('--event <name>', 'with a sender: an event or a sample of it')
    .examples(
      'hookloom new greet',
      'hookloom new orders --from order.json',
      'hookloom new orders --from last',
      'hookloom new releases --from github --event release',
    )
    .run(async (context, name: string, options: { from?: string; event?: string }) => {
      const { createTransform } = await import('../new.ts')
      return createTransform(context, { name, from: options.from, event: options.event })
    })

  create
    .command('plugin')
    .summary('write a new plugin and its test')
    .description('Writes a new plugin and its test, and adds it to plugins. Overwrites nothing.')
    .argument('<name>', 'name of the plugin')
    .addOption(
      new Option('--kind <kind>', 'channel, runner, sender, outbox or source')
        .argParser(createWordParser(pluginKinds))
        .default('channel'),
    )
    .examples('hookloom new plugin ntfy', 'hookloom new plugin harbour --kind sender')
    .run(async (context, name: string, { kind }: { kind: PluginKind }) =>
      (await import('../new-plugin.ts')).createPlugin(context, { name, kind }),
    )

  program
    .command('remove')
    .summary('undo "new" and "add"')
    .description(
      'Removes a transform with its fixtures, its types and its mapping, or a preset, or a plugin with its test. Removes nothing if a file was edited ' +
        'since "hookloom new" or "hookloom add" wrote it. Secrets in .env stay.',
    )
    .argument('<name>', 'name of the transform, preset or plugin')
    .option('--force', 'remove edited files too')
    .examples('hookloom remove greet', 'hookloom remove greet --force')
    .run(async (context, name: string, { force = false }: { force?: boolean }) =>
      (await import('../remove.ts')).remove(context, { name, isForced: force }),
    )

  program
    .command('capture')
    .summary('make a fixture from a stored delivery')
    .description('Makes a fixture from a delivery whose request is kept, without its secrets. "retain" keeps requests.')
    .argument('<id>', idArgument)
    .option('--name <name>', 'name of the fixture')
    .option('--module <module>', 'the module that gets the fixture (default: that of the mapping)')
    .addOption(jsonOption())
    .examples('hookloom capture 01a1fb45-0fdd-7713-8f98-02441594b06c --name opened')
    .run(async (context, id: string, options: { name?: string; module?: string }) => {
      const { capture } = await import('../capture.ts')
      return capture(context, { id, name: options.name, module: options.module })
    })
}

/** Adds the commands that try, send, verify, publish and test. */
function addCheckingCommands(program: CliCommand): void {
  program
    .command('run')
    .summary('show what a payload would become, without effects')
    .description('Shows which mapping takes a payload or a fixture, what it would become, and why. Has no effects.')
    .argument('<hook>', 'name of the hook')
    .argument('<file>', 'a payload, or a fixture {request: {headers, payload}}; - reads standard input')
    .addOption(headerOption())
    .option('--event <name>', 'the event type, instead of the one in the headers')
    .addOption(jsonOption())
    .examples('hookloom run github payload.json --header "x-github-event: push"')
    .run(async (context, hook: string, file: string, options: { header?: string[]; event?: string }) => {
      const { run } = await import('../run.ts')
      return run(context, { hook, file, headers: options.header ?? [], event: options.event })
    })

  addReplayCommands(program)

  program
    .command('publish')
    .summary('publish a save that waits, or a shadow')
    .description(
      'Publishes a save that waits because it changes recent deliveries: see hooks.transforms.hold. With a mapping: replaces the module of ' +
        'its transform with the shadow, and keeps the old code next to it.',
    )
    .argument('[mapping]', 'the mapping whose shadow is published')
    .addOption(jsonOption())
    .examples('hookloom publish', 'hookloom publish pull-requests')
    .run(async (context, mappingId: string | undefined) =>
      (await import('../publish.ts')).publish(context, { mappingId }),
    )

  program
    .command('send')
    .summary('post a payload or a sample to the running gateway')
    .description(
      'Posts a payload, a fixture or a sample of a preset to the running gateway. Signs it if its mapping asks for a ' +
        'signature.',
    )
    .argument('<hook>', 'name of the hook, or of a preset')
    .argument(
      '[what]',
      'a payload, or a fixture {request: {headers, payload}}; for a preset, one of its fixtures or events',
    )
    .option('--file <file>', 'the payload or the fixture; - reads standard input')
    .addOption(headerOption())
    .addOption(
      new Option('--wait [seconds]', 'wait for the end of its runs, for ten minutes by default; see "hookloom wait"')
        .argParser(createIntegerParser(0, 86_400))
        .preset(`${waitSeconds}`),
    )
    .addOption(jsonOption())
    .examples(
      'hookloom send greet payload.json',
      'hookloom send github pull_request',
      'hookloom send greet --file -',
      'hookloom send greet payload.json --wait=120',
    )
    .run(async (context, hook: string, what: string | undefined, { file, header = [], wait }: SendFlags) =>
      (await import('../send.ts')).send(context, { hook, what, file, headers: header, wait }),
    )

  program
    .command('wait')
    .summary('wait for the end of a run')
    .description(
      'Waits for the end of a run that the hook token started. The exit code is 0 if it is done, 70 if it ended in another way, 75 if it ' +
        'has not ended in time, and 69 if no gateway answers. If its mapping has verdicts, 0 is the first of them, 1 another one, and 70 none.',
    )
    .argument('<id>', 'id of a run, or of a delivery, which means all its runs')
    .option('--timeout <seconds>', 'how long to wait', createIntegerParser(0, 86_400), waitSeconds)
    .addOption(jsonOption())
    .examples('hookloom wait 01a1fb45-0ff5-7758-aed7-b1b0c25eeb26 --timeout 120')
    .run(async (context, id: string, options: { timeout: number }) =>
      (await import('../wait.ts')).wait(context, id, options),
    )

  program
    .command('await')
    .summary('wait for the next delivery of a hook with a session key')
    .description(
      'Waits for the next delivery of a hook whose run has this session key, from now on. The gateway keeps the wait: with the same --id, the command ' +
        'goes on after an interruption. The exit code is 0 if the delivery came, 75 if it did not come in time, and 69 if no gateway answers.',
    )
    .argument('<hook>', 'name of the hook')
    .requiredOption('--key <key>', 'session key of the run')
    .option('--id <id>', 'name of the wait, to ask for it again')
    .option('--timeout <seconds>', 'how long to wait', createIntegerParser(1, maxAwaitSeconds), maxAwaitSeconds)
    .addOption(jsonOption())
    .examples('hookloom await github --key hook:pr:42', 'hookloom await builds --key hook:build:7 --id deploy-7')
    .run(async (context, hook: string, { timeout, ...named }: { key: string; id?: string; timeout: number }) =>
      (await import('../await.ts')).awaitDelivery(context, { id: undefined, ...named, hook, withinSeconds: timeout }),
    )

  program
    .command('verify')
    .summary('show why a signed request is accepted or refused')
    .description('Shows why the signed mappings accept or refuse a request.')
    .addOption(
      new Option(
        '--explain <request>',
        'a file: a fixture, or {headers, body | payload, url}; of a running "hookloom dev": a refused request’s id or "last"',
      ).conflicts('arm'),
    )
    .option('--mapping <id>', 'ask only this mapping')
    .option('--arm <id>', 'let this mapping accept the secret that its sender sends, for ten minutes')
    .addOption(jsonOption())
    .examples('hookloom verify --explain request.json', 'hookloom verify --explain last', 'hookloom verify --arm asana')
    .run(async (context, options: { explain?: string; mapping?: string; arm?: string }) => {
      const { arm, explainProofs } = await import('../verify.ts')
      if (options.arm !== undefined) return arm(context, { mappingId: options.arm })
      if (options.explain !== undefined) {
        return explainProofs(context, { file: options.explain, mappingId: options.mapping })
      }
      throw new Problem('usage-invalid', 'verify needs --explain <file or request id> or --arm <mapping id>.')
    })

  program
    .command('test')
    .summary('run the fixtures of the transforms')
    .description('Runs the fixtures of the transforms, as the gateway does before it takes new code.')
    .argument('[module...]', 'only these modules')
    .option('--watch', 'run again after each save')
    .option('-u, --update', 'write the current results as the expected ones')
    .addOption(
      new Option('--coverage', 'show which code neither a fixture nor a kept request reaches').conflicts('watch'),
    )
    .addOption(jsonOption())
    .examples('hookloom test', 'hookloom test greet --watch', 'hookloom test -u greet', 'hookloom test --coverage')
    .run(async (context, modules: string[], options: { watch?: boolean; update?: boolean; coverage?: boolean }) => {
      const { test } = await import('../test.ts')
      return test(context, {
        modules,
        watch: options.watch === true,
        update: options.update === true,
        coverage: options.coverage === true,
      })
    })
}
