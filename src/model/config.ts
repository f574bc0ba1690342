// The keys of the configuration file. Unknown keys are errors. The descriptions become the JSON Schema for editors and the table of the page.
import { isPostgresUrl } from '../base/postgres-url.ts'
import { trimSlashes } from '../base/text.ts'
import { z } from 'zod'
import { ChannelName } from './action.ts'
import { AgentsConfig, ModelsConfig, RunnersConfig } from './agents-config.ts'
import { ChannelsConfig } from './channels-config.ts'
import { GmailConfig } from './gmail-config.ts'
import { logLevels } from './log.ts'
import { Mapping, Retain } from './mapping.ts'
import { filePath, filled, network } from './values.ts'

const port = z.int().min(0).max(65_535)
const milliseconds = z.int().positive()

/** The prefix in its normal form: with a slash at the beginning and none at the end. */
export function toHooksPath(path: string): string {
  return `/${trimSlashes(path.trim())}`
}

function isHooksPath(path: string): boolean {
  const normal = toHooksPath(path)
  return (
    normal !== '/' && /^(\/[A-Za-z0-9._~-]+)+$/.test(normal) && !normal.split('/').some((part) => /^\.+$/.test(part))
  )
}

const PresetEntry = z.union([
  filled,
  z.looseObject({ name: filled.describe('Name of the preset. The other keys of the entry are its options.') }),
])

export const HooksConfig = z.strictObject({
  enabled: z
    .boolean()
    .default(false)
    .describe('Turns the hook endpoints on. If it is true, `hooks.token` or `hooks.tokens` is required.'),
  token: filled.optional().describe('The token that callers send. It must differ from `gateway.token`.'),
  tokens: z
    .array(filled)
    .min(1)
    .max(2)
    .optional()
    .describe(
      'Two valid tokens, in place of `token`, while you change one for the other. Commands send the first one.',
    ),
  path: z
    .string()
    .default('/hooks')
    .refine(isHooksPath, 'must be a path such as /hooks, and not /')
    .transform(toHooksPath)
    .describe('Path before the hook names. Change it if this path is taken behind your proxy.'),
  allowedAgentIds: z
    .array(filled)
    .optional()
    .describe(
      'Agents that a request, mapping or transform may name. Without the key, or with "*": any agent. []: none.',
    ),
  defaultSessionKey: filled
    .optional()
    .describe('Session key of runs that name none. Without it, each such run has a new key.'),
  allowRequestSessionKey: z
    .boolean()
    .default(false)
    .describe(
      'Whether a request may choose its session with `sessionKey`, and continue it with `sessionMode`. Turn it on only with `allowedSessionKeyPrefixes`.',
    ),
  allowedSessionKeyPrefixes: z
    .array(filled)
    .optional()
    .describe(
      'Every session key must begin with one of these, such as "hook:", in the same case. Set it to keep hooks out of other sessions. Only a mapping may name "main" without an entry.',
    ),
  presets: z
    .array(PresetEntry)
    .default([])
    .describe('Mapping packs, by name or as {name, …options}. Their mappings come after `hooks.mappings`.'),
  mappings: z
    .array(Mapping)
    .default([])
    .describe('The rules that turn requests into actions. The first mapping that matches takes the request.'),
  transformsDir: filePath
    .optional()
    .describe(
      'Folder with the transform modules: hooks/transforms, which is the default, or a folder inside it. "team" and "hooks/transforms/team" are the same folder.',
    ),
  gmail: GmailConfig.optional().describe('The gmail preset, and the mailbox that the gateway watches.'),
  onTransformError: z
    .enum(['park', 'reject'])
    .default('park')
    .describe(
      'What happens when a transform fails. park: the answer is 200 and the delivery is kept. reject: the answer is 500 and nothing is kept.',
    ),
  alerts: z
    .strictObject({
      channel: ChannelName.describe('Channel of the alerts.'),
      to: filled.optional().describe('Recipient of the alerts. Without it, the recipient of the channel’s section.'),
    })
    .optional()
    .describe(
      'Where messages about dead jobs and parked deliveries go, at most one for each cause and hour. Set it to hear of failures.',
    ),
  retain: Retain.optional().describe(
    'Requests of each mapping that are kept when they are done: a number from 1 to 1000, true for all, false for none. Without it, none; `hookloom dev` keeps 100. Set it to see with `hookloom replay` what an edit changes.',
  ),
  answerWithinMs: milliseconds
    .default(800)
    .describe(
      'Milliseconds. If a transform needs longer, the sender gets 200 with status pending and the transform goes on. Keep it below the time limit of your senders.',
    ),
  transforms: z
    .strictObject({
      timeoutMs: milliseconds
        .default(10_000)
        .describe(
          'Milliseconds. A transform that runs longer has failed. Increase it for code that waits for slow services.',
        ),
      memoryMb: z
        .int()
        .min(16)
        .max(4096)
        .default(128)
        .describe('Megabytes of memory of one worker, buffers included. A transform that needs more has failed.'),
      workers: z
        .int()
        .min(1)
        .max(64)
        .default(2)
        .describe(
          'Number of threads that run transforms. One more thread waits as a spare. Increase it if transforms wait for each other.',
        ),
      drain: z
        .enum(['auto', 'ask'])
        .default('auto')
        .describe(
          'What happens to parked deliveries when their transform works again. auto: they run. ask: they wait for `hookloom retry --parked`.',
        ),
      hold: z
        .boolean()
        .default(false)
        .describe(
          'Whether a save that would change one of the newest kept deliveries waits for `hookloom publish`. It needs requests that `hooks.retain` keeps.',
        ),
      env: z
        .array(filled)
        .default([])
        .describe(
          'Names of the environment variables that are passed on to the `process.env` of transforms. It hides no others: code runs with the rights of the gateway.',
        ),
    })
    .prefault({})
    .describe('Limits of transforms.'),
})
export type HooksConfig = z.infer<typeof HooksConfig>

/** The valid hook tokens; commands send the first one. */
export function toHookTokens({ token, tokens }: Pick<HooksConfig, 'token' | 'tokens'>): readonly string[] {
  return tokens ?? (token === undefined ? [] : [token])
}

export const Config = z.strictObject({
  $schema: z
    .string()
    .optional()
    .describe('File or URL of the JSON Schema, for completion and help in editors. `hookloom schema` prints it.'),
  server: z
    .strictObject({
      host: filled
        .default('127.0.0.1')
        .describe('IP address or host name of the hook endpoints. Change it only if your proxy is on another machine.'),
      port: port.default(8790).describe('Port of the hook endpoints. 0 takes any free port.'),
      adminPort: port
        .default(8791)
        .describe('Port of health pages, metrics and /api, always on loopback. 0 takes any free port.'),
      trustedProxies: z
        .array(network)
        .default([])
        .describe(
          'IP addresses or CIDRs of your proxies. Set it behind a proxy: only from these is X-Forwarded-For believed.',
        ),
      maxBodyBytes: z
        .int()
        .positive()
        .default(262_144)
        .describe('Bytes. A larger body is refused, also if it is larger only after decompression.'),
      bodyTimeoutMs: milliseconds.default(15_000).describe('Milliseconds in which a body must arrive completely.'),
      stopTimeoutMs: milliseconds
        .default(40_000)
        .describe(
          'Milliseconds in which a stop ends, a quarter each for balancers to notice, for requests, for runs and for the rest. Runs that need longer run again. Increase it if your balancers check rarely.',
        ),
      log: z
        .enum(logLevels)
        .default('info')
        .describe(
          'The least important lines in the log. info: one line for each delivery, run and reply. Set it to warn to log only what needs your attention.',
        ),
    })
    .prefault({})
    .describe('The HTTP servers.'),
  gateway: z
    .strictObject({
      token: filled
        .optional()
        .describe('Token for /api of the admin port, which commands use. It must differ from `hooks.token`.'),
    })
    .prefault({})
    .describe('Access to the admin port.'),
  hooks: HooksConfig.prefault({}).describe('The hook endpoints.'),
  agents: AgentsConfig.prefault({}).describe('The agents that run the turns.'),
  models: ModelsConfig.prefault({}).describe('The models that agents can use, and the APIs behind them.'),
  runners: RunnersConfig,
  channels: ChannelsConfig.prefault({}).describe('The chats that replies go to.'),
  store: z
    .strictObject({
      file: filePath
        .optional()
        .describe('Path of the SQLite file, relative to the config directory. Default: `state/hookloom.db`.'),
      url: z
        .string()
        .refine(
          isPostgresUrl,
          'is a Postgres URL, such as postgres://user:password@host:5432/database, with special characters percent-encoded',
        )
        .optional()
        .describe(
          'URL of a Postgres database, in place of `file`. Set it if several gateways share a store. It contains a password, so write "${DATABASE_URL}".',
        ),
      maxWaitingBytes: z
        .int()
        .positive()
        .default(2 * 1024 ** 3)
        .describe(
          'Bytes that parked deliveries and queued jobs may use. Above it, new deliveries get 503. Lower it on a small disk.',
        ),
      retainDays: z
        .number()
        .positive()
        .default(30)
        .describe(
          'Days until a finished or parked delivery is deleted. Repeated deliveries are recognised for the same time.',
        ),
    })
    .prefault({})
    .describe('Where deliveries are stored, and for how long.'),
})
export type Config = z.infer<typeof Config>

/** The agent of runs that name none: the one with `default`, else the first, else `main`. */
export function toDefaultAgentId(config: Config): string {
  const { list } = config.agents
  return (list.find((agent) => agent.default) ?? list[0])?.id ?? 'main'
}
