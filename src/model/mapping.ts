// One routing rule, as it stands in `hooks.mappings` or in a preset.
import { z } from 'zod'
import { VerifySettings } from './verify.ts'
import { ChannelName, sessionModes, Thinking, TimeoutSeconds, WakeMode } from './action.ts'
import { filled } from './values.ts'

const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()])

/** Every condition that is given must hold. */
export const Match = z.strictObject({
  path: z.string().optional().describe('Hook name, slashes trimmed, case-sensitive. Absent: any custom name.'),
  source: filled.optional().describe('Equals the source of the delivery: payload.source, else the detected sender.'),
  event: z
    .union([filled, z.array(filled).min(1)])
    .optional()
    .describe('The event type of the sender, or a list of them.'),
  headers: z
    .record(z.string(), z.union([z.string(), z.array(z.string()).min(1)]))
    .optional()
    .describe('Header name → the value, or a list of values.'),
  payload: z
    .record(z.string(), z.union([scalar, z.array(scalar).min(1)]))
    .optional()
    .describe('Path in the payload → the value, or a list of values.'),
})
export type Match = z.infer<typeof Match>

/** Segments of a module path that could leave the root or name something that is no file. */
function isPlainModulePath(path: string): boolean {
  if (path.trim() === '' || /^[/\\~]/.test(path) || /[:\0]/.test(path)) return false
  return !path.split(/[/\\]/).includes('..')
}

export const TransformRef = z.strictObject({
  module: z
    .string()
    .refine(isPlainModulePath, 'must be a relative path below the transforms directory, without "..", "~" or ":"')
    .describe('Module below the transforms directory: .ts .mts .js .mjs .cjs.'),
  export: filled.optional().describe('Named export to call. Default: `default`, else `transform`.'),
})
export type TransformRef = z.infer<typeof TransformRef>

export const Mapping = z.strictObject({
  id: filled.optional().describe('Name in traces and lists. Default: mapping-<n>.'),
  match: Match.default({}).describe('When this mapping takes a delivery.'),
  action: z.enum(['wake', 'agent']).default('agent').describe('What the delivery becomes.'),
  wakeMode: WakeMode.default('now').describe('When the heartbeat runs.'),
  name: filled.optional().describe('Template. Human-readable hook name: the prefix of the session summary.'),
  verify: VerifySettings.optional().describe('How the sender proves itself. A signature opens this mapping alone.'),
  instructions: filled.optional().describe('Literal text for the agent, outside the boundary. Never templated.'),
  messageTemplate: filled.optional().describe('Template of an agent action’s message.'),
  textTemplate: filled.optional().describe('Template of a wake action’s text.'),
  forEach: z
    .string()
    .regex(/^[^.[\]]+$/, 'must name one top-level array of the payload, without "." or brackets')
    .optional()
    .describe('Top-level array of the payload: one action an item.'),
  agentId: filled.optional().describe('Agent that runs the turn. Unknown: the default agent.'),
  sessionKey: filled.optional().describe('Template. Must begin with literal text, else it counts as the request’s.'),
  sessionMode: z
    .enum(sessionModes)
    .default('isolated')
    .describe('persistent: the run continues the transcript of its key.'),
  deliver: z.boolean().default(true).describe('Send the reply to a channel.'),
  channel: ChannelName.default('last').describe('Channel of the reply.'),
  to: filled.optional().describe('Recipient on the channel.'),
  model: filled.optional().describe('<provider>/<model>, or an alias.'),
  thinking: Thinking.optional().describe('Thinking level.'),
  timeoutSeconds: TimeoutSeconds.optional().describe('Maximum duration of the run, in seconds.'),
  allowUnsafeExternalContent: z
    .boolean()
    .default(false)
    .describe('Dangerous: the text reaches the agent outside the boundary.'),
  transform: TransformRef.optional().describe('Code that makes or changes the action.'),
  retain: z.boolean().default(false).describe('Keep the payload after the delivery is accepted.'),
})
export type Mapping = z.infer<typeof Mapping>
/** A mapping as its author writes it, before defaults. */
export type MappingInput = z.input<typeof Mapping>
