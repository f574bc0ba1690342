// `agents`, `models` and `runners` of the configuration: they decide which runner and which model perform a turn, and how.
import { z } from 'zod'
import { Thinking, thinkingLevels, TimeoutSeconds } from '../../core/model/action.ts'
import { BudgetNames } from '../../core/model/job-keys.ts'
import { ModelConfig } from '../prices.ts'
import { createKindsConfig, type KindsConfig, type KnownKind } from './kinds.ts'
import { duration, filePath, nonBlank, httpUrl, RetryConfig, timezone } from '../../core/model/values.ts'

const clock = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$|^24:00$/, 'must be a time such as 08:00')

/** The maximum of what a session keeps, and so of what a turn can get of it. */
export const mostKept = { messages: 1_000, bytes: 4_000_000 } as const

/** Which of the earlier messages of a session go with a turn. */
const describeHistory = ({ messages, bytes }: { messages: number; bytes: number }) =>
  z.strictObject({
    messages: z
      .int()
      .nonnegative()
      .max(mostKept.messages)
      .default(messages)
      .describe('Maximum number of messages. A prompt and its reply are two, and stay together. 0: none.'),
    bytes: z.int().nonnegative().max(mostKept.bytes).default(bytes).describe('Maximum number of bytes of all of them.'),
  })

/** About 16,000 tokens: a conversation of weeks about one subject, on a model with a context of 32,000 tokens. */
const HistoryConfig = describeHistory({ messages: 100, bytes: 64_000 })
export type HistoryConfig = z.infer<typeof HistoryConfig>

export const HeartbeatConfig = z.strictObject({
  every: duration
    .optional()
    .describe(
      'Time between two regular heartbeats, such as 45s, 30m or 1h. A plain number is minutes. 0 turns heartbeats off, after wakes too. Default: 30m, and 0 if the runner is a command without a profile.',
    ),
  history: describeHistory({ messages: 20, bytes: 8_000 })
    .prefault({})
    .describe('The newest earlier messages of the main session that go with a heartbeat.'),
  prompt: nonBlank
    .optional()
    .describe('What the agent is asked at each heartbeat. With it, a turn runs even if nothing waits.'),
  ackMaxChars: z
    .int()
    .nonnegative()
    .max(10_000)
    .default(300)
    .describe('Number of characters. A reply with HEARTBEAT_OK and at most this many other characters is not posted.'),
  minIntervalSeconds: z
    .number()
    .nonnegative()
    .max(86_400)
    .default(10)
    .describe('Minimum seconds between two heartbeats. Increase it if bursts of events cost too many turns.'),
  activeHours: z
    .strictObject({
      start: clock.describe('Time of day when the hours begin, such as 08:00.'),
      end: clock.describe('Time of day when the hours end, such as 20:00. A time before `start` is on the next day.'),
      timezone: timezone
        .optional()
        .describe('IANA time zone, such as Europe/Berlin. Without it, the time zone of the machine.'),
    })
    .optional()
    .describe('Outside these hours no heartbeat runs, and events wait.'),
})
export type HeartbeatConfig = z.infer<typeof HeartbeatConfig>

/** Keys of an agent, and of `agents.defaults` for all agents. */
const agentKeys = {
  workspace: filePath
    .optional()
    .describe(
      'Folder of the agent, relative to the config directory, with AGENTS.md and HEARTBEAT.md. Commands run there. A folder of the system, such as /etc, is refused. Without it, agents/<id>.',
    ),
  model: nonBlank.optional().describe('Model of the turns, as <provider>/<model> or an alias.'),
  modelFallbacks: z
    .array(nonBlank)
    .max(10)
    .optional()
    .describe(
      'Models that perform a turn when its own model is not available: it cannot be reached, does not answer, limits the rate or is overloaded. They are tried in this order.',
    ),
  runner: nonBlank
    .optional()
    .describe(
      'What performs the turns: ai, claude, codex, echo, or a name in `runners`. Without it, ai if there is a model, else echo.',
    ),
  system: nonBlank.optional().describe('System text. The AGENTS.md of the workspace is added to it.'),
  thinking: Thinking.optional().describe('Thinking level of runs that name none.'),
  budgets: BudgetNames.optional().describe('Names in `budgets` that limit what the turns cost, heartbeats included.'),
  limits: z
    .array(nonBlank)
    .max(3)
    .optional()
    .describe('Names in `limits` that every run of the agent needs, besides those of its flow. Heartbeats need none.'),
}

/** The maximum number of turns in an hour. 0: no limit. */
const MaxTurnsPerHour = z.int().nonnegative().max(100_000)

const AgentConfig = z.strictObject({
  id: nonBlank.describe('Id of the agent, as requests and mappings name it.'),
  default: z
    .boolean()
    .default(false)
    .describe('Whether this agent runs the turns that name none. If no agent sets it, the first of the list does.'),
  ...agentKeys,
  timeoutSeconds: TimeoutSeconds.optional().describe('Seconds after which a run that names no limit is ended.'),
  maxTurnsPerHour: MaxTurnsPerHour.optional().describe('In place of `agents.defaults.maxTurnsPerHour`.'),
  history: HistoryConfig.optional().describe('In place of `agents.defaults.history`.'),
  heartbeat: HeartbeatConfig.optional().describe('Heartbeats of this agent, in place of `agents.defaults.heartbeat`.'),
})

export const AgentsConfig = z.strictObject({
  defaults: z
    .strictObject({
      models: z
        .array(nonBlank)
        .optional()
        .describe(
          'Models that a request, mapping or transform may name. Without the key: any model of your providers.',
        ),
      maxConcurrent: z
        .int()
        .positive()
        .max(256)
        .default(4)
        .describe('Number of runs of one gateway at the same time. Lower it if your model server is slow.'),
      ...agentKeys,
      timeoutSeconds: TimeoutSeconds.default(600).describe('Seconds after which a run that names no limit is ended.'),
      maxTurnsPerHour: MaxTurnsPerHour.default(20).describe(
        'Turns that start in an hour with one session key that a mapping, a transform or a request chose. The next ones wait, and `hooks.alerts` gets a message: it may be a loop. Runs with `hooks.defaultSessionKey`, heartbeats and the runner echo never wait for it, nor count. 0: no limit.',
      ),
      history: HistoryConfig.prefault({}).describe(
        'The newest earlier messages of its session that go with a turn of a persistent session.',
      ),
      heartbeat: HeartbeatConfig.prefault({}).describe('Regular turns of the main session.'),
      retry: RetryConfig.prefault({}).describe(
        'Retries of runs whose model cannot be reached, answers 429, or is overloaded.',
      ),
    })
    .prefault({})
    .describe('Values for agents that do not set them.'),
  list: z.array(AgentConfig).default([]).describe('The agents. With an empty list there is one agent, called main.'),
})
export type AgentsConfig = z.infer<typeof AgentsConfig>

/** The defaults of `firstByteSeconds`. A local server may have to load the model first, and then reads the whole prompt. */
export const firstByteDefaults = { openai: 60, anthropic: 60, google: 60, 'openai-compatible': 300 } as const

export const ProviderConfig = z.strictObject({
  kind: z
    .enum(['openai', 'anthropic', 'google', 'openai-compatible'])
    .describe(
      'Which API it is. openai-compatible: Ollama, vLLM, LM Studio and any other server with /chat/completions.',
    ),
  baseUrl: httpUrl
    .optional()
    .describe('URL of the API, such as http://127.0.0.1:11434/v1. Required for openai-compatible.'),
  apiKey: nonBlank.optional().describe('Key of the API, such as "${OPENAI_API_KEY}".'),
  headers: z.record(z.string(), z.string()).optional().describe('Additional headers of every call.'),
  stream: z
    .boolean()
    .default(true)
    .describe('Whether replies are streamed. Turn it off for servers that cannot stream.'),
  firstByteSeconds: z
    .number()
    .positive()
    .max(3_600)
    .optional()
    .describe(
      'Seconds in which a streamed reply must begin; later, the turn is tried again. Default: 60, and 300 for openai-compatible. Raise it for a slow machine.',
    ),
  models: z.array(ModelConfig).default([]).describe('Prices and limits of models, which budgets need.'),
  thinking: z
    .partialRecord(z.enum(thinkingLevels), z.record(z.string(), z.json()))
    .optional()
    .describe(
      'Provider options for each thinking level, in place of the built-in ones. Set it for models whose built-in options are wrong.',
    ),
})
export type ProviderConfig = z.infer<typeof ProviderConfig>

export const ModelsConfig = z.strictObject({
  aliases: z
    .record(z.string(), nonBlank)
    .default({})
    .describe('Short names for models, each with its <provider>/<model>. They ignore case.'),
  providers: z
    .record(z.string().regex(/^[^/\s]+$/, 'must be a name without "/"'), ProviderConfig)
    .default({})
    .describe('The APIs, each under the name that comes before the "/" of a model.'),
})
export type ModelsConfig = z.infer<typeof ModelsConfig>

/** The schema of `runners`. `takesOthers`: a section of another kind belongs to a plugin that is not loaded yet. */
export function createRunnersConfig(
  runners: readonly KnownKind[],
  options: { readonly takesOthers: boolean },
): z.ZodType<KindsConfig> {
  return createKindsConfig(z.string(), runners, options).describe(
    'Commands and OpenClaw gateways that perform turns, each under the name that agents use in `runner`.',
  )
}
