import type { z } from 'zod'
import type { MappingInput } from '../core/model/mapping.ts'
import type { VerifierDefinition } from './proof.ts'

/** A mapping pack for one sender. */
export type Preset<Options = unknown> = {
  readonly name: string
  /** One sentence about the requests that it receives and the actions that they cause. */
  readonly title: string
  /** The options of `hooks.presets[]` besides `name`. They override the section `hooks.<name>`, if there is one. */
  readonly options: z.ZodType<Options>
  /** The keys that `hookloom add preset` writes besides the name. Default: none. */
  readonly setup?: PresetSetup
  /** Schemes in code for its mappings. They cannot replace built-in ones. */
  readonly verifiers?: readonly VerifierDefinition[]
  /** Gets the parsed options. */
  build(options: Options): PresetParts
}

export type PresetSetup = {
  /** The option with the key of the sender. `operator`: the operator chooses the secret. `sender`: the sender shows it. */
  readonly key?: { readonly option: 'secret' | 'publicKey'; readonly from: 'operator' | 'sender' }
  /** Further options. A text may be a placeholder that the operator replaces. */
  readonly options?: Readonly<Record<string, string | boolean>>
}

export type PresetParts = {
  /** The mappings of the pack, in the order in which they are tried. */
  mappings: MappingInput[]
  /** Body limit of the pack's paths, in bytes, if its sender needs more than `server.maxBodyBytes`. */
  maxBodyBytes?: number
}
