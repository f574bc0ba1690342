import type { z } from 'zod'
import type { MappingInput } from './mapping.ts'

/** A mapping pack for one sender. */
export type Preset<Options = unknown> = {
  readonly name: string
  /** One sentence: what comes in and what it becomes. */
  readonly title: string
  /** The options of `hooks.presets[]` beside `name`, laid over `hooks.<name>` where that section exists. */
  readonly options: z.ZodType<Options>
  /** Gets what its own schema parsed. */
  build(options: Options): PresetParts
}

export type PresetParts = {
  mappings: MappingInput[]
  /** Body limit of the pack's own paths, in bytes, where `server.maxBodyBytes` is too small for its sender. */
  maxBodyBytes?: number
}
