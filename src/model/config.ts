// The configuration file, key by key. Unknown keys are errors; every key has its meaning beside it, and the JSON Schema for editors comes from here.
import { z } from 'zod'
import { AgentsConfig, ModelsConfig, RunnersConfig } from './agents-config.ts'
import { ChannelsConfig } from './channels-config.ts'
import { GmailConfig } from './gmail-config.ts'
import { Mapping } from './mapping.ts'
import { filled, network } from './values.ts'

const port = z.int().min(0).max(65_535)
const milliseconds = z.int().positive()

/** The prefix in one form: a leading slash, none behind. */
export function toHooksPath(path: string): string {
  return `/${path.trim().replace(/^\/+|\/+$/g, '')}`
}

function isHooksPath(path: string): boolean {
  const normal = toHooksPath(path)
  return (
    normal !== '/' && /^(\/[A-Za-z0-9._~-]+)+$/.test(normal) && !normal.split('/').some((part) => /^\.+$/.test(part))
  )
}

const PresetEntry = z.union([filled, z.looseObject({ name: filled.describe('Name of the preset.') })])

export const HooksConfig = z.strictObject({
  enabled: z.boolean().default(false).describe('Turns the hook endpoints on. `hooks.token` is then required.'),
  token: filled.optional().describe('Shared secret of the callers. Dedicated: never the gateway token.'),
  path: z
    .string()
    .default('/hooks')
    .refine(isHooksPath, 'must be a path such as /hooks, and not /')
    .transform(toHooksPath)
    .describe('Path prefix of the endpoints.'),
  allowedAgentIds: z.array(filled).optional().describe('Agents that may be named. Omitted or with "*": any; []: none.'),
  defaultSessionKey: filled.optional().describe('Session key of hook runs that name none.'),
  allowRequestSessionKey: z.boolean().default(false).describe('Whether a request may set `sessionKey`.'),
  allowedSessionKeyPrefixes: z.array(filled).optional().describe('Prefixes that explicit session keys must have.'),
  presets: z.array(PresetEntry).default([]).describe('Mapping packs by name, or {name, …options}.'),
  mappings: z.array(Mapping).default([]).describe('Custom hook names. Order is priority.'),
  transformsDir: filled.optional().describe('Where modules are looked up: inside hooks/transforms, relative to it.'),
  gmail: GmailConfig.optional().describe('The gmail preset and the watched mailbox.'),
  onTransformError: z
    .enum(['park', 'reject'])
    .default('park')
    .describe('park: 200 and kept; reject: 500 and not kept.'),
  answerWithinMs: milliseconds.default(800).describe('A transform slower than this is answered 200 pending.'),
  transforms: z
    .strictObject({
      timeoutMs: milliseconds.default(10_000).describe('A transform that runs longer has failed.'),
      memoryMb: z.int().min(16).max(4096).default(128).describe('Memory of a worker, buffers too. More is a failure.'),
      workers: z.int().min(1).max(64).default(2).describe('Threads that run transforms. One more waits as a spare.'),
      env: z.array(filled).default([]).describe('Environment variables that transforms see. They see no others.'),
    })
    .prefault({})
    .describe('Limits of transforms.'),
})
export type HooksConfig = z.infer<typeof HooksConfig>

export const Config = z.strictObject({
  $schema: z.string().optional().describe('JSON Schema of this file, for editors.'),
  server: z
    .strictObject({
      host: filled.default('127.0.0.1').describe('Address to listen on.'),
      port: port.default(8790).describe('Port of the hook endpoints; 0 takes any.'),
      adminPort: port.default(8791).describe('Port of health pages and /api, on loopback only.'),
      trustedProxies: z.array(network).default([]).describe('IPs or CIDRs whose X-Forwarded-For counts.'),
      maxBodyBytes: z.int().positive().default(262_144).describe('Largest body, also after inflating.'),
      bodyTimeoutMs: milliseconds.default(15_000).describe('Time for a body to arrive.'),
    })
    .prefault({})
    .describe('The HTTP edge.'),
  gateway: z
    .strictObject({ token: filled.optional().describe('Token of the admin port.') })
    .prefault({})
    .describe('The gateway itself.'),
  hooks: HooksConfig.prefault({}).describe('The hook endpoints.'),
  agents: AgentsConfig.prefault({}).describe('Who runs the turns.'),
  models: ModelsConfig.prefault({}).describe('The models that agents may use.'),
  runners: RunnersConfig,
  channels: ChannelsConfig.prefault({}).describe('Where replies go.'),
  store: z
    .strictObject({
      file: filled.default('state/hookloom.db').describe('SQLite file, relative to the config directory.'),
      maxWaitingBytes: z
        .int()
        .positive()
        .default(2 * 1024 ** 3)
        .describe('Bytes of parked deliveries and queued jobs. Beyond it new deliveries are answered 503.'),
      retainDays: z.number().positive().default(30).describe('Days until a finished or parked delivery is deleted.'),
    })
    .prefault({})
    .describe('What is kept, and how long.'),
})
export type Config = z.infer<typeof Config>

/** The agent of runs that name none: the one marked, else the first, else `main`. */
export function toDefaultAgentId(config: Config): string {
  const { list } = config.agents
  return (list.find((agent) => agent.default) ?? list[0])?.id ?? 'main'
}
