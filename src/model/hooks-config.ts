// `hooks` of the configuration: the credentials of requests, the actions that they become, and the limits of code.
import { trimSlashes } from '../base/text.ts'
import { z } from 'zod'
import { ChannelName } from './action.ts'
import { GmailConfig } from './gmail-config.ts'
import { Mapping, Retain } from './mapping.ts'
import { filePath, nonBlank } from './values.ts'

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
    })
    .prefault({})
    .describe('The built-in hook `agent`. The keys have the same meaning as in a mapping.'),
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
      to: nonBlank.optional().describe('Recipient of the alerts. Without it, the recipient of the channel’s section.'),
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
