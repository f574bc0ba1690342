// A generation of the gateway: one of the mapping engine, with the proofs of its senders, its tokens and its policy.
import type { Config } from '../../model/config/config.ts'
import { listHookTokens, type PlanSettings } from '../../model/config/plan-settings.ts'
import type { DefinedVerifier } from '../../model/proof.ts'
import type { Transform } from '../../core/model/transform.ts'
import type { MappingParts, NamedMapping } from '../../core/mapping/compile.ts'
import { createGenerationOf, type GenerationOf } from '../../core/mapping/generation.ts'
import type { KnownSchemes, SenderTable } from '../proofs/senders.ts'
import { createVerifier, offlineTools, type VerifierTools } from '../proofs/verify.ts'
import type { Policy } from '../../core/mapping/policy.ts'
import { createPolicy } from './host-policy.ts'
import { createTokenSet, listConfigTokens, type TokenSet } from './tokens.ts'

export type Generation<Settings extends PlanSettings = Config> = GenerationOf<Settings> & {
  /** The tokens of the configuration. */
  readonly tokens: TokenSet
  readonly senders: SenderTable
  /** The verifier modules that its mappings use. */
  readonly verifiers: readonly DefinedVerifier[]
}

/** What makes the proofs of mappings. `tools`: the clock, the fetch and the secrets of each. */
export function toMappingParts(
  known: KnownSchemes,
  tools: (secretsName: string) => VerifierTools = () => offlineTools,
): MappingParts {
  return {
    senders: known.senders,
    prove: (settings, secretsName) => createVerifier(settings, { ...tools(secretsName), ...known }),
  }
}

/** Throws `config-invalid` if a mapping or `hooks.agent.flow` is invalid. */
export function createGeneration<Settings extends PlanSettings>(parts: {
  config: Settings
  env?: Generation['env'] | undefined
  mappings: readonly NamedMapping[]
  transforms: ReadonlyMap<string, Transform>
  senders: SenderTable
  verifiers?: readonly DefinedVerifier[] | undefined
  verifierTools?: ((secretsName: string) => VerifierTools) | undefined
  /** Default: that of the configuration. */
  policy?: Policy | undefined
}): Generation<Settings> {
  const { config, env, mappings, transforms, senders, verifiers = [], verifierTools } = parts
  const generation = createGenerationOf({
    ...toMappingParts({ senders, verifiers }, verifierTools),
    config,
    env,
    mappings,
    transforms,
    policy: parts.policy ?? createPolicy(config),
    maxBodyBytes: config.server.maxBodyBytes,
    codes: verifiers.map((code) => ({
      name: code.scheme,
      ...(code.kind === 'sound' ? { hash: code.hash } : { hash: '', problem: code.problem }),
    })),
  })
  const tokens = createTokenSet(listConfigTokens(listHookTokens(config.hooks), config.tokens))
  return { ...generation, tokens, senders, verifiers }
}
