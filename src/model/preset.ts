import type { z } from 'zod'
import type { MappingInput } from './mapping.ts'
import type { VerifierDefinition } from './verifier.ts'

/** A mapping pack for one sender. */
export type Preset<Options = unknown> = {
  readonly name: string
  /** One sentence: what comes in and what it becomes. */
  readonly title: string
  /** The options of `hooks.presets[]` beside `name`, laid over `hooks.<name>` where that section exists. */
  readonly options: z.ZodType<Options>
  /** What `hookloom add preset` writes beside the name. Absent: nothing. */
  readonly setup?: PresetSetup
  /** Schemes in code that its mappings name. No built-in scheme can be replaced. */
  readonly verifiers?: readonly VerifierDefinition[]
  /** Gets what its own schema parsed. */
  build(options: Options): PresetParts
}

export type PresetSetup = {
  /** The option that proves the sender. `operator`: any secret will do. `sender`: the sender makes it and shows it. */
  readonly key?: { readonly option: 'secret' | 'publicKey'; readonly from: 'operator' | 'sender' }
  /** Further options; a text in them may be a placeholder that the operator replaces. */
  readonly options?: Readonly<Record<string, string | boolean>>
}

export type PresetParts = {
  mappings: MappingInput[]
  /** Body limit of the pack's own paths, in bytes, where `server.maxBodyBytes` is too small for its sender. */
  maxBodyBytes?: number
}
