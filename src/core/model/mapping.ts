// One routing rule of `hooks.mappings` or of a preset.
import { z } from 'zod'
import { VerifySettings } from './verify.ts'
import { ChannelName, MessageTarget, Thinking, TimeoutSeconds, WakeMode } from './action.ts'
import { Flow } from './flow.ts'
import { JobKeys, keyRules } from './job-keys.ts'
import { Match } from './match.ts'
import { Recover } from './recover.ts'
import { SenderResponse } from './response.ts'
import { duration, nonBlank } from './values.ts'

/** The maximum number of kept requests of one mapping; `true` keeps all requests. */
const maxRetained = 1_000
/** How many requests are kept after they are done: all, none, or the newest n of a mapping. */
export const Retain = z.union([z.boolean(), z.int().min(1).max(maxRetained)])
export type Retain = z.infer<typeof Retain>

/** Whether a module path names a file and stays inside the transforms folder. */
function isPlainModulePath(path: string): boolean {
  if (path.trim() === '' || /^[/\\~]/.test(path) || /[:\0]/.test(path)) return false
  return !path.split(/[/\\]/).includes('..')
}

const ModulePath = z
  .string()
  .refine(isPlainModulePath, 'must be a relative path below the transforms directory, without "..", "~" or ":"')

export const TransformRef = z.strictObject({
  module: ModulePath.describe(
    'Path of the module inside the transforms folder, such as "build.ts". Extensions: .ts .mts .js .mjs .cjs.',
  ),
  export: nonBlank
    .optional()
    .describe(
      'Name of the export to call. Without it, `default`, else `transform`, else the name of the file, such as `pullRequest` for pull-request.ts.',
    ),
  shadow: ModulePath.optional().describe(
    'The next version of the module, in the same folder, such as "build.next.ts". It runs after the answer on a part of the same requests, without effects. `hookloom shadow` shows how its results differ, `hookloom publish <mapping>` puts it in the place of the module.',
  ),
})
export type TransformRef = z.infer<typeof TransformRef>

export const Mapping = z.strictObject({
  id: nonBlank
    .optional()
    .describe(
      'The name by which commands and logs show the mapping. Default: `mapping-<n>`, by its position: if you insert a mapping, a delivery that came before still shows the old number.',
    ),
  match: Match.default({}).describe('Conditions. The mapping takes a delivery if all of them are true.'),
  action: z
    .enum(['wake', 'agent', 'deliver'])
    .default('agent')
    .describe(
      'What a delivery becomes. agent: an agent turn. wake: a system event in the main session. deliver: a message to a channel, without an agent.',
    ),
  wakeMode: WakeMode.default('now').describe(
    'When the agent reads the event, or the summary of the run. now: at once. next-heartbeat: at the next regular heartbeat.',
  ),
  name: nonBlank.optional().describe('Template. Name for people, which the summary shows: `Hook <name>: …`.'),
  verify: VerifySettings.optional().describe(
    'How to verify the sender. If it is set, only requests with a valid signature, or another proof of the sender, are accepted; the hook token alone is refused.',
  ),
  messageTemplate: nonBlank
    .optional()
    .describe(
      'Template of the message, for the actions agent and deliver. Without it, the message is the payload, or what the transform returns.',
    ),
  textTemplate: nonBlank
    .optional()
    .describe(
      'Template of the text, for the action wake. Without it, the text is the payload, or what the transform returns.',
    ),
  accept: z
    .array(z.enum(['text', 'xml', 'empty']))
    .min(1)
    .optional()
    .describe(
      'Bodies that the mapping takes besides JSON and forms. text: text/plain and other text types. xml: XML. The payload is then the text. empty: a request without a body, or with blanks only. The payload is then null.',
    ),
  jsonFields: z
    .array(nonBlank)
    .min(1)
    .optional()
    .describe(
      'Fields of a form whose text is JSON, such as ["data"] for Uptime Kuma. A JSON object or array in such a field becomes part of the payload, for all mappings of the hook; any other text stays a string.',
    ),
  forEach: nonBlank
    .optional()
    .describe(
      'Path of a list in the payload, such as "messages" or "data.events"; "payload" if the payload is a list itself. Each item becomes one action.',
    ),
  agentId: nonBlank
    .optional()
    .describe('Id of the agent that runs the turn. Without it, or if it is unknown: the default agent.')
    .register(keyRules, { onlyForAgent: true, isLiteral: true }),
  sessionKey: nonBlank
    .optional()
    .describe(
      'Template of the session key. It must begin with fixed text, unless `hooks.allowRequestSessionKey` is true.',
    )
    .register(keyRules, { onlyForAgent: true }),
  ...JobKeys.shape,
  deliver: z.boolean().default(true).describe('Whether the reply goes to a channel.'),
  channel: ChannelName.default('last').describe(
    "Channel of the reply. Default: `last`. This is the channel of the last recipient of the agent's main session; else `channels.default`; else the only channel whose section has `to`; else WhatsApp, if it has a recipient.",
  ),
  to: z
    .union([nonBlank, z.array(MessageTarget).min(1).max(20)])
    .optional()
    .describe(
      'Recipient on the channel, such as a chat id. Also a list of {channel, to}: each gets the reply, or the message of the action deliver, independently of the others. Default: the issue, pull request or merge request of the event, if it is on this channel; else the last recipient of the main session, if it is on this channel; else `to` of the section of the channel, such as `channels.telegram`; else `to` of `channels.default`, if that names this channel.',
    )
    .register(keyRules, { onlyForAgent: true, alsoForDeliver: true, isLiteral: true }),
  model: nonBlank
    .optional()
    .describe('Model of the run, as <provider>/<model> or an alias. Without it, the model of the agent.')
    .register(keyRules, { onlyForAgent: true, isLiteral: true }),
  thinking: Thinking.optional()
    .describe(
      'How much the model reasons before it answers (its thinking level), such as "low". Without it, the level of the agent.',
    )
    .register(keyRules, { onlyForAgent: true }),
  timeoutSeconds: TimeoutSeconds.optional()
    .describe('Time limit of the run, in seconds. Default: that of the agent.')
    .register(keyRules, { onlyForAgent: true }),
  flow: Flow.optional().describe(
    'Which turns of the mapping run, when, and how many at the same time. Without it, each request makes a turn.',
  ),
  allowUnsafeExternalContent: z
    .boolean()
    .default(false)
    .describe(
      'Dangerous. If it is true, text from outside reaches the agent without the boundary. Set it only for senders that you trust completely.',
    ),
  transform: TransformRef.optional().describe('Code that makes or changes the action.'),
  response: SenderResponse.optional().describe(
    'The answer to the sender when the delivery becomes exactly one action. Default: the receipt with the ids, as JSON.',
  ),
  recover: Recover.optional().describe(
    'The API of the sender that lists its deliveries. At each start and every hour, the gateway fetches from it what did not arrive. See [Recover](../../plugins/outboxes/README.md).',
  ),
  expectEvery: duration
    .optional()
    .describe(
      'The longest usual time between two requests, such as 1h. The gateway alerts the operator when the mapping has accepted none for longer. 0: it never alerts. Without it, the gateway learns how often each sender of the hook sends.',
    ),
  retain: Retain.optional().describe(
    'How many finished requests of the mapping stay in the store, for `hookloom replay` and `hookloom capture`: a number (the newest), true (all) or false (none). Default: `hooks.retain`.',
  ),
})
export type Mapping = z.infer<typeof Mapping>
/** A mapping as written in the configuration, before defaults. */
export type MappingInput = z.input<typeof Mapping>

/** The id of a mapping. A mapping without an id is named by its place in `hooks.mappings`: the first one is `mapping-1`. */
export function readMappingId({ id }: Pick<Mapping, 'id'>, index: number): string {
  return id ?? `mapping-${index + 1}`
}
