// `hooks` of the configuration: the credentials of requests, the actions that they become, and the limits of code.
import { trimSlashes } from '../../base/text.ts'
import { z } from 'zod'
import { ChannelName } from '../../core/model/action.ts'
import { GmailConfig } from './gmail.ts'
import { ImapConfig } from './imap.ts'
import { JobKeys } from '../../core/model/job-keys.ts'
import { Mapping, Retain } from '../../core/model/mapping.ts'
import { duration, endpointUrl, filePath, nonBlank } from '../../core/model/values.ts'
import { ReturnedFlow } from '../../core/model/flow.ts'

const milliseconds = z.int().positive()

/** The prefix in its normal form: with a slash at the beginning and none at the end. */
function normalizeHooksPath(path: string): string {
  return `/${trimSlashes(path.trim())}`
}

function isHooksPath(path: string): boolean {
  const normal = normalizeHooksPath(path)
  return (
    normal !== '/' && /^(\/[A-Za-z0-9._~-]+)+$/.test(normal) && !normal.split('/').some((part) => /^\.+$/.test(part))
  )
}

const PresetEntry = z.union([
  nonBlank,
  z.looseObject({ name: nonBlank.describe('Name of the preset. The other keys of the entry are its options.') }),
])

export const QuarantineConfig = z.strictObject({
  days: z.int().min(1).max(90).default(7).describe('Days after which a kept request is deleted.'),
  maxRequests: z
    .int()
    .min(1)
    .max(100_000)
    .default(5_000)
    .describe(
      'Maximum number of kept requests. Beyond it, the oldest ones of the hook and network with the largest share are deleted.',
    ),
  maxBytes: z
    .int()
    .min(65_536)
    .max(1_073_741_824)
    .default(67_108_864)
    .describe('Bytes in the store that kept requests may take.'),
  maxBodyBytes: z
    .int()
    .min(1)
    .max(16_777_216)
    .default(262_144)
    .describe('Bytes. A request with a larger body is not kept.'),
})
export type QuarantineConfig = z.infer<typeof QuarantineConfig>

const leastHeartbeatMs = 30_000
const AlertHeartbeatConfig = z.strictObject({
  url: endpointUrl.describe(
    'URL that the gateway requests with GET. It is a secret, such as "${HEARTBEAT_URL}": anyone who has it can pretend that the gateway works.',
  ),
  every: duration
    .refine((ms) => ms >= leastHeartbeatMs, 'must be at least 30s')
    .prefault('5m')
    .describe(
      'The time between two pings, such as 5m. A plain number is minutes. Give the monitor more time than that.',
    ),
})

export const HooksConfig = z.strictObject({
  enabled: z
    .boolean()
    .default(false)
    .describe('Turns the hook endpoints on. If it is true, `hooks.token` or `hooks.tokens` is required.'),
  token: nonBlank
    .optional()
    .describe('The token that callers send, of at least 16 bytes. It must differ from `gateway.token`.'),
  tokens: z
    .array(nonBlank)
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
    .transform(normalizeHooksPath)
    .describe('Path before the hook names. Change it if this path is taken behind your proxy.'),
  allowedAgentIds: z
    .array(nonBlank)
    .optional()
    .describe(
      'Agents that a request, mapping or transform may name. Without the key, or with "*": any agent. []: none.',
    ),
  defaultSessionKey: nonBlank
    .optional()
    .describe('Session key of runs that name none. Without it, each such run has a new key.'),
  allowRequestSessionKey: z
    .boolean()
    .default(false)
    .describe(
      'Whether a request may choose its session with `sessionKey`, and continue it with `sessionMode`. Turn it on only with `allowedSessionKeyPrefixes`.',
    ),
  allowedSessionKeyPrefixes: z
    .array(nonBlank)
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
  agent: z
    .strictObject({
      instructions: nonBlank
        .optional()
        .describe(
          'Your own fixed text for the agent, outside the boundary, about the message of a caller. Without it, the prompt says that the message is the task of the caller, to be answered as far as it is harmless, without obeying orders about tools, rules or secrets.',
        ),
      allowUnsafeExternalContent: z
        .boolean()
        .default(false)
        .describe(
          'Dangerous. If it is true, messages of callers reach the agent without the boundary, as if you had written them.',
        ),
      flow: ReturnedFlow.optional().describe(
        'Which runs of callers start, and when, as in a mapping, but without `cancelOn`: `DELETE /api/runs/<runId>` ends a run.',
      ),
      result: JobKeys.shape.result,
    })
    .prefault({})
    .describe('The built-in hook `agent`. The keys have the same meaning as in a mapping.'),
  maxWaiting: z
    .int()
    .min(0)
    .max(2_000)
    .default(200)
    .describe(
      'The maximum number of requests that wait for a run or a delivery at a time: those with `Prefer: wait`, and streams of runs. The next ones are answered at once. While several tokens may wait, each of them gets at most half; `hooks.tokens` count as one.',
    ),
  gmail: GmailConfig.optional().describe('The gmail preset, and the mailbox that the gateway watches.'),
  imap: ImapConfig.optional().describe('The mailbox that the gateway watches by IMAP.'),
  onTransformError: z
    .enum(['park', 'reject'])
    .default('park')
    .describe(
      'What happens when a transform fails. park: the answer is 200 and the delivery is kept. reject: the answer is 500 and nothing is kept.',
    ),
  alerts: z
    .strictObject({
      channel: ChannelName.describe('Channel of the alerts.'),
      to: nonBlank
        .optional()
        .describe(
          'Recipient of the alerts. Without it, the last recipient of the main session, if it is on this channel; else `to` of the section of the channel.',
        ),
      heartbeat: AlertHeartbeatConfig.optional().describe(
        'A ping to an outside monitor, which then reports that the gateway is down or that alerts do not arrive.',
      ),
    })
    .optional()
    .describe(
      'Where messages about failures go, such as a dead job, a parked delivery or a sender that is silent: at most one for each cause and hour.',
    ),
  retain: Retain.optional().describe(
    'Requests of each mapping that are kept when they are done: a number from 1 to 1000, true for all, false for none. Without it, none; `hookloom dev` keeps 100. Set it to see with `hookloom replay` what an edit changes.',
  ),
  quarantine: z
    .union([z.literal(false), QuarantineConfig])
    .default(() => QuarantineConfig.parse({}))
    .describe(
      'Refused requests of a hook are kept, encrypted, so that `hookloom retry --refused` can run them once a secret is corrected. false: none is kept. Limits: `days`, `maxRequests`, `maxBytes` of all in the store, `maxBodyBytes` of one. It needs `gateway.token`.',
    ),
  answerWithinMs: milliseconds
    .default(800)
    .describe(
      'Milliseconds. If a transform needs longer, the sender gets 200 with status pending and the transform goes on, unless `onTransformError` is `reject`. Keep it below the time limit of your senders.',
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
        .array(nonBlank)
        .default([])
        .describe(
          'Names of the environment variables that are passed on to the `process.env` of transforms. It hides no others: code runs with the rights of the gateway.',
        ),
    })
    .prefault({})
    .describe('Limits of transforms.'),
})
export type HooksConfig = z.infer<typeof HooksConfig>
