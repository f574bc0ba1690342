// The kinds of plugins. `defineChannel` and its like mark what they declare, so that one plugin can have several kinds.
import type { FullChannelDefinition, OwnChannel, SimpleChannelDefinition } from './channel.ts'
import type { OutboxDefinition } from './outbox.ts'
import type { OwnRunner, RunnerDefinition } from './runner.ts'
import type { ProblemRecord } from '../core/model/problem.ts'
import type { SenderDefinition } from './scheme.ts'
import type { OwnSource, SourceDefinition } from './source.ts'

/** The definitions of each kind. Each has a name. */
export type DefinitionByKind = {
  readonly channel: FullChannelDefinition | (SimpleChannelDefinition & { readonly name: string })
  readonly runner: RunnerDefinition
  readonly outbox: OutboxDefinition
  readonly sender: SenderDefinition
  readonly source: SourceDefinition
}
export type PluginKind = keyof DefinitionByKind

export const pluginKinds = ['channel', 'runner', 'sender', 'outbox', 'source'] as const satisfies readonly PluginKind[]

const kindKey = Symbol.for('hookloom.plugin')

/** Marks a definition with its kind. The mark is no field: a definition has the same keys as before. */
export function markPlugin<Definition extends object>(definition: Definition, kind: PluginKind): Definition {
  return Object.defineProperty(definition, kindKey, { value: kind, configurable: true })
}

/** The kind of a definition; undefined for a value that no function of `hookloom` has declared. */
export function readPluginKind(value: unknown): PluginKind | undefined {
  const kind: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, kindKey) : undefined
  return pluginKinds.find((each) => each === kind)
}

/** One definition of a plugin. */
export type PluginPart = {
  readonly [Kind in PluginKind]: { readonly kind: Kind; readonly definition: DefinitionByKind[Kind] }
}[PluginKind]

/** A plugin of the configuration. `name`: its entry in `plugins`. `label`: its file, for messages. */
export type LoadedPlugin = { readonly name: string; readonly label: string } & (
  | {
      readonly kind: 'sound'
      readonly value: readonly PluginPart[]
      /** The hash of its code. */
      readonly hash: string
      /** Describes an exception with its place: `a TypeError at zulip.ts:12`. */
      describeThrown(thrown: unknown): string
    }
  | { readonly kind: 'broken'; readonly problem: ProblemRecord }
)

type SoundPlugin = Extract<LoadedPlugin, { kind: 'sound' }>

/** A definition and its plugin. */
export type Found<Kind extends PluginKind> = {
  readonly plugin: SoundPlugin
  readonly definition: DefinitionByKind[Kind]
}

/** The definitions of one kind, each with its plugin. */
export function listDefinitions<Kind extends PluginKind>(plugins: readonly LoadedPlugin[], kind: Kind): Found<Kind>[] {
  return plugins.flatMap((plugin) =>
    plugin.kind === 'broken'
      ? []
      : plugin.value.flatMap((each) =>
          // as: the kind names the type of the definition
          each.kind === kind ? [{ plugin, definition: each.definition as DefinitionByKind[Kind] }] : [],
        ),
  )
}

/** What the plugins and the modules of an integrator add to a configuration. */
export type OwnParts = {
  readonly channels: readonly OwnChannel[]
  readonly runners: readonly OwnRunner[]
  readonly outboxes: readonly OutboxDefinition[]
  readonly sources: readonly OwnSource[]
}

export const noOwnParts: OwnParts = { channels: [], runners: [], outboxes: [], sources: [] }
