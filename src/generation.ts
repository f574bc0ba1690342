// A generation of the gateway: one of the mapping engine, with the whole configuration.
import type { Config } from './model/config/config.ts'
import type { GenerationOf } from './pipeline/generation.ts'

export type Generation = GenerationOf<Config>
