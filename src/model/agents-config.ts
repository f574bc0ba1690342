// `agents`, `models` and `runners` of the configuration: who runs a turn, with which model, by which means.
import { z } from 'zod'
import { Thinking, thinkingLevels, TimeoutSeconds } from './action.ts'
import { filled, httpUrl } from './values.ts'

/** `30m`, `1h`, `45s`, `2d`; a bare number is minutes; 0 turns it off. Gives back milliseconds. */
const duration = z
  .union([z.string(), z.number().nonnegative()])
  .refine((given) => toDurationMs(given) !== undefined, 'must be a duration such as 30m, 1h or 0')
  .transform((given) => toDurationMs(given) ?? 0)

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

function toDurationMs(given: string | number): number | undefined {
  const [, amount, unit = 'm'] = /^(\d{1,6}(?:\.\d+)?)\s*([smhd])?$/.exec(String(given).trim()) ?? []
  if (amount === undefined) return undefined
  return Number(amount) * (unitMs[unit] ?? 0)
}

const clock = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$|^24:00$/, 'must be a time such as 08:00')

export const HeartbeatConfig = z.strictObject({
  every: duration.prefault('30m').describe('Time between heartbeats, such as 30m or 1h; 0 turns them off.'),
  prompt: filled.optional().describe('What the agent is asked at a heartbeat. Set: also when nothing waits.'),
  ackMaxChars: z
    .int()
    .nonnegative()
    .max(10_000)
    .default(300)
    .describe('A reply of HEARTBEAT_OK and at most so many characters beside it is not delivered.'),
  minIntervalSeconds: z.number().nonnegative().max(86_400).default(10).describe('Least time between two heartbeats.'),
  activeHours: z
    .strictObject({
      start: clock.describe('First minute.'),
      end: clock.describe('The minute after the last. Before `start`: on the next day.'),
      timezone: filled
        .optional()
        .refine((zone) => zone === undefined || isTimezone(zone), 'must be a time zone such as Europe/Berlin')
        .describe('IANA time zone. Default: that of the machine.'),
    })
    .optional()
    .describe('Outside these hours there is no heartbeat; what would wake the agent waits.'),
})
export type HeartbeatConfig = z.infer<typeof HeartbeatConfig>

function isTimezone(zone: string): boolean {
  try {
    return Intl.DateTimeFormat('en', { timeZone: zone }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}

/** What an agent may have of its own, and `agents.defaults` for all of them. */
const agentKeys = {
  workspace: filled
    .optional()
    .describe('Folder of the agent, relative to the config directory: AGENTS.md, HEARTBEAT.md.'),
  model: filled.optional().describe('<provider>/<model> or an alias.'),
  runner: filled
    .optional()
    .describe('ai, claude, codex, echo, or a name of runners. Default: ai with a model, else echo.'),
  system: filled.optional().describe('System text, before the AGENTS.md of the workspace.'),
  thinking: Thinking.optional().describe('Thinking level of runs that name none.'),
}

export const AgentConfig = z.strictObject({
  id: filled.describe('Agent id.'),
  default: z.boolean().default(false).describe('The agent of runs that name none. Without one, the first.'),
  ...agentKeys,
  timeoutSeconds: TimeoutSeconds.optional().describe('Limit of runs that name none.'),
  heartbeat: HeartbeatConfig.optional().describe('In place of agents.defaults.heartbeat.'),
})

export const AgentsConfig = z.strictObject({
  defaults: z
    .strictObject({
      models: z.array(filled).optional().describe('When set, a model override must be one of these.'),
      maxConcurrent: z.int().positive().max(256).default(4).describe('Runs at the same time.'),
      ...agentKeys,
      timeoutSeconds: TimeoutSeconds.default(600).describe('Limit of runs that name none.'),
      heartbeat: HeartbeatConfig.prefault({}).describe('Turns of the main session.'),
    })
    .prefault({})
    .describe('What holds for every agent.'),
  list: z.array(AgentConfig).default([]).describe('Known agents. None: one, called main.'),
})
export type AgentsConfig = z.infer<typeof AgentsConfig>

export const ProviderConfig = z.strictObject({
  kind: z
    .enum(['openai', 'anthropic', 'google', 'openai-compatible'])
    .describe('openai-compatible: Ollama, vLLM, LM Studio and whatever else answers /chat/completions.'),
  baseUrl: httpUrl.optional().describe('The API, such as http://127.0.0.1:11434/v1. Required for openai-compatible.'),
  apiKey: filled.optional().describe('Key of the API, such as "${OPENAI_API_KEY}".'),
  headers: z.record(z.string(), z.string()).optional().describe('Further headers of every call.'),
  stream: z.boolean().default(true).describe('Whether replies are streamed.'),
  thinking: z
    .partialRecord(z.enum(thinkingLevels), z.record(z.string(), z.json()))
    .optional()
    .describe('Provider options by thinking level, in place of the built-in ones.'),
})
export type ProviderConfig = z.infer<typeof ProviderConfig>

export const ModelsConfig = z.strictObject({
  aliases: z.record(z.string(), filled).default({}).describe('Short name → <provider>/<model>.'),
  providers: z
    .record(z.string().regex(/^[^/\s]+$/, 'must be a name without "/"'), ProviderConfig)
    .default({})
    .describe('APIs by the name that stands before the "/" of a model.'),
})
export type ModelsConfig = z.infer<typeof ModelsConfig>

export const CommandRunnerConfig = z.strictObject({
  kind: z.literal('command').describe('A command-line agent.'),
  profile: z.enum(['claude', 'codex']).optional().describe('What is not set here comes from this profile.'),
  command: filled
    .refine(
      (command) => /^([^/\\]+|\/.+|[a-z]:\\.+)$/i.test(command),
      'must be the name of a program or an absolute path',
    )
    .optional()
    .describe('The program: a name that is looked up in PATH, or an absolute path. Never run through a shell.'),
  args: z
    .array(z.string())
    .optional()
    .describe(
      'Arguments of a first turn. {prompt} {sessionId} {provider} {model} {thinking} {system} are filled in. An argument ' +
        'that lacks its value is left out, and so is the flag right before it, unless it is a flag itself (--model={model}).',
    ),
  resumeArgs: z
    .array(z.string())
    .optional()
    .describe('Arguments of a later turn of a persistent session. Without them, every turn is a first one.'),
  input: z
    .enum(['stdin', 'arg'])
    .optional()
    .describe('How the prompt goes in. arg: by {prompt} in args. Default: arg where args have it, else stdin.'),
  output: z.enum(['text', 'json', 'jsonl']).optional().describe('What it prints.'),
  textField: filled.optional().describe('Path of the reply in its JSON.'),
  sessionField: filled.optional().describe('Path of the session id in its JSON, where it makes its own.'),
  env: z.array(filled).optional().describe('Environment variables that it sees beside PATH, HOME, LANG and TMPDIR.'),
  killAfterMs: z.int().positive().max(60_000).default(5_000).describe('Time between SIGTERM and SIGKILL.'),
})
export type CommandRunnerConfig = z.infer<typeof CommandRunnerConfig>

export const OpenClawRunnerConfig = z.strictObject({
  kind: z.literal('openclaw').describe('A running OpenClaw gateway, which performs the turn and delivers its reply.'),
  baseUrl: httpUrl.describe('The gateway with its hooks path, such as http://127.0.0.1:18789/hooks.'),
  token: filled.describe('Its hook token.'),
  timeoutMs: z.int().positive().max(60_000).default(15_000).describe('Time for a run to be taken.'),
})
export type OpenClawRunnerConfig = z.infer<typeof OpenClawRunnerConfig>

export const RunnersConfig = z
  .record(z.string(), z.discriminatedUnion('kind', [CommandRunnerConfig, OpenClawRunnerConfig]))
  .default({})
  .describe('Runners by the name that agents give.')
export type RunnersConfig = z.infer<typeof RunnersConfig>
