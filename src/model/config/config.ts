// The keys of the configuration file. Unknown keys are errors. Editors show the descriptions, through the JSON Schema, and so do the tables of the
// pages.
import { isPostgresUrl } from '../../base/postgres-url.ts'
import { z } from 'zod'
import { AgentsConfig, createRunnersConfig, ModelsConfig } from './agents.ts'
import { BudgetsConfig } from '../budgets.ts'
import { createChannelsConfig, type KnownChannel } from './channels.ts'
import { SharedLimits } from '../../core/model/flow.ts'
import { HooksConfig } from './hooks.ts'
import { createSourcesConfig, type KnownKind } from './kinds.ts'
import { logLevels } from '../../base/log.ts'
import { TokensConfig } from './tokens.ts'
import { filePath, hostName, nonBlank, network, packageNamePattern } from '../../core/model/values.ts'

const port = z.int().min(0).max(65_535)
const milliseconds = z.int().positive()
/** A path has no part `..`: it stays below hooks/. */
const pluginName = z
  .string()
  .refine(
    (name) => packageNamePattern.test(name) || /^\.\/(?!(?:.*\/)?\.\.(?:\/|$)).+/.test(name),
    'must be the name of a package, or "./" and a path below hooks/',
  )

/** The plugins whose sections a configuration may have. */
export type KnownPlugins = {
  /** Undefined: any name may be a channel. */
  readonly channels: readonly KnownChannel[] | undefined
  readonly runners: readonly KnownKind[]
  readonly sources: readonly KnownKind[]
}

/** The schema of the configuration. `takesOthers`: it may have sections of plugins that are not loaded yet. */
export function createConfig({ channels, runners, sources }: KnownPlugins, options: { readonly takesOthers: boolean }) {
  return z.strictObject({
    $schema: z
      .string()
      .optional()
      .describe('File or URL of the JSON Schema, for completion and help in editors. `hookloom schema` prints it.'),
    server: z
      .strictObject({
        host: nonBlank
          .default('127.0.0.1')
          .describe(
            'IP address or host name of the hook endpoints. Change it only if your proxy is on another machine.',
          ),
        port: port.default(8790).describe('Port of the hook endpoints. 0 takes any free port.'),
        adminPort: port.default(8791).describe('Port of health pages, metrics and /api. 0 takes any free port.'),
        adminHost: nonBlank
          .default('127.0.0.1')
          .describe(
            'IP address or host name of the admin port. On any address but loopback, `/metrics` and `/api` need `gateway.token`. Change it only in a container or a pod, and let only your monitoring and your operators reach the port.',
          ),
        adminNames: z
          .array(hostName)
          .default([])
          .describe(
            'Host names under which others reach the admin port, such as that of a Kubernetes service. Requests to other names are refused, except to `localhost` and to the address of the gateway itself.',
          ),
        trustedProxies: z
          .array(network)
          .default([])
          .describe(
            'IP addresses or CIDRs of your proxies. X-Forwarded-For is believed only from these addresses, so set it if the gateway is behind a proxy.',
          ),
        maxBodyBytes: z
          .int()
          .positive()
          .default(262_144)
          .describe('Bytes. A larger body is refused, even if it is larger only after decompression.'),
        bodyTimeoutMs: milliseconds.default(15_000).describe('Milliseconds in which a body must arrive completely.'),
        keepAliveTimeoutMs: milliseconds
          .max(86_400_000)
          .default(130_000)
          .describe(
            'Milliseconds for which a connection is kept after an answer. It must be longer than your proxies and balancers keep it, or they lose a request: Caddy does for 120 seconds, Go clients 90, nginx and AWS 60, Google Cloud 600.',
          ),
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
      .superRefine(({ host, port: hookPort, adminHost, adminPort }, context) => {
        if (hookPort === 0 || adminPort !== hookPort || adminHost !== host) return
        const message = `must differ from server.port, which is ${hookPort} too`
        context.addIssue({ code: 'custom', path: ['adminPort'], message })
      })
      .prefault({})
      .describe('The HTTP servers.'),
    gateway: z
      .strictObject({
        token: nonBlank
          .optional()
          .describe(
            'Token for /api of the admin port, which commands use, of at least 16 bytes. It must differ from `hooks.token`.',
          ),
      })
      .prefault({})
      .describe('Access to the admin port.'),
    plugins: z
      .array(pluginName)
      .default([])
      .describe(
        'Plugins: each the name of an installed package, or a file below hooks/, such as "./plugins/zulip.ts". A plugin may bring channels, runners, senders, outboxes and sources.',
      ),
    tokens: TokensConfig,
    hooks: HooksConfig.prefault({}).describe('The hook endpoints.'),
    limits: SharedLimits,
    agents: AgentsConfig.prefault({}).describe('The agents that run the turns.'),
    models: ModelsConfig.prefault({}).describe('The models that agents can use, and the APIs behind them.'),
    runners: createRunnersConfig(runners, options),
    sources: createSourcesConfig(sources, options),
    budgets: BudgetsConfig,
    channels: createChannelsConfig(channels, options).prefault({}).describe('The channels that replies go to.'),
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
            'Days until a finished delivery is deleted, and until one that still waits, parked or with queued runs, is dropped. Repeated deliveries are recognised for the same time.',
          ),
        retainAuditDays: z
          .number()
          .positive()
          .default(366)
          .describe(
            'Days until an entry of the audit log is deleted. The default is the year that rules such as PCI DSS ask for. The newest entry stays.',
          ),
      })
      .prefault({})
      .describe('Where deliveries are stored, and for how long.'),
  })
}
export type Config = z.infer<ReturnType<typeof createConfig>>
