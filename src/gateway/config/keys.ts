// The schema of hookloom.jsonc: the keys of the gateway, and the sections of the plugins.
import { z } from 'zod'
import type { OutboxDefinition, RunnerDefinition, SourceDefinition } from '../../define.ts'
import { type KnownChannel, sharedChannelKeys } from '../../model/config/channels.ts'
import { createConfig } from '../../model/config/config.ts'
import type { KnownKind } from '../../model/config/kinds.ts'
import { turnOn } from '../../core/model/recover.ts'
import { type DefinitionByKind, listDefinitions, type LoadedPlugin } from '../../model/plugin.ts'
import { channels } from '../../plugins/channels/index.ts'
import { outboxes } from '../../plugins/outboxes/index.ts'
import { runners } from '../../plugins/runners/index.ts'
import { sourceKinds } from '../../plugins/sources/index.ts'

/** The definitions whose sections a configuration may have. */
type KeyParts = {
  readonly channels: readonly DefinitionByKind['channel'][]
  readonly runners: readonly RunnerDefinition[]
  readonly outboxes: readonly OutboxDefinition[]
  /** Those with a section in `sources`. */
  readonly sources: readonly SourceDefinition[]
}

/** `recover`: the schema of `recover` in a mapping. `takesOthers`: sections of plugins that are not loaded are valid. */
export function createKeys(parts: KeyParts, { takesOthers = false }: { readonly takesOthers?: boolean } = {}) {
  const known = {
    channels: parts.channels.map(toKnownChannel),
    runners: parts.runners.map(toKnownKind),
    sources: parts.sources.map(toKnownKind),
  }
  return {
    config: createConfig(known, { takesOthers }),
    recover: toRecoverSchema(parts.outboxes),
    channels: known.channels,
    runners: known.runners,
  }
}
export type Keys = ReturnType<typeof createKeys>

/** The parts with those of plugins. A plugin that does not load adds none. */
export function addPlugins(parts: KeyParts, plugins: readonly LoadedPlugin[]): KeyParts {
  return {
    channels: [...parts.channels, ...listDefinitions(plugins, 'channel').map(({ definition }) => definition)],
    runners: [...parts.runners, ...listDefinitions(plugins, 'runner').map(({ definition }) => definition)],
    outboxes: [...parts.outboxes, ...listDefinitions(plugins, 'outbox').map(({ definition }) => definition)],
    sources: [...parts.sources, ...listDefinitions(plugins, 'source').map(({ definition }) => definition)],
  }
}

/** The section of a channel: the options of its plugin, and the keys that the gateway adds. Undefined for a built-in channel without options. */
function toKnownChannel(definition: DefinitionByKind['channel']): KnownChannel {
  const { name, about = '', options, findsRecipient = false } = definition
  const own = options instanceof z.ZodObject ? options.safeExtend(sharedChannelKeys) : undefined
  const section = own ?? ('send' in definition || options !== undefined ? z.looseObject(sharedChannelKeys) : undefined)
  return { name, section: section?.optional().describe(about), findsRecipient }
}

/** The section of a kind of runner or source: `kind`, and the options of its plugin. Undefined for a runner without options. */
function toKnownKind({ name, about, options }: RunnerDefinition | SourceDefinition): KnownKind {
  const kind = z.literal(name).describe(about)
  if (options === undefined) return { name, section: undefined }
  return {
    name,
    section: options instanceof z.ZodObject ? z.strictObject({ kind, ...options.shape }) : z.looseObject({ kind }),
  }
}

/** `recover` for each sender: `sender`, the options of its outbox, and `turnOn`. */
function toRecoverSchema(list: readonly OutboxDefinition[]) {
  const names = list.map(({ name }) => name)
  const [first, ...rest] = list.map(({ name, about, options }) => {
    const sender = z.literal(name).describe(about)
    if (!(options instanceof z.ZodObject)) return z.looseObject({ sender, turnOn })
    // as: a check reads only keys of the options
    const checks = (options.def.checks ?? []) as z.core.$ZodCheck<Record<string, unknown>>[]
    const section: z.ZodObject = z.strictObject({ sender, ...options.shape, turnOn })
    return section.check(...checks)
  })
  // as: each section is an object with another sender
  return z.discriminatedUnion(
    'sender',
    [first, ...rest] as unknown as [z.ZodObject<{ sender: z.ZodLiteral<string> }>],
    {
      error: ({ code }) =>
        code === 'invalid_union'
          ? `its \`sender\` must be ${names.join(', ').replace(/, ([^,]*)$/, ' or $1')}`
          : undefined,
    },
  )
}

export const builtInParts: KeyParts = { channels, runners, outboxes, sources: sourceKinds }
export const builtInKeys = createKeys(builtInParts)
export const ConfigSchema = builtInKeys.config
let open: typeof ConfigSchema | undefined
/** The schema that takes sections of plugins too, which are checked when the plugins are loaded. Few configurations need it. */
export function getOpenConfigSchema(): typeof ConfigSchema {
  open ??= createKeys(builtInParts, { takesOthers: true }).config
  return open
}

export const builtInChannels = builtInKeys.channels
export const RecoverSchema = builtInKeys.recover
/** The kinds that a section of `runners` may have. */
export const builtInRunnerKinds = builtInKeys.runners.flatMap(({ name, section }) =>
  section === undefined ? [] : [name],
)
export const outboxNames = outboxes.map(({ name }) => name)
