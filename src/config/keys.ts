// The schema of hookloom.jsonc, with the sections of the built-in plugins.
import type { KnownChannel } from '../model/config/channels.ts'
import { sharedChannelKeys } from '../model/config/channels.ts'
import { createConfig } from '../model/config/config.ts'
import type { KnownRunner } from '../model/config/agents.ts'
import type { FullChannelDefinition, OutboxDefinition, RunnerDefinition } from '../define.ts'
import { turnOn } from '../model/config/recover.ts'
import { outboxes } from '../plugins/outboxes/index.ts'
import { runners } from '../plugins/runners/index.ts'
import { channels } from '../plugins/channels/index.ts'
import { z } from 'zod'

/** The section of a built-in channel: the options of its plugin, and the keys that the gateway adds. */
function toKnownChannel({ name, about, options, findsRecipient = false }: FullChannelDefinition): KnownChannel {
  const section =
    options instanceof z.ZodObject ? options.safeExtend(sharedChannelKeys).optional().describe(about) : undefined
  return { name, section, findsRecipient }
}

export const builtInChannels: readonly KnownChannel[] = channels.map(toKnownChannel)
/** The section of a kind of runner: `kind`, and the options of its plugin. */
function toKnownRunner({ name, about, options }: RunnerDefinition): KnownRunner {
  const kind = z.literal(name).describe(about)
  return { name, section: options instanceof z.ZodObject ? z.strictObject({ kind, ...options.shape }) : undefined }
}

const knownRunners = runners.map(toKnownRunner)
/** The kinds that a section of `runners` may have. */
export const builtInRunnerKinds = knownRunners.flatMap(({ name, section }) => (section === undefined ? [] : [name]))

const builtIn = { channels: builtInChannels, runners: knownRunners }

export const ConfigSchema = createConfig(builtIn, { takesOthers: false })
/** Takes sections of plugins too, which are checked when the plugins are loaded. */
export const OpenConfigSchema = createConfig(builtIn, { takesOthers: true })

/** `recover` for a built-in sender: `sender`, the options of its outbox, and `turnOn`. */
function toRecoverSection({ name, about, options }: OutboxDefinition): z.ZodObject {
  if (!(options instanceof z.ZodObject)) throw new TypeError(`The options of the outbox ${name} are no object.`)
  const sender = z.literal(name).describe(about)
  // as: a check reads only keys of the options
  const checks = (options.def.checks ?? []) as z.core.$ZodCheck<Record<string, unknown>>[]
  const section: z.ZodObject = z.strictObject({ sender, ...options.shape, turnOn })
  return section.check(...checks)
}

export const outboxNames = outboxes.map(({ name }) => name)
const [first, ...rest] = outboxes.map(toRecoverSection)
export const RecoverSchema = z.discriminatedUnion(
  'sender',
  // as: each section is an object with another sender
  [first, ...rest] as unknown as [z.ZodObject<{ sender: z.ZodLiteral<string> }>],
  {
    error: ({ code }) =>
      code === 'invalid_union'
        ? `its \`sender\` must be ${outboxNames.join(', ').replace(/, ([^,]*)$/, ' or $1')}`
        : undefined,
  },
)
